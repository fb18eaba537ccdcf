"""Subtitles (SubRip, WebVTT): texts of cues, with one place per cue."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from leporello.core.errors import UserError
from leporello.core.records import Document, Loss, Place
from leporello.loaders.files import Format
from leporello.loaders.text import decoded
from leporello.text.outline import tile

_TIME = r"(?:(\d+):)?(\d{1,2}):(\d{1,2})(?:[.,](\d{1,3}))?"
_TIMING = re.compile(rf"^[ \t\ufeff]*{_TIME}[ \t]*-->[ \t]*{_TIME}[^\n]*\n?", re.MULTILINE)
# Lines of times, valid or not.
_ARROW = re.compile(r"^[ \t\ufeff]*\d+:[\d:.,]+[ \t]*-{1,3}>", re.M)
# Times of words, in captions that show the line before again.
_ROLLING = re.compile(r"<\d\d:\d\d[:.\d]*><c>")
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_BLOCK = re.compile(r"(?:NOTE|STYLE|REGION)\b")
_NEXT_NUMBER = re.compile(r"\n[ \t]*\d+[ \t]*\n?\Z")
# `<i>`, `<c.yellow>`, `<v Ann>`, `<00:01:02.000>`; `{\an8}`. A lone `<` or `{laughs}` is text.
_PLACE = r"\{\\[^{}\n]*+\}"
# Other names in angle brackets are text.
_MARKUP = re.compile(
    rf"</?(?:b|i|u|s|v|c|em|strong|font|span|lang|ruby|rt|p)(?:[\s.][^<>\n]*)?/?>|</?[\d:.]+>|</>|{_PLACE}",
    re.IGNORECASE,
)
# `<v.loud Ann>` before a text of Ann's, which ends at the next such mark.
_VOICE = re.compile(
    r"(?P<dash>^[ \t]*+[-–—][ \t]*+)?<v(?:\.[^\s<>]*+)?[ \t]++(?P<name>[^<>\s][^<>]*+)>[ \t]*+",
    re.MULTILINE,
)
_RUBY = re.compile(r"<rt[^<>\n]*>(.*?)(?=</?r|\Z)", re.DOTALL)
_LINE_BREAK = re.compile(r"<br ?/?>", re.IGNORECASE)


@dataclass(frozen=True)
class Subtitles(Format):
    """Subtitles (SubRip, WebVTT): texts of cues, with one place per cue."""

    suffixes = (".srt", ".vtt")
    begins = re.compile(rb"(?:\xef\xbb\xbf)?WEBVTT")

    encoding: str = ""

    def extract(self, data: bytes, path: Path) -> Document:
        """Returns the texts of cues, with the names of their speakers and without styling.

        Places are named by the start of a cue, `00:01:02`; line breaks in cues are kept. Captions
        that roll up show lines twice, which are written once.
        """
        raw = decoded(data, path, self.encoding, "Subtitles")
        text = raw.text.replace("\r\n", "\n").replace("\r", "\n")
        # The content counts too, since some WebVTT files have the suffix `.srt`.
        web = path.suffix.lower() == ".vtt" or bool(self.begins.match(data))
        cues = [*_cues(text, web)]
        if not cues:
            raise UserError(f"{path}: has no cue (a line such as 00:01:02,000 --> 00:01:05,000)")
        if text.count("->") > len(cues) and (faulty := len(_ARROW.findall(text)) - len(cues)) > 0:
            loss = Loss("cue", "has no valid times", count=faulty)
            raw = replace(raw, losses=(*raw.losses, loss))
        if web and _ROLLING.search(text):
            cues = [*_unrolled(cues)]
        joined, spans = tile((body for _, body in cues), "\n")
        places = (Place(name, s.start, s.end) for (name, _), s in zip(cues, spans, strict=True))
        return replace(raw, text=joined, places=(*places,))


def _unrolled(cues: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yields captions without the lines that the caption before already showed."""
    shown: list[str] = []
    for name, body in cues:
        lines = body.split("\n")
        if new := "\n".join(line for line in lines if line not in shown):
            yield name, new
        shown = lines


def _cues(text: str, web: bool) -> Iterator[tuple[str, str]]:
    """Yields the start of each cue, `00:01:02`, and its text without markup."""
    timings = [*_TIMING.finditer(text)]
    for number, timing in enumerate(timings):
        start, is_last = timing.end(), timing is timings[-1]
        end = len(text) if is_last else timings[number + 1].start()
        if web:
            # A note or the next cue's name may follow a blank line; pysubs2 adds both to the text
            # of the cue before (decision 5).
            cut = _BLANK_LINE.search(text, start - 1, end)
            if cut and cut.start() == start - 1 and not _BLOCK.match(text, cut.end()):
                # The text is below the blank line, unless it is the name of the next cue.
                later = _BLANK_LINE.search(text, cut.end(), end)
                cut = later if later or is_last else cut
        else:
            # Cues are separated by their numbers, since texts may contain blank lines.
            cut = None if is_last else _NEXT_NUMBER.search(text, start - 1, end)
        hours, minutes, seconds = map(int, timing.groups(default="0")[:3])
        body = text[start : max(start, cut.start()) if cut else end]
        yield f"{hours:02}:{minutes:02}:{seconds:02}", _plain(body.strip(), web)


def _plain(text: str, web: bool) -> str:
    """Returns the text of a cue without markup, with the names of speakers: `Ann: Hello`."""
    text = _VOICE.sub(_speaker, _LINE_BREAK.sub("\n", text))
    text = _MARKUP.sub("", _RUBY.sub(r"(\1)", text))
    # Only WebVTT has character references; in SubRip `&lt;` is the text itself.
    text = html.unescape(text) if web else text
    return "\n".join(stripped for line in text.split("\n") if (stripped := line.strip()))


def _speaker(voice: re.Match[str]) -> str:
    before, name = voice["dash"] or "\n", " ".join(voice["name"].split())
    return f"{before}{name}: "
