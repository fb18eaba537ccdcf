"""The English of the code: patterns that docs/glossary.md and CONTRIBUTING.md advise against."""

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from command_line import ROOT

MOST = 37
"""Matches that are allowed. Lower it when the count falls; it never rises."""

PATTERNS = {
    "a verb of people for what software does": (
        r"\b(?:tells?|told|telling|says?|said|saying|lies|lying)\b|\b(?:stands?|stood|standing)\b(?!-)"
    ),
    "negation by `no` or `none`": r"\b(?:is|are|was|were|be) none?\b|\b(?:of|than|with) none\b",
    "rare word": r"\b(?:likewise|anew|besides|whoever|heeds?|begun|mend(?:s|ed)?|likelier)\b",
    "sentence that begins with a clause": (
        r"(?:^|(?<=[.;:] ))(?:What|Who|Whose|Whatever|Of)(?! course)\b"
    ),
    "clause behind a preposition": r"\b(?:of|for|to|by|from|with|in|on|than) (?:what|whom|who)\b",
    "idiom with `come` or `go`": (
        r"\b(?:comes?|came|coming) (?:to|of)\b|\bbec[ao]mes? of\b|\b(?:go(?:es|ing)?|went) on\b"
    ),
    "idiom": r"\bwork(?:s|ed|ing)? at\b|\bas (?:that|those) of\b|\bas many as\b",
}
FOLDERS = (
    "leporello", "chunkers", "enrichers", "retrievers", "readers", "combiners", "recipes",
    "benchmarks", "tests",
)  # fmt: skip
NAMES = {
    "told", "said", "found", "made", "given", "kept", "sound", "sure", "own", "ours", "whole",
    "known", "each", "one", "other", "rest", "asked", "taken", "meant", "named", "seen", "done",
    "left", "drawn", "held",
}  # fmt: skip


def test_plain_english_is_written_more_and_more() -> None:
    """The number of matches in docstrings, comments, messages and names falls only."""
    counts = Counter(str(path.relative_to(ROOT)) for path in _files() for _ in _matches(path))
    worst = ", ".join(f"{name} ({count})" for name, count in counts.most_common(8))
    total = counts.total()
    assert total <= MOST, f"{total} matches, {MOST} are allowed; most are in {worst}"
    assert total > MOST - 20, f"lower MOST to {total}"


def _files() -> Iterator[Path]:
    for folder in FOLDERS:
        yield from (ROOT / folder).rglob("*.py")


def _matches(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    nodes = [*ast.walk(ast.parse(text))]
    prose = "\n".join(" ".join(part.split()) for part in [*_prose(nodes), *_comments(text)])
    for kind, pattern in PATTERNS.items():
        yield from [kind] * len(re.findall(pattern, prose, re.MULTILINE))
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in NAMES:
            yield f"name {node.id}"


def _prose(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yields the paragraphs of docstrings, the messages of errors and the help texts."""
    for node in nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield from (ast.get_docstring(node) or "").split("\n\n")
        elif isinstance(node, ast.Raise) and node.exc:
            yield " ".join(_texts(node.exc))
        elif isinstance(node, ast.keyword) and node.arg == "help":
            yield " ".join(_texts(node.value))


def _comments(text: str) -> Iterator[str]:
    """Yields the comments of a source; none if no line from its first `#` on has a match."""
    lines = (line.partition("#")[2].split() for line in text.splitlines() if "#" in line)
    ends = [" ".join(["#", *words]) for words in lines]
    if any(re.search(pattern, end) for end in ends for pattern in PATTERNS.values()):
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        yield from (token.string for token in tokens if token.type == tokenize.COMMENT)


def _texts(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            yield inner.value
