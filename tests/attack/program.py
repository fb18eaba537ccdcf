"""Tries cases of each family in turn, keeps and shrinks what fails, and tells how many there were.

    python -m tests.attack --seed 3 --minutes 20 --family journals --out /tmp/attack
    python -m tests.attack --seed 3 --family journals --number 17

The same command goes on behind the seed's last case.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from tests.attack.command import keep_scratch

_SMALLER = 40  # cases that are tried to shrink one


class Case(Protocol):
    """Something that is done to a run; `smaller()`, if there is one, yields smaller cases."""

    @property
    def name(self) -> str:
        """What is done, in a line."""

    @property
    def command(self) -> str:
        """Shell line that shows it in the folder that `run` leaves."""

    def run(self, folder: Path) -> str | None:
        """Does it in an empty folder; returns what went wrong, in a line."""


class Family(Protocol):
    """A module."""

    NAME: str

    def case(self, random: random.Random, number: int) -> Case:
        """Returns a case, the same for the same seed and number."""


def families() -> dict[str, Family]:
    """Returns all families by name."""
    found: dict[str, Any] = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if not path.stem.startswith(("_", "test_")):
            module = import_module(f"tests.attack.{path.stem}")
            if hasattr(module, "NAME"):
                found[module.NAME] = module
    return found


def numbered(family: Family, seed: int, number: int) -> Case:
    """Returns a family's case of a seed."""
    return family.case(random.Random(f"{seed} {family.NAME} {number}"), number)


@dataclass(frozen=True)
class _Tries:
    """What was tried in a folder: `tried.jsonl`, and what was left by what failed."""

    folder: Path
    seed: int

    @property
    def _file(self) -> Path:
        return self.folder / "tried.jsonl"

    def rows(self) -> list[Mapping[str, Any]]:
        """Returns a row a case of this seed, as it was tried last."""
        lines = self._file.read_text("utf-8").splitlines() if self._file.exists() else []
        own = [row for row in map(json.loads, lines) if row["seed"] == self.seed]
        return [*{(row["family"], row["number"]): row for row in own}.values()]

    def next_of(self, family: str) -> int:
        """Returns the number of the first case that was not tried."""
        return 1 + max((r["number"] for r in self.rows() if r["family"] == family), default=-1)

    def attempt(self, family: Family, number: int) -> str | None:
        """Tries a case; returns what went wrong, which is kept as small as it gets."""
        case, began = numbered(family, self.seed, number), time.monotonic()
        with TemporaryDirectory(prefix="attack-", ignore_cleanup_errors=True) as scratch:
            told = case.run(Path(scratch))
        if told:
            keep_scratch()
            case, told = _shrunk(case, told)
            kept = self.folder / "wrong" / f"{family.NAME}-{self.seed}-{number}"
            shutil.rmtree(kept, ignore_errors=True)
            kept.mkdir(parents=True)
            told = case.run(kept) or f"not every time: {told}"
            text = f"{case.name}\n{told}\n(cd {kept} && {case.command})\n"
            (kept / "wrong.txt").write_text(text, "utf-8")
            _say(f"WRONG {family.NAME} {number}: {text}")
        row = {
            "family": family.NAME, "seed": self.seed, "number": number, "name": case.name,
            "wrong": told, "seconds": round(time.monotonic() - began, 1),
        }  # fmt: skip
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        return told

    def table(self) -> str:
        """Returns a line a family: how many cases were tried, how many were wrong."""
        rows = self.rows()
        lines = [f"seed {self.seed}", f"{'family':<16}{'tried':>8}{'wrong':>8}"]
        for name in dict.fromkeys(row["family"] for row in rows):
            own = [row for row in rows if row["family"] == name]
            bad = sum(row["wrong"] is not None for row in own)
            lines.append(f"{name:<16}{len(own):>8}{bad:>8}")
        return "\n".join(lines)


def _shrunk(case: Case, told: str) -> tuple[Case, str]:
    """Returns the smallest case found that fails, and what it tells."""
    left = _SMALLER
    candidates = _smaller(case)
    while left and (candidate := next(candidates, None)):
        left -= 1
        with TemporaryDirectory(prefix="attack-", ignore_cleanup_errors=True) as scratch:
            if said := candidate.run(Path(scratch)):
                case, told, candidates = candidate, said, _smaller(candidate)
    return case, told


def _smaller(case: Case) -> Iterator[Case]:
    smaller = getattr(case, "smaller", None)
    return iter(smaller() if smaller else ())


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    """Runs the command line; its status is 1 if anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__)
    parser.add_argument("--seed", type=int, help="of the cases (default: drawn, and told)")
    parser.add_argument("--minutes", type=float, default=10.0, help="when to stop (default: 10)")
    parser.add_argument("--family", choices=[*families()], action="append", help="default: all")
    parser.add_argument("--number", type=int, help="this case alone, once more")
    parser.add_argument("--out", type=Path, default=Path("/tmp/leporello-attack"))  # noqa: S108 -- the user's own
    given = parser.parse_args()
    seed = random.SystemRandom().randrange(10**6) if given.seed is None else given.seed
    _say(f"seed {seed}")
    tries = _Tries(given.out, seed)
    chosen = [family for name, family in families().items() if name in (given.family or [name])]
    if given.number is not None:
        told = [tries.attempt(family, given.number) for family in chosen]
        sys.exit(any(told))
    end = time.monotonic() + 60 * given.minutes
    while time.monotonic() < end:
        for family in chosen:
            tries.attempt(family, tries.next_of(family.NAME))
    table = tries.table()
    _say(table)
    sys.exit(any(row["wrong"] for row in tries.rows()))
