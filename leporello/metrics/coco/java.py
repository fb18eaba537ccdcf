"""Runs coco-caption's Java programs, and splits texts into words with its tokenizer."""

import atexit
import importlib.util
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import IO

from leporello.core.environment.extras import require
from leporello.core.errors import UserError

_REPORTED = 500  # last characters of a program's stderr that an error reports


@dataclass
class LineProcess:
    """Program that starts at the first request, and restarts at the next request after it ended."""

    command: Sequence[str]  # program and arguments
    folder: Path  # working directory of the program
    _process: subprocess.Popen[bytes] | None = None
    _stderr: IO[bytes] | None = None
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def ask(self, lines: Sequence[str], count: int, *, skip: str = "") -> list[str]:
        r"""Writes lines without `\n`, and returns the next `count` lines except `skip`."""
        with self._lock:
            try:
                process = self._process or self._start()
                data = "".join(f"{line}\n" for line in lines).encode(errors="replace")
                # In a thread, since a full pipe would block both sides.
                threading.Thread(target=_write, args=(process.stdin, data), daemon=True).start()
                return [self._next_line(process, skip) for _ in range(count)]
            except BaseException:  # the program ended, or an interrupt before its answer
                self.close()
                raise

    def close(self) -> None:
        """Ends the program."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 -- lives as long as the program
        self._process = subprocess.Popen(  # noqa: S603 -- fixed arguments, and `java` from the path
            self.command, cwd=self.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self._stderr, start_new_session=True,  # Ctrl-C ends the main process first
        )  # fmt: skip
        atexit.register(self.close)
        return self._process

    def _next_line(self, process: subprocess.Popen[bytes], skip: str) -> str:
        assert process.stdout is not None
        for line in process.stdout:
            text = line.decode().removesuffix("\n")
            if text != skip or not skip:
                return text
        assert self._stderr is not None
        self._stderr.seek(0)
        message = self._stderr.read().decode(errors="replace").strip()
        raise RuntimeError(
            f"{' '.join(self.command)} ended: {message[-_REPORTED:] or 'without a message'}"
        )


def need_coco(metric: str) -> None:
    """Raises UserError if the extra `muld` or Java is not installed."""
    require(f"the metric {metric!r}", "pycocoevalcap")
    if shutil.which("java") is None:
        raise UserError(
            f"the metric {metric!r} runs Java programs, but `java` is not on the path;"
            " install a Java runtime (8 to 17 are known to work), for instance with"
            " `apt install default-jre-headless`, or use another metric"
        )


def coco_program(folder: str, *arguments: str) -> LineProcess:
    """Returns a Java program in a folder of coco-caption, with these arguments."""
    spec = importlib.util.find_spec("pycocoevalcap")
    assert spec is not None
    assert spec.submodule_search_locations
    root = Path(spec.submodule_search_locations[0])
    return LineProcess(["java", "-Dfile.encoding=UTF-8", *arguments], root / folder)


def _write(pipe: IO[bytes], data: bytes) -> None:
    with suppress(OSError, ValueError):  # the program has ended
        pipe.write(data)
        pipe.flush()


# As in ptbtokenizer.py. Brackets stay, since the tokenizer writes them in lower case: `-lrb-`.
_BRACKETS_AND_QUOTES = ("''", "'", "``", "`", "-LRB-", "-RRB-", "-LCB-", "-RCB-")
_PUNCTUATION = frozenset((*_BRACKETS_AND_QUOTES, ".", "?", "!", ",", ":", "-", "--", "...", ";"))
_LINE_BREAK = re.compile(r"[\n\r\v\f\x85\u2028\u2029]")  # otherwise the program answers two lines
_CACHED = 64  # answers with references, since each metric requests the same words

# The program flushes its output in blocks of 8192 bytes: a line after the texts marks the end, and
# another line fills the block.
_END = "end"
_FILLER = "leporello" * 2000


@lru_cache(maxsize=_CACHED)
def coco_words(*texts: str) -> tuple[str, ...]:
    """Returns the words of each text in lower case, separated by single blanks.

    The official script passes all texts at once; here each text is a separate line, so that its
    words do not depend on the other texts.
    """
    program = _program()
    lines = [*(_LINE_BREAK.sub(" ", text) for text in texts), _END]
    *answers, end = program.ask([*lines, _FILLER], len(lines), skip=_FILLER)
    if end != _END:
        program.close()
        raise RuntimeError(f"Stanford's tokenizer answered {answers!r:.200} to {texts!r:.80}")
    return tuple(
        " ".join(word for word in answer.split(" ") if word not in _PUNCTUATION)
        for answer in answers
    )


@cache
def _program() -> LineProcess:
    tokenizer = "edu.stanford.nlp.process.PTBTokenizer"
    options = ["-preserveLines", "-lowerCase"]
    return coco_program("tokenizer", "-cp", "stanford-corenlp-3.4.1.jar", tokenizer, *options)
