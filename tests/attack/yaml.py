"""Attacks that change bytes, lines and tokens of configs: each loads, or is refused with a reason.

The configs are loaded in this process, as two thousand starts of the command line take an hour.
"""

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
_SECONDS, _MEGABYTES = 3.0, 200  # limits of CPU time and of additional memory
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
    """Returns the configs of the project and of its documentation."""
    files = ("pipelines.yaml", "docs/gallery.yaml", "benchmarks/methods.yaml")
    examples = (
        textwrap.dedent(text).encode()
        for page in sorted((_ROOT / "docs").glob("*.md"))
        for text in re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    )
    return (*((_ROOT / file).read_bytes() for file in files), *examples)


@dataclass(frozen=True)
class Mutation:
    """Config with changes."""

    name: str  # number of the config, and number of changes
    text: bytes  # content of the config

    def run(self, folder: Path) -> str | None:
        """Loads the config after the built-in one; returns a line on the fault, or None."""
        file = folder / "mine.yaml"
        file.write_bytes(self.text)
        _warm()
        before, start = _megabytes(), time.process_time()
        try:
            load_config([file])
        except UserError as error:
            if not str(error).strip():
                return "refused without a reason"
        except BaseException as error:
            return f"traceback: {traceback.format_exception_only(error)[-1].strip()}"
        if (took := time.process_time() - start) > _SECONDS:
            return f"took {took:.1f} s"
        grown = _megabytes() - before
        return f"took {grown:.0f} MB" if grown > _MEGABYTES else None


@cache
def _warm() -> None:
    """Imports the modules that any config needs, so that the first case is not blamed for them."""
    load_config()


def _megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def case(random: Random, number: int) -> Mutation:
    """Returns a case; every tenth one changes one of the first three configs, which are slow."""
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
    at, source = random.randrange(len(lines)), random.randrange(len(lines))
    line = lines[at]
    changed: tuple[list[bytes], ...] = (
        [],
        [lines[source]],
        [line, line],
        [b" " * random.randrange(8) + line.lstrip()],
        [line[: random.randrange(len(line) + 1)]],
    )
    return b"\n".join([*lines[:at], *random.choice(changed), *lines[at + 1 :]])


def _tokens(random: Random, text: bytes) -> bytes:
    tokens = _TOKENS.findall(text) or [b""]
    at, source = random.randrange(len(tokens)), random.randrange(len(tokens))
    odd = random.choice(_ODD)
    tokens[at] = random.choice((tokens[source], odd, odd + tokens[at], tokens[at] * 50))
    return b"".join(tokens)
