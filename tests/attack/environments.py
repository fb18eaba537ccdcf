"""Attacks with broken environments: limits, missing folders, odd files in the cache.

A command does its work, or ends with a sentence; a run that is repeated without the fault has all
results of an uninterrupted one.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.attack.command import leporello, wrong
from tests.attack.stores import different, full_command, uninterrupted

_FAULTS = {
    "no variables": 'exec env -i PYTHONPATH="$PYTHONPATH" "$@"',
    "no home": 'HOME=/nonexistent LEPORELLO_CACHE= exec "$@"',
    "unknown user": 'chmod -R a+rwX . ..; unset HOME LEPORELLO_CACHE; exec USER "$@"',
    "a cache of root": 'mkdir -p cache; chmod 700 cache; chmod a+rwX . ..; exec USER "$@"',
    "few files": 'ulimit -n FILES; exec "$@"',
    "little memory": 'ulimit -v MEMORY; exec "$@"',
    "small files": 'ulimit -f BLOCKS; exec "$@"',
    "few processes": 'chmod -R a+rwX . ..; ulimit -u 3; exec USER "$@"',
    "no TMPDIR": 'TMPDIR=/nonexistent exec "$@"',
    "ASCII": 'LANG=C LC_ALL=C PYTHONIOENCODING=ascii exec "$@"',
    "no locale": 'LC_ALL=xx_XX.UTF-8 exec "$@"',
    "no folder": 'mkdir here; cd here; rmdir ../here; exec "$@"',
    "cache is a file": 'touch cache; exec "$@"',
    "cache is a pipe": 'rm -rf cache; mkfifo cache; exec "$@"',
    "folders in the cache": '"$@" >first 2>&1; rm -rf out; find cache -type f | while read f; do'
                            ' rm "$f"; mkdir "$f"; done; exec "$@"',
    "pipes in the cache": '"$@" >first 2>&1; rm -rf out; find cache -type f | while read f; do'
                          ' rm "$f"; mkfifo "$f"; done; exec "$@"',
    "links in the cache": '"$@" >first 2>&1; rm -rf out; find cache -type f | while read f; do'
                          ' rm "$f"; ln -s "$f" "$f"; done; exec "$@"',
    "out is a file": 'touch out; exec "$@"',
    "out is a pipe": 'mkfifo out; exec "$@"',
    "out cannot be written": 'mkdir -p out; chmod a-w out; chmod a+rX . ..; exec USER "$@"',
    "out is removed": 'LAMP_DOES="rm -rf out" exec "$@"',
    "out is moved": 'LAMP_DOES="mv out other" exec "$@"',
    "out becomes a file": 'LAMP_DOES="rm -rf out; touch out" exec "$@"',
    "stores are removed": 'LAMP_DOES="rm -rf out/journal" exec "$@"',
    "input is removed": 'LAMP_DOES="rm lamps.jsonl" exec "$@"',
    "cache is removed": 'LAMP_DOES="rm -rf cache" exec "$@"',
    "folder is removed": 'LAMP_DOES="rm -rf \\$PWD" exec "$@"',
}  # fmt: skip
_VERBS = (("run",), ("run",), ("ask", "lamps.jsonl", "who?"), ("list",), ("compare", "out"))
_USER = "setpriv --reuid=54321 --clear-groups"  # an id without an entry; only root can become it


_DOES = (
    '        if "LAMP_SECONDS"',
    '        done = Path(__file__).parents[1] / "done"\n'
    '        if "LAMP_DOES" in os.environ and not done.exists():\n'
    "            done.touch()\n"
    '            os.system(os.environ["LAMP_DOES"])\n'
    '        if "LAMP_SECONDS"',
)


@dataclass(frozen=True)
class Broken:
    """A command in a broken environment."""

    fault: str  # name of the fault
    verb: tuple[str, ...]  # verb and arguments
    workers: int  # number of workers of a run
    size: int  # size of the limit, in tenths

    def run(self, folder: Path) -> str | None:
        """Runs the command, and runs again without the fault."""
        folder = folder / "project"
        shutil.copytree(uninterrupted(), folder)
        shutil.rmtree(folder / "cache", ignore_errors=True)
        if self.verb[0] == "run":
            shutil.rmtree(folder / "out")
        self._write(folder)
        result = leporello(folder, *self._words(), shell=self._shell())
        if (fault := wrong(result, 0, 1, 2)) or self.verb[0] != "run":
            return fault
        if result.status == 1 and different(folder / "out") is None:
            return None  # some reads always fail
        if not result.stderr.strip():
            return "says nothing"
        folder.mkdir(exist_ok=True)
        self._write(folder)
        for path in (folder / "out", folder / "cache"):
            if path.is_dir():
                path.chmod(0o777)
            else:
                path.unlink(missing_ok=True)
        again = leporello(folder, *self._words())
        return wrong(again, 1) or different(folder / "out")

    def _write(self, folder: Path) -> None:
        """Writes the project's files, with a reader that causes the fault at its first read."""
        for name in ("lamps.jsonl", "mine.yaml"):
            shutil.copy(uninterrupted() / name, folder)
        plug_in = (uninterrupted() / "plug.py").read_text("utf-8")
        (folder / "plug.py").write_text(plug_in.replace(*_DOES), "utf-8")

    def _shell(self) -> str:
        sizes = {"FILES": 6 + 2 * self.size, "MEMORY": 100_000 * self.size, "BLOCKS": 2**self.size}
        shell = _FAULTS[self.fault].replace("USER", _USER)
        for name, size in sizes.items():
            shell = shell.replace(name, str(size))
        return shell

    def _words(self) -> tuple[str, ...]:
        options = ("--unsupervised",) if self.workers == 0 else ()
        words = full_command(self.verb, "--workers", str(self.workers), *options)
        return tuple("mine.yaml" if word.endswith("mine.yaml") else word for word in words)


def case(random: Random, number: int) -> Broken:
    """Returns a case; all faults occur in turn."""
    fault = [*_FAULTS][number % len(_FAULTS)]
    changes = "LAMP_DOES" in _FAULTS[fault] or number == 0
    verb = ("run",) if changes else random.choice(_VERBS)
    return Broken(fault, verb, random.choice((0, 0, 1, 2)), random.randrange(1, 10))
