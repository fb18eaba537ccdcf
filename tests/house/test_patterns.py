"""Tests that every regular expression of the product runs in linear time, on any text."""

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
SIZES = (6, 12, 18)  # numbers of repeats in hostile texts
# Patterns that may be slower, with the reason.
ALLOWED = {
    "combiners/lists/parse.py": "one character, by a set difference, which `re` does not support"
}
# Patterns that are composed at run time, with the reason why they are linear.
COMPOSED = {
    "combiners/items.py": "blanks between words, each followed by a letter",
    "leporello/cli/display/answer.py": "blanks between words, each followed by a letter",
    "leporello/core/secrets.py": "alternatives of plain text",
    "leporello/loaders/markup/latex.py": "matched once for each of three names",
    "leporello/loaders/markup/source.py": "patterns of a table, which `patterns` yields too",
    "leporello/loaders/office/archive.py": "names of files, in a table",
    "leporello/loaders/tables/sheets.py": "names of files, in a table",
    "leporello/loaders/tables/xlsx.py": "digits of styles, and a prefix of letters",
    "leporello/serving/blocks.py": "a fence of one letter, at the start of a line",
    "leporello/tasks/jsonl/finding.py": "the name of a file",
    "leporello/text/answers.py": "alternatives of words",
    "leporello/text/english/questions.py": "words, matched once at the start of a question",
    "leporello/text/typed/parse.py": "a choice in plain text",
    "leporello/text/typed/spans.py": "plain text, with blanks between its words",
    "leporello/text/typed/values.py": "a date, with few characters per part",
    "leporello/text/person_names.py": "parts without common characters",
    "chunkers/recursive.py": "a pattern of the user",
    "combiners/deciding/route.py": "a pattern of the user",
    "combiners/percentage.py": "a pattern of the user",
    "readers/backends/pretrained.py": "alternatives of plain text",
}


class Pattern(NamedTuple):
    """Pattern in a source file; `is_anchored` if it is only matched at the start of a text."""

    line: int
    pattern: str | bytes
    flags: int
    is_anchored: bool


def patterns(path: Path) -> Iterator[Pattern]:
    """Yields the patterns in calls of a file, and the compiled ones in its tables."""
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
            pattern, *values = (_value(argument, names) for argument in (call.args[0], *flags[:1]))
        except NameError:
            assert str(path.relative_to(ROOT)) in COMPOSED, f"{path}:{call.lineno}"
            continue
        yield Pattern(call.lineno, pattern, int(*values), _is_anchored(call, parents))
    tables = [value for value in names.values() if isinstance(value, dict)]
    cells = {c for table in tables for row in table.values() if isinstance(row, tuple) for c in row}
    yield from (Pattern(0, c.pattern, c.flags, False) for c in cells if isinstance(c, re.Pattern))


def _is_pattern(call: ast.Call) -> bool:
    return (
        isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id in {"re", "regex"}
        and call.func.attr not in {"escape", "purge"}
    )


def _value(argument: ast.expr, names: dict[str, object]) -> str | bytes:
    value: str | bytes = eval(compile(ast.Expression(argument), "", "eval"), {**names})  # noqa: S307 -- source of this project
    return value


def _is_anchored(call: ast.Call, parents: dict[ast.AST, ast.AST]) -> bool:
    """Returns whether a pattern is only matched at one position, with `match` or `fullmatch`."""
    assert isinstance(call.func, ast.Attribute)
    if call.func.attr != "compile":
        return call.func.attr in {"match", "fullmatch"}
    assignment = parents[call]
    if not isinstance(assignment, ast.Assign) or not isinstance(assignment.targets[0], ast.Name):
        return False
    uses = [
        parents[node] for node in parents
        if isinstance(node, ast.Name) and node.id == assignment.targets[0].id
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
    and path.name != "lm_eval.py"  # its package is not installed for development
]


@pytest.mark.integration
def test_the_steps_of_a_search_grow_linearly_with_the_text() -> None:
    """Counts the steps of each pattern on hostile texts that are made from its parts."""
    for path in FILES:
        if str(path.relative_to(ROOT)) in ALLOWED:
            continue
        for pattern in patterns(path):
            search = Backtracking(pattern.pattern, pattern.flags)
            for shape in search.hostile():
                few, some, many = (search.scan(shape(size), pattern.is_anchored) for size in SIZES)
                message = f"{path}:{pattern.line}: {pattern.pattern!r} on {shape(3)!r}"
                assert many - 2 * some + few <= SIZES[-1], message


@pytest.mark.parametrize(
    ("pattern", "linear"),
    [
        (r"\s+$", False), (r"\s++$", False), (r"(?<!\s)\s++$", True), (r"a*a*b", False),
        (r"<[^>]*>", False), (r"<[^<>]*>", True), (r"(['\"]).*?\1", True),
    ],
)  # fmt: skip
def test_patterns_that_read_text_repeatedly_are_detected(pattern: str, *, linear: bool) -> None:
    """Validates the counter of steps on patterns whose complexity is known."""
    search = Backtracking(pattern, 0)
    bends = []
    for shape in search.hostile():
        few, some, many = (search.scan(shape(size), False) for size in SIZES)
        bends.append(many - 2 * some + few)
    assert (max(bends) <= SIZES[-1]) == linear
