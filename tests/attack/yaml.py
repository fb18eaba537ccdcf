"""Configs with changed bytes, lines and tokens: each loads, or is refused with a reason.

In this process, since two thousand starts of the command line would take an hour.
"""

from __future__ import annotations

import re
import resource
import textwrap
import time
import traceback
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

from leporello.config import load_config
from leporello.core.errors import UserError

_ROOT = Path(__file__).parents[2]
_SECONDS, _MEGABYTES = 3.0, 200  # of computing, and more than the process had
_TOKENS = re.compile(rb"[\w.]+|\s+|[^\w\s]")
_ODD = (
    b"\0", b"\xff", b"\xed\xa0\x80", b"\t", b"\r", b"#", b"&a ", b"*a", b"!!int ", b"!!binary ''",
    b"!!python/name:os ", b"? ", b"- ", b": ", b"{", b"}", b"[", b"]", b'"', b"'", b"|", b">", b"~",
    b"%YAML 1.1\n", b"---\n", b"...\n", b"<<: ", b"null", b"true", b".inf", b".nan", b"-1",
    b"1e999", b"0x10", b"9" * 50, b"9" * 5000, b"2001-01-01", b"1:2", b"sweep", b"range", b"class",
    b"{sweep: []}", b"{range: [1, 2]}", b"{class: }", b"extends", b'"\\0"', b'"\\ud800"', b"model",
    b"./x.py:Y", b"a.b.C", b"a:b:c", b"/dev/zero:X", b"~:X", b"~nobody/x.py:Y", b"//", b"..", b"@",
    b"@@=,", b"*", b"x" * 300, b"\xe2\x80\xa8", b"\xc2\x85", b"https://x/y", b"s3://x/y", b"$HOME",
    b"[[[]]]", b"{a: {b: {}}}", b"!!set {}", b"\xf0\x9f\x92\xa9", b"[*a, *a, *a]", b"1_0", b"0o9",
)  # fmt: skip


@cache
def _bases() -> tuple[bytes, ...]:
    """Returns the project's own configs, and those that its documentation shows."""
    files = ("pipelines.yaml", "docs/gallery.yaml", "benchmarks/methods.yaml")
    shown = (
        textwrap.dedent(text).encode()
        for page in sorted((_ROOT / "docs").glob("*.md"))
        for text in re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    )
    return (*((_ROOT / file).read_bytes() for file in files), *shown)


@dataclass(frozen=True)
class Mutation:
    """A changed config.

    Attributes:
        name: Which config, and how often it is changed.
        text: What it says.
    """

    name: str
    text: bytes
    command: str = "leporello check --config mine.yaml"

    def run(self, folder: Path) -> str | None:
        """Loads it over the built-in config."""
        file = folder / "mine.yaml"
        file.write_bytes(self.text)
        _warm()
        before, began = _megabytes(), time.process_time()
        try:
            load_config([file])
        except UserError as error:
            if not str(error).strip():
                return "refused without a word"
        except BaseException as error:
            return f"traceback: {traceback.format_exception_only(error)[-1].strip()}"
        if (took := time.process_time() - began) > _SECONDS:
            return f"took {took:.1f} s"
        grown = _megabytes() - before
        return f"took {grown:.0f} MB" if grown > _MEGABYTES else None


@cache
def _warm() -> None:
    """Imports what any config needs, which is no fault of the first."""
    load_config()


def _megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def case(random: Random, number: int) -> Mutation:
    """Most of them small: the large built-in one takes its time."""
    bases = _bases()
    at = random.randrange(3) if number % 10 == 0 else random.randrange(3, len(bases))
    text, times = bases[at], random.choice((1, 1, 1, 2, 3, 5))
    for _ in range(times):
        text = random.choice((_bytes, _lines, _tokens))(random, text)
    return Mutation(f"config {at}, {times} changes", text)


def _bytes(random: Random, text: bytes) -> bytes:
    at = random.randrange(len(text) + 1)
    changed = (
        text[at + random.randrange(1, 20) :],
        bytes([random.randrange(256)]) + text[at + 1 :],
        random.choice(_ODD) + text[at:],
        bytes([(*text, 0)[at] ^ 1 << random.randrange(8)]) + text[at + 1 :],
    )
    return text[:at] + random.choice(changed)


def _lines(random: Random, text: bytes) -> bytes:
    lines = text.split(b"\n")
    at, other = random.randrange(len(lines)), random.randrange(len(lines))
    line = lines[at]
    changed: tuple[list[bytes], ...] = (
        [],
        [lines[other]],
        [line, line],
        [b" " * random.randrange(8) + line.lstrip()],
        [line[: random.randrange(len(line) + 1)]],
    )
    return b"\n".join([*lines[:at], *random.choice(changed), *lines[at + 1 :]])


def _tokens(random: Random, text: bytes) -> bytes:
    tokens = _TOKENS.findall(text) or [b""]
    at, other = random.randrange(len(tokens)), random.randrange(len(tokens))
    odd = random.choice(_ODD)
    tokens[at] = random.choice((tokens[other], odd, odd + tokens[at], tokens[at] * 50))
    return b"".join(tokens)
