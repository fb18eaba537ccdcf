"""Budgets: sizes of the project, which only fall. docs/design.md has the goals and reasons."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import ROOT

# A smaller size lowers its number here; a number never rises.
LIMITS = {
    "product lines": 67_100,
    "product modules": 458,
    "test lines": 37_300,
    "words of docs": 20_000,
}
PRODUCT = ("leporello", "chunkers", "enrichers", "retrievers", "readers", "combiners")
ENTERED = 67  # modules that a second question enters
SLACK = 0.02  # a limit that is further above the size is out of date
SCRIPT = """
import os, sys
seen = set()
def watch(frame, event, arg):
    if event == "call" and frame.f_code.co_name != "<module>":
        seen.add(os.path.realpath(frame.f_code.co_filename))
root = sys.argv[1] + os.sep
sys.argv = ["leporello", "ask", sys.argv[2], "Who addressed a memorandum to the Works Committee?"]
from leporello.cli import main
for profile in (None, watch):
    sys.setprofile(profile)
    try:
        main()
    except SystemExit as end:
        assert not end.code
sys.setprofile(None)
print("entered", sum(name.startswith(root) and ".venv" not in name for name in seen))
"""


@pytest.mark.parametrize("name", LIMITS)
def test_a_size_of_the_project_only_falls(name: str) -> None:
    """A size within 2 % of its limit; a much smaller one lowers the limit."""
    size, limit = _sizes()[name], LIMITS[name]
    assert size <= limit, (
        f"{name}: {size:,}, {limit:,} are allowed: remove what the change replaces"
    )
    assert size >= limit * (1 - SLACK), f"{name}: lower the limit to {size:,}"


def test_a_question_enters_few_modules() -> None:
    """Each module of the way costs reading, and most cost time. The second question is counted."""
    document = ROOT / "leporello/tasks/sample/report.md"
    process = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(ROOT), str(document)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    [count] = re.findall(r"^entered (\d+)$", process.stdout, re.MULTILINE)
    assert int(count) <= ENTERED


def _sizes() -> dict[str, int]:
    product = [path for folder in PRODUCT for path in _own_files(ROOT / folder)]
    docs = ROOT / "docs"
    pages = [p for p in docs.rglob("*.md") if "decisions" not in p.relative_to(docs).parts]
    return {
        "product lines": sum(map(_lines, product)),
        "product modules": len(product),
        "test lines": sum(map(_lines, (ROOT / "tests").rglob("*.py"))),
        "words of docs": sum(map(_words, pages)),
    }


def _own_files(folder: Path) -> Iterator[Path]:
    """Yields the Python files of a folder, without those of linked folders."""
    return (p for p in folder.rglob("*.py") if not any(q.is_symlink() for q in (p, *p.parents)))


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def _words(path: Path) -> int:
    text = path.read_text(encoding="utf-8")
    return len(re.sub(r"```.*?```", "", text, flags=re.DOTALL).split())
