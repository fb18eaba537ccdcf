"""Subtitles (SubRip, WebVTT) as text: where cues and their lines stand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from leporello.core.records import Place, Span

_TIME = r"(?:(\d+):)?(\d{1,2}):(\d{1,2})[.,](\d{1,3})"
_LINE = rf"[ \t\ufeff]*{_TIME}[ \t]*-->[ \t]*{_TIME}[^\n]*\n?"
_TIMING = re.compile(rf"^{_LINE}", re.MULTILINE)
_WEB = re.compile(r"\ufeff?WEBVTT(?=\s|\Z)")
# How a text begins that is subtitles: by a cue, numbered or not.
_FIRST_CUE = re.compile(rf"\ufeff?\s*+(?:\d+[ \t]*\n)?{_LINE}")
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_NEXT_NUMBER = re.compile(r"\n[ \t]*\d+[ \t]*\n?\Z")
# `<i>`, `<c.yellow>`, `<v Ann>`, `<00:01:02.000>`; `{\an8}`. A lone `<` or `{laughs}` is text.
_PLACE = r"\{\\[^{}\n]*+\}"
MARKUP = re.compile(rf"</?[a-zA-Z][^<>\n]*>|</?[\d:.]+>|</>|{_PLACE}")
_PLACES = re.compile(rf"(?:\s|{_PLACE})*+")
_OPENING = re.compile(rf"(?:\s|<[a-zA-Z][^<>\n]*+>|{_PLACE})*+")
_CLOSING = re.compile(r"</[a-zA-Z][^<>\n]*>")
_RENEWED = re.compile(r"</([a-zA-Z])>(?=[^\S\n]*\n)\s*+<\1>")  # <i>one</i> above <i>two</i>


@dataclass(frozen=True, slots=True)
class Cue(Place):
    """A cue's text, and what stands around it in the file, to the character.

    All heads, texts and tails one after the other are the file, unless there is markup in the
    middle of a text.

    Attributes:
        head: Text between the cue before and this one: its number, times and settings; blank lines,
            notes and styles; markup that opens.
        tail: Markup that closes; of the last cue all that follows as well.
    """

    head: str = ""
    tail: str = ""


def cue_lines(text: str) -> tuple[tuple[Span, ...], ...] | None:
    """Returns where the lines of each cue's text stand in the text of a subtitle file.

    Markup around a line is left out. None for what does not begin like such a file.
    """
    plain = same_length(text[:1000])
    web = _WEB.match(plain) is not None
    if not web and not _FIRST_CUE.match(plain):
        return None
    plain = same_length(text)
    return tuple(tuple(_lines(plain, inner)) for _, _, inner in cues(plain, web))


def rewritten(cues: Sequence[Cue], texts: Iterable[Iterable[str]]) -> str:
    """Returns a subtitle file with other texts in its cues.

    Args:
        cues: Cues of the file.
        texts: The lines of each cue; blank ones, which would end it, fall away.
    """
    around = "".join(cue.head for cue in cues)
    newline = "\r\n" if "\r\n" in around else "\n" if "\n" in around else "\r"
    web = _WEB.match(around) is not None
    bodies = (newline.join(line for line in lines if line.strip()) for lines in texts)
    return "".join(
        f"{cue.head}{_escaped(body) if web else body}{cue.tail}"
        for cue, body in zip(cues, bodies, strict=True)
    )


def same_length(text: str) -> str:
    """Returns a text with newlines for all line ends, every character where it was."""
    return text.replace("\r\n", " \n").replace("\r", "\n")


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("-->", "--&gt;")


def cues(text: str, web: bool) -> Iterator[tuple[re.Match[str], Span, Span]]:
    """Yields each cue's timing, where its text stands, and where without markup around it."""
    timings = list(_TIMING.finditer(text))
    ends = [timing.start() for timing in timings[1:]]
    for number, timing in enumerate(timings):
        start = timing.end()
        if number < len(ends):
            end = ends[number]
            following = None if web else _NEXT_NUMBER.search(text, start - 1, end)
        else:
            end, following = len(text), None
        # In WebVTT a comment or the next cue's name may follow a blank line.
        cut = _BLANK_LINE.search(text, start - 1, end) if web else following
        body = _inked(text, start, max(start, cut.start()) if cut else end)
        yield timing, body, _unmarked(text, body)


def _inked(text: str, start: int, end: int) -> Span:
    """Returns a stretch without the white space around it; blank, its empty beginning."""
    piece = text[start:end]
    kept = piece.strip()
    begin = start + len(piece) - len(piece.lstrip()) if kept else start
    return Span(begin, begin + len(kept))


def _unmarked(text: str, body: Span) -> Span:
    """Returns a text without markup around it: all, if none is left in it; else positions alone."""
    start, end = _end(_OPENING, text, body), body.end
    while start < end and text[end - 1] == ">":
        tag = text.rfind("<", start, end)
        if tag < 0 or not _CLOSING.fullmatch(text, tag, end):
            break
        end = tag
    inside = _inked(text, start, max(start, end))
    if not MARKUP.search(_RENEWED.sub("\n", text[inside.start : inside.end])):
        return inside
    return Span(_end(_PLACES, text, body), body.end)


def _end(pattern: re.Pattern[str], text: str, body: Span) -> int:
    found = pattern.match(text, body.start, body.end)
    return found.end() if found else body.start


def _lines(text: str, body: Span) -> Iterator[Span]:
    """Yields the lines of a cue's text, blank ones left out, without markup around each."""
    start = body.start
    for line in text[body.start : body.end].splitlines(keepends=True):
        inside = _unmarked(text, _inked(text, start, start + len(line)))
        if len(inside):
            yield inside
        start += len(line)
