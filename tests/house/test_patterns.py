"""No pattern of the product takes longer than in proportion to its text, whatever that holds."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import regex
from backtracking import Backtracking

ROOT = Path(__file__).parents[2]
SIZES = (6, 12, 18)  # repeats of what is hostile
# Patterns that may take longer, and those that hold what is known only when they are used.
ALLOWED = {
    "combiners/lists/parse.py": "one character, by a set difference that `re` does not know",
}
MADE = {
    "combiners/lists/parse.py": "blanks between words, each followed by a letter",
    "leporello/cli/display/answer.py": "blanks between words, each followed by a letter",
    "leporello/core/secrets.py": "plain texts, side by side",
    "leporello/loaders/markup/latex.py": "tried once for each of three names",
    "leporello/loaders/markup/code.py": "of a table, from which they are taken below",
    "leporello/loaders/office/archive.py": "names of files, in a table",
    "leporello/loaders/tables/sheets.py": "names of files, in a table",
    "leporello/tasks/jsonl/finding.py": "the name of a file",
    "leporello/text/answers.py": "words, side by side",
    "leporello/text/english/questions.py": "words, tried once at the start of a question",
    "leporello/text/typed/parse.py": "a choice in plain text",
    "leporello/text/typed/spans.py": "plain text, with blanks between its words",
    "leporello/text/typed/values.py": "a date, each part of few characters",
    "leporello/text/person_names.py": "each part is of characters that no other one takes",
    "chunkers/recursive.py": "the user's own",
    "combiners/deciding/route.py": "the user's own",
    "combiners/percentage.py": "the user's own",
    "readers/backends/pretrained.py": "plain texts, side by side",
}


class Found(NamedTuple):
    """A pattern as it stands in a file; `whole` if it is tried at the start of a text alone."""

    line: int
    pattern: str | bytes
    flags: int
    whole: bool


def patterns(path: Path) -> Iterator[Found]:
    """Yields the patterns that a file compiles, those that its tables hold too."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    calls = [node for node in parents if isinstance(node, ast.Call) and _is_pattern(node)]
    if not calls:
        return
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    names = vars(importlib.import_module(name)) | {"re": re, "regex": regex}
    for call in calls:
        assert isinstance(call.func, ast.Attribute)
        method, flags = call.func.attr, [k.value for k in call.keywords if k.arg == "flags"]
        if method not in {"sub", "subn", "split"}:
            flags += call.args[1 if method == "compile" else 2 :]
        try:
            pattern, *given = (_value(argument, names) for argument in (call.args[0], *flags[:1]))
        except NameError:
            assert str(path.relative_to(ROOT)) in MADE, f"{path}:{call.lineno}"
            continue
        yield Found(call.lineno, pattern, int(*given), _is_whole(call, parents))
    tables = [value for value in names.values() if isinstance(value, dict)]
    held = {p for table in tables for row in table.values() if isinstance(row, tuple) for p in row}
    yield from (Found(0, p.pattern, p.flags, False) for p in held if isinstance(p, re.Pattern))


def _is_pattern(call: ast.Call) -> bool:
    return (
        isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id in {"re", "regex"}
        and call.func.attr not in {"escape", "purge"}
    )


def _value(argument: ast.expr, names: dict[str, object]) -> str | bytes:
    value: str | bytes = eval(compile(ast.Expression(argument), "", "eval"), {**names})  # noqa: S307 -- our own source
    return value


def _is_whole(call: ast.Call, parents: dict[ast.AST, ast.AST]) -> bool:
    """Returns whether a pattern is tried at one place; who does so in a loop goes on behind it."""
    assert isinstance(call.func, ast.Attribute)
    if call.func.attr != "compile":
        return call.func.attr in {"match", "fullmatch"}
    named = parents[call]
    if not isinstance(named, ast.Assign) or not isinstance(named.targets[0], ast.Name):
        return False
    uses = [
        parents[node] for node in parents
        if isinstance(node, ast.Name) and node.id == named.targets[0].id
        and isinstance(node.ctx, ast.Load)
    ]  # fmt: skip
    return bool(uses) and all(
        isinstance(use, ast.Attribute) and use.attr in {"match", "fullmatch"} for use in uses
    )


FILES = [
    path
    for room in ("leporello", "chunkers", "enrichers", "retrievers", "readers", "combiners")
    for path in sorted((ROOT / room).rglob("*.py"))
    if re.search(r"^import (?:re|regex)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    and path.name != "lm_eval.py"  # whose package is not among those for development
]


@pytest.mark.integration
def test_the_steps_of_a_search_grow_as_the_text_does() -> None:
    """Steps are counted, for each pattern on texts that are made of its own parts."""
    for path in FILES:
        if str(path.relative_to(ROOT)) in ALLOWED:
            continue
        for found in patterns(path):
            search = Backtracking(found.pattern, found.flags)
            for shape in search.hostile():
                few, some, many = (search.scan(shape(size), found.whole) for size in SIZES)
                told = f"{path}:{found.line}: {found.pattern!r} on {shape(3)!r}"
                assert many - 2 * some + few <= SIZES[-1], told


@pytest.mark.parametrize(
    ("pattern", "linear"),
    [
        (r"\s+$", False), (r"\s++$", False), (r"(?<!\s)\s++$", True), (r"a*a*b", False),
        (r"<[^>]*>", False), (r"<[^<>]*>", True), (r"(['\"]).*?\1", True),
    ],
)  # fmt: skip
def test_a_pattern_that_goes_over_text_again_is_found_out(pattern: str, *, linear: bool) -> None:
    """So the counting of steps, on which all else here rests, sees what it is for."""
    search = Backtracking(pattern, 0)
    bends = []
    for shape in search.hostile():
        few, some, many = (search.scan(shape(size), False) for size in SIZES)
        bends.append(many - 2 * some + few)
    assert (max(bends) <= SIZES[-1]) == linear
