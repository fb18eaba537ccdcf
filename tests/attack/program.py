"""Runs cases of each family in turn, and keeps the folders of those that fail.

python -m tests.attack --seed 3 --minutes 20 --family stores --out /tmp/attack
python -m tests.attack --seed 3 --family stores --number 17
"""

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

FAMILIES = (
    "clients", "environments", "files", "numbers", "plug_ins", "replies", "stores", "streams",
    "texts", "yaml",
)  # fmt: skip


class Case(Protocol):
    """Attack on a run or a config; its `repr` describes it."""

    def run(self, folder: Path) -> str | None:
        """Runs it in an empty folder; returns a line on the fault, or None."""


def numbered(family: str, seed: int, number: int) -> Case:
    """Returns a case of a family by its seed and number."""
    module = import_module(f"tests.attack.{family}")
    case: Case = module.case(random.Random(f"{seed} {family} {number}"), number)
    return case


def attempt(out: Path, family: str, seed: int, number: int) -> str | None:
    """Runs a case; returns its fault, and then keeps its folder in `out`."""
    case = numbered(family, seed, number)
    with TemporaryDirectory(prefix="attack-", ignore_cleanup_errors=True) as scratch:
        if not (wrong := case.run(Path(scratch))):
            return None
    folder = out / f"{family}-{seed}-{number}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    wrong = case.run(folder) or f"not every time: {wrong}"
    again = f"python -m tests.attack --seed {seed} --family {family} --number {number}"
    text = f"{case!r:.500}\n{wrong}\n{again}\n"
    (folder / "wrong.txt").write_text(text, "utf-8")
    _print(f"WRONG {family} {number}: {text}")
    return wrong


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    """Runs the command line; its exit status is 1 if a case failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__)
    parser.add_argument(
        "--seed", type=int, help="random seed of the cases (default: random, and printed)"
    )
    parser.add_argument(
        "--minutes", type=float, default=10.0, help="stop after this many minutes (default: 10)"
    )
    parser.add_argument(
        "--family",
        choices=FAMILIES,
        action="append",
        help="run only this family; repeatable (default: all)",
    )
    parser.add_argument("--number", type=int, help="run only this case")
    parser.add_argument("--out", type=Path, default=Path("/tmp/leporello-attack"))  # noqa: S108 -- the user's own
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    _print(f"seed {seed}")
    tried, wrong = Counter[str](), Counter[str]()
    end = time.monotonic() + 60 * options.minutes
    for number in count() if options.number is None else [options.number]:
        for family in options.family or FAMILIES:
            tried[family] += 1
            wrong[family] += attempt(options.out, family, seed, number) is not None
        if time.monotonic() > end:
            break
    _print(f"{'family':<16}{'tried':>8}{'wrong':>8}")
    for family, cases in tried.items():
        _print(f"{family:<16}{cases:>8}{wrong[family]:>8}")
    sys.exit(wrong.total() > 0)
