"""Writes the tables that a benchmark printed into a page of the docs (`make measure`).

    python -m benchmarks.page docs/divide-or-cut.md losses PRINTED

The tables replace the lines between `<!-- losses -->` and `<!-- end -->`. A line with the commit
and the processor follows them.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
from pathlib import Path

from leporello.core.errors import UserError


def main() -> None:
    """Reads the arguments and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", type=Path, help="page to change")
    parser.add_argument("name", help="name of the place in the page")
    parser.add_argument("printed", type=Path, help="file with the output of the benchmark")
    args = parser.parse_args()
    tables = args.printed.read_text("utf-8").strip()
    page = args.page.read_text("utf-8")
    try:
        changed = replaced(page, args.name, f"{tables}\n\n{_origin()}")
    except UserError as error:
        parser.error(f"{args.page}: {error}")
    args.page.write_text(changed, "utf-8")


def replaced(page: str, name: str, tables: str) -> str:
    """Returns a page with other tables at a place.

    Raises:
        UserError: The page lacks the place, or the benchmark printed no table.
    """
    if "|" not in tables:
        raise UserError(f"{name}: the benchmark printed no table")
    place = re.compile(rf"(<!-- {re.escape(name)} -->\n).*?(\n<!-- end -->)", re.DOTALL)
    if not place.search(page):
        raise UserError(f"the page has no `<!-- {name} -->` with `<!-- end -->` after it")
    return place.sub(lambda match: f"{match[1]}\n{tables}\n{match[2]}", page, count=1)


def _origin() -> str:
    """Returns a line with the commit and the processor."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short=8", "HEAD"],  # noqa: S607 -- git of the developer
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"Commit {commit}, {os.cpu_count()} cores of {names[0] if names else 'a processor'}."


if __name__ == "__main__":
    main()
