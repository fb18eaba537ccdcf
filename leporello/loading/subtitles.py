"""Subtitles (SubRip, WebVTT): the cues' texts, one section a cue."""

from __future__ import annotations

import html
import re
from pathlib import Path

from leporello.errors import UserError
from leporello.loading.extracted import Extracted, tile
from leporello.loading.plain import decode

__all__ = ["extract"]

_TIME = r"(?:(\d+):)?(\d{1,2}):(\d{1,2})[.,](\d{1,3})"
_TIMING = re.compile(rf"^[ \t]*{_TIME}[ \t]*-->[ \t]*{_TIME}[^\n]*\n?", re.MULTILINE)
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_NEXT_NUMBER = re.compile(r"(?:^|\n)[ \t]*\d+[ \t]*\n?\Z")
# `<i>`, `<c.yellow>`, `<v Ann>`, `<00:01:02.000>`; `{\an8}`. A lone `<` or `{laughs}` is text.
_MARKUP = re.compile(r"</?[a-zA-Z][^<>\n]*>|</?[\d:.]+>|</>|\{\\[^}\n]*\}")


def extract(data: bytes, path: Path) -> Extracted:
    """Returns the cues' texts, a newline between cues, styling left out.

    Sections are named `cue 12, 00:01:02.000–00:01:05.000`; a cue's own lines are kept.

    Raises:
        UserError: There is no cue, or the bytes are not text in a known encoding.
    """
    text = decode(data, path).replace("\r\n", "\n").replace("\r", "\n")
    timings = list(_TIMING.finditer(text))
    if not timings:
        raise UserError(f"{path}: there is no cue (a line such as 00:01:02,000 --> 00:01:05,000)")
    clean = _web_text if path.suffix.lower() == ".vtt" else _subrip_text
    ends = [timing.start() for timing in timings[1:]]
    bodies = [text[t.end() : end] for t, end in zip(timings, ends, strict=False)]
    last = text[timings[-1].end() :]
    texts = [*map(clean, bodies), clean(f"{last}\n\n0\n")]
    return tile([_title(*numbered) for numbered in enumerate(timings, 1)], texts, "\n")


def _subrip_text(body: str) -> str:
    """Returns a cue's lines without the next cue's number, which follows them in the file."""
    return _plain(_NEXT_NUMBER.sub("", body))


def _web_text(body: str) -> str:
    """Returns a cue's lines up to the first blank one; a comment or the next name may follow."""
    return html.unescape(_plain(_BLANK_LINE.split(f"\n{body}" if body[:1] == "\n" else body)[0]))


def _plain(text: str) -> str:
    lines = (line.strip() for line in _MARKUP.sub("", text).split("\n"))
    return "\n".join(line for line in lines if line)


def _title(number: int, timing: re.Match[str]) -> str:
    parts = timing.groups(default="0")
    return f"cue {number}, {_clock(*parts[:4])}–{_clock(*parts[4:])}"


def _clock(hours: str, minutes: str, seconds: str, fraction: str) -> str:
    return f"{int(hours):02}:{int(minutes):02}:{int(seconds):02}.{fraction.ljust(3, '0')}"
