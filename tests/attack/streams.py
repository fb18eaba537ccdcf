"""Attacks that close or break standard streams: results and exit status stay right."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.attack.command import leporello, wrong
from tests.attack.stores import LOOKS, answer, different, full_command, uninterrupted

_VERBS = (("run",), *LOOKS, ("list",), ("schema",), ("check",), ("ask", "plug.py", "What pairs?"))
_FULL = ">/dev/full"
_REDIRECTIONS = (
    _FULL, ">&-", "2>&-", "<&-", ">&- 2>&- <&-", "2>/dev/full", ">/dev/full 2>&-", "| head -c 1",
)  # fmt: skip


@dataclass(frozen=True)
class Redirected:
    """A command with redirected streams."""

    verb: tuple[str, ...]  # verb, arguments and options
    redirection: str  # redirection of the shell

    def run(self, folder: Path) -> str | None:
        """Compares status, results and output with those of the same command without it."""
        shutil.copytree(uninterrupted(), folder, dirs_exist_ok=True)
        if self.verb[0] == "run":
            shutil.rmtree(folder / "out")
        expected = answer(self.verb)
        shell = f'set -o pipefail; "$@" {self.redirection}'
        ended = leporello(folder, *full_command(self.verb), shell=shell)
        failed = expected.status or 1
        statuses = {_FULL: [failed], "|": [0, failed]}.get(
            self.redirection.split()[0], [expected.status or 0]
        )
        if fault := wrong(ended, *statuses):
            return fault
        if self.redirection == _FULL and "standard output is incomplete" not in ended.stderr:
            return "does not say that standard output is incomplete"
        if self.verb[0] == "run":
            return different(folder / "out")
        is_whole = self.redirection.startswith(("2", "<"))
        return "prints another text" if is_whole and ended.stdout != expected.stdout else None


def case(random: Random, number: int) -> Redirected:
    """Returns a case; each redirection meets each verb in turn."""
    del random
    verb = _VERBS[number // len(_REDIRECTIONS) % len(_VERBS)]
    return Redirected(verb, _REDIRECTIONS[number % len(_REDIRECTIONS)])
