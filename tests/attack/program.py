"""Tries cases of each family in turn, keeps what is left by those that fail, and counts them.

python -m tests.attack --seed 3 --minutes 20 --family stores --out /tmp/attack
python -m tests.attack --seed 3 --family stores --number 17
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import time
from collections import Counter
from importlib import import_module
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from tests.attack.command import keep_scratch

FAMILIES = ("stores", "yaml")


class Case(Protocol):
    """Something that is done to a run."""

    @property
    def name(self) -> str:
        """What is done, in a line."""

    @property
    def command(self) -> str:
        """Shell line that shows it in the folder that `run` leaves."""

    def run(self, folder: Path) -> str | None:
        """Does it in an empty folder; returns what went wrong, in a line."""


def numbered(family: str, seed: int, number: int) -> Case:
    """Returns a family's case of a seed."""
    module = import_module(f"tests.attack.{family}")
    case: Case = module.case(random.Random(f"{seed} {family} {number}"), number)
    return case


def attempt(out: Path, family: str, seed: int, number: int) -> str | None:
    """Tries a case; returns what went wrong, which is kept in a folder of `out`."""
    case = numbered(family, seed, number)
    with TemporaryDirectory(prefix="attack-", ignore_cleanup_errors=True) as scratch:
        if not (wrong := case.run(Path(scratch))):
            return None
    keep_scratch()
    kept = out / f"{family}-{seed}-{number}"
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    wrong = case.run(kept) or f"not every time: {wrong}"
    text = f"{case.name}\n{wrong}\n(cd {kept} && {case.command})\n"
    (kept / "wrong.txt").write_text(text, "utf-8")
    _print(f"WRONG {family} {number}: {text}")
    return wrong


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    """Runs the command line; its status is 1 if anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__)
    parser.add_argument("--seed", type=int, help="of the cases (default: drawn, and printed)")
    parser.add_argument("--minutes", type=float, default=10.0, help="when to stop (default: 10)")
    parser.add_argument("--family", choices=FAMILIES, action="append", help="default: all")
    parser.add_argument("--number", type=int, help="only this case")
    parser.add_argument("--out", type=Path, default=Path("/tmp/leporello-attack"))  # noqa: S108 -- the user's own
    given = parser.parse_args()
    seed = random.SystemRandom().randrange(10**6) if given.seed is None else given.seed
    _print(f"seed {seed}")
    tried, wrong = Counter[str](), Counter[str]()
    end = time.monotonic() + 60 * given.minutes
    for number in count() if given.number is None else [given.number]:
        for family in given.family or FAMILIES:
            tried[family] += 1
            wrong[family] += attempt(given.out, family, seed, number) is not None
        if time.monotonic() > end:
            break
    _print(f"{'family':<16}{'tried':>8}{'wrong':>8}")
    for family, cases in tried.items():
        _print(f"{family:<16}{cases:>8}{wrong[family]:>8}")
    sys.exit(wrong.total() > 0)
