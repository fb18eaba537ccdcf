"""Java programs that answer lines with lines, kept alive for as long as this process."""

from __future__ import annotations

import atexit
import importlib.util
import queue
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from leporello.core.environment.extras import require
from leporello.core.errors import UserError

_TOLD = 500  # characters of what a program said before it ended


@dataclass
class LineProcess:
    """The program starts at the first question, and again at the next one after it has ended.

    Attributes:
        command: Program and arguments.
        folder: Working directory of the program.
    """

    command: Sequence[str]
    folder: Path
    _process: subprocess.Popen[bytes] | None = None
    _said: IO[bytes] | None = None
    _answers: queue.SimpleQueue[bytes] = field(default_factory=queue.SimpleQueue)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def ask(self, lines: Sequence[str], count: int, *, passing_over: str = "") -> list[str]:
        r"""Writes lines, without `\n` in them, and returns the next ones that come back.

        Raises:
            RuntimeError: The program ended instead.
        """
        with self._lock:
            try:
                process = self._process or self._start()
                assert process.stdin is not None
                process.stdin.write("".join(f"{line}\n" for line in lines).encode(errors="replace"))
                process.stdin.flush()
                return [self._answer(passing_over) for _ in range(count)]
            except BrokenPipeError:
                raise self._ended() from None
            except BaseException:  # interrupted between a question and its answer
                self.close()
                raise

    def close(self) -> None:
        """Ends the program."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 -- lives as long as the program
        self._answers = queue.SimpleQueue()
        self._process = subprocess.Popen(  # noqa: S603 -- our own words, and `java` from the path
            self.command, cwd=self.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self._said, start_new_session=True,  # Ctrl-C ends the window first, then this
        )  # fmt: skip
        atexit.register(self.close)
        reader = threading.Thread(
            target=_put_all, args=(self._process.stdout, self._answers), daemon=True
        )
        reader.start()  # so that neither side waits for the other with a full pipe
        return self._process

    def _answer(self, passing_over: str) -> str:
        while True:
            line = self._answers.get()
            if not line:
                raise self._ended()
            text = line.decode().removesuffix("\n")
            if text != passing_over or not passing_over:
                return text

    def _ended(self) -> RuntimeError:
        self.close()
        assert self._said is not None
        self._said.seek(0)
        message = self._said.read().decode(errors="replace").strip()
        return RuntimeError(
            f"{' '.join(self.command)} ended: {message[-_TOLD:] or 'without a word'}"
        )


def need_coco(metric: str) -> None:
    """Looks for the programs of coco-caption and for Java.

    Raises:
        UserError: The extra `muld` is not installed, or there is no Java.
    """
    require(f"the metric {metric!r}", "pycocoevalcap")
    if shutil.which("java") is None:
        raise UserError(
            f"the metric {metric!r} runs Java programs, and there is no `java` on the path;"
            " install a Java runtime (8 to 17 are known to do), for instance"
            " `apt install default-jre-headless`, or take another metric"
        )


def coco_program(folder: str, *arguments: str) -> LineProcess:
    """Returns a program of a folder of coco-caption, run by Java with these arguments."""
    spec = importlib.util.find_spec("pycocoevalcap")
    assert spec is not None
    assert spec.submodule_search_locations
    root = Path(spec.submodule_search_locations[0])
    return LineProcess(["java", "-Dfile.encoding=UTF-8", *arguments], root / folder)


def _put_all(source: IO[bytes], target: queue.SimpleQueue[bytes]) -> None:
    for line in source:
        target.put(line)
    target.put(b"")
