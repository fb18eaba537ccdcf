"""Subtitles (SubRip, WebVTT): texts of cues, with one place per cue and the text around it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from leporello.core.errors import UserError
from leporello.core.records import Loss, Place
from leporello.loaders.files import Format
from leporello.loaders.text import decoded
from leporello.text.outline import Extracted, tile
from leporello.text.subtitles import Cue, cues, plain_text, same_length

# Lines of times, valid or not.
_ARROW = re.compile(r"^[ \t\ufeff]*\d+:[\d:.,]+[ \t]*-{1,3}>", re.M)
# Times of words, in captions that show the line before again.
_ROLLING = re.compile(r"<\d\d:\d\d[:.\d]*><c>")


@dataclass(frozen=True)
class Subtitles(Format):
    """Subtitles (SubRip, WebVTT): texts of cues, with one place per cue.

    Attributes:
        encoding: Encoding of files without a byte order mark; detected if empty.
    """

    suffixes: ClassVar[tuple[str, ...]] = (".srt", ".vtt")
    begins: ClassVar[re.Pattern[bytes]] = re.compile(rb"(?:\xef\xbb\xbf)?WEBVTT")

    encoding: str = ""

    def extract(self, data: bytes, path: Path) -> Extracted:
        """Returns the texts of cues, with the names of their speakers and without styling.

        Places are named by the start of a cue, `00:01:02`; line breaks in cues are kept. Captions
        that roll up show lines twice, which are written once.
        """
        raw = decoded(data, path, self.encoding, "Subtitles")
        text = raw.text
        # The content counts too, since some WebVTT files have the suffix `.srt`.
        web = path.suffix.lower() == ".vtt" or bool(self.begins.match(data))
        timed = list(cues(same_length(text), web))
        if not timed:
            raise UserError(f"{path}: has no cue (a line such as 00:01:02,000 --> 00:01:05,000)")
        if text.count("->") > len(timed) and (faulty := len(_ARROW.findall(text)) - len(timed)) > 0:
            loss = Loss("cue", "has no valid times", count=faulty)
            raw = replace(raw, losses=(*raw.losses, loss))
        bodies = [plain_text(text[body.start : body.end], web) for _, body, _ in timed]
        names = [_clock(*timing.groups(default="0")[:3]) for timing, _, _ in timed]
        if web and _ROLLING.search(text):
            rolled = _rolled(names, bodies)
            return replace(raw, text=rolled.text, places=rolled.places)
        joined, spans = tile(bodies, "\n")
        ends = [0, *(body.end for _, body, _ in timed[:-1]), len(text)]
        heads = (
            text[begin : inner.start] for begin, (_, _, inner) in zip(ends, timed, strict=False)
        )
        tails = (text[inner.end : end] for end, (_, _, inner) in zip(ends[1:], timed, strict=True))
        cues_ = zip(names, spans, heads, tails, strict=True)
        places = tuple(Cue(n, s.start, s.end, h, t) for n, s, h, t in cues_)
        return replace(raw, text=joined, places=places)


def _rolled(names: Sequence[str], bodies: Sequence[str]) -> Extracted:
    """Returns captions without the lines that the caption before already showed."""
    shown: list[str] = []
    news: list[tuple[str, str]] = []
    for name, body in zip(names, bodies, strict=True):
        lines = body.split("\n")
        if new := "\n".join(line for line in lines if line not in shown):
            news.append((name, new))
        shown = lines
    joined, spans = tile((new for _, new in news), "\n")
    places = (Place(n, s.start, s.end) for (n, _), s in zip(news, spans, strict=True))
    return Extracted(joined, places=(*places,))


def _clock(hours: str, minutes: str, seconds: str) -> str:
    return f"{int(hours):02}:{int(minutes):02}:{int(seconds):02}"
