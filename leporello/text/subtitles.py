"""Finds cues in subtitle files (SubRip, WebVTT), and rewrites their texts."""

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from leporello.core.records import Place, Span

_TIME = r"(?:(\d+):)?(\d{1,2}):(\d{1,2})(?:[.,](\d{1,3}))?"
_TIMING = re.compile(rf"^[ \t\ufeff]*{_TIME}[ \t]*-->[ \t]*{_TIME}[^\n]*\n?", re.MULTILINE)
_WEB = re.compile(r"\ufeff?WEBVTT(?=\s|\Z)")
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_BLOCK = re.compile(r"(?:NOTE|STYLE|REGION)\b")
_NEXT_NUMBER = re.compile(r"\n[ \t]*\d+[ \t]*\n?\Z")
# `<i>`, `<c.yellow>`, `<v Ann>`, `<00:01:02.000>`; `{\an8}`. A lone `<` or `{laughs}` is text.
_PLACE = r"\{\\[^{}\n]*+\}"
MARKUP = re.compile(rf"</?[a-zA-Z][^<>\n]*>|</?[\d:.]+>|</>|{_PLACE}")
# `<v.loud Ann>` before a text of Ann's, which ends at the next such mark.
_VOICE = re.compile(
    r"(?P<dash>^[ \t]*+[-–—][ \t]*+)?<v(?:\.[^\s<>]*+)?[ \t]++(?P<name>[^<>\s][^<>]*+)>[ \t]*+",
    re.MULTILINE,
)
_RUBY = re.compile(r"<rt[^<>\n]*>(.*?)(?=</?r|\Z)", re.DOTALL)
# In SubRip other names in angle brackets are text.
_SUBRIP = re.compile(
    rf"</?(?:b|i|u|s|v|c|em|strong|font|span|lang|ruby|rt|p)(?:[\s.][^<>\n]*)?/?>|</?[\d:.]+>|</>|{_PLACE}",
    re.IGNORECASE,
)
_LINE_BREAK = re.compile(r"<br ?/?>", re.IGNORECASE)
_PLACES = re.compile(rf"(?:\s|{_PLACE})*+")
_OPENING = re.compile(rf"(?:\s|<[a-zA-Z][^<>\n]*+>|{_PLACE})*+")
_CLOSING = re.compile(r"</[a-zA-Z][^<>\n]*>")
_RENEWED = re.compile(r"</([a-zA-Z])>(?=[^\S\n]*\n)\s*+<\1>")  # <i>one</i> above <i>two</i>


@dataclass(frozen=True, slots=True)
class Cue(Place):
    """A cue's text, and the exact text around it in the file."""

    head: str = ""  # from the previous cue: number, times, settings, notes, styles, opening markup
    tail: str = ""  # closing markup; for the last cue also the remainder of the file


def rewritten(cues: Sequence[Cue], texts: Iterable[Iterable[str]]) -> str:
    """Returns a subtitle file with other texts in its cues, without blank lines, which end cues."""
    around = "".join(cue.head for cue in cues)
    # The file's own line ends, because players and diffs expect the file unchanged (decision 15).
    newline = "\r\n" if "\r\n" in around else "\n" if "\n" in around else "\r"
    web = _WEB.match(around) is not None
    spoken = (_unnamed(cue, lines) for cue, lines in zip(cues, texts, strict=True))
    bodies = (newline.join(line for line in lines if line.strip()) for lines in spoken)
    return "".join(
        f"{cue.head}{_escaped(body) if web else body}{cue.tail}"
        for cue, body in zip(cues, bodies, strict=True)
    )


def plain_text(text: str, web: bool) -> str:
    """Returns the text of a cue without markup, with the names of speakers: `Ann: Hello`."""
    text = _LINE_BREAK.sub("\n", same_length(text))
    text = _VOICE.sub(lambda voice: (voice["dash"] or "\n") + _name(voice) + ": ", text)
    text = (MARKUP if web else _SUBRIP).sub("", _RUBY.sub(r"(\1)", text))
    # Only WebVTT has character references; in SubRip `&lt;` is the text itself.
    text = html.unescape(text) if web else text
    return "\n".join(stripped for line in text.split("\n") if (stripped := line.strip()))


def _name(voice: re.Match[str]) -> str:
    return " ".join(voice["name"].split())


def _unnamed(cue: Cue, lines: Iterable[str]) -> Iterator[str]:
    """Yields a cue's lines without the name of its speaker if that is in the markup before them."""
    name = ""
    for voice in _VOICE.finditer(cue.head):
        name = f"{_name(voice)}: " if voice.end() == len(cue.head) else ""
    for number, line in enumerate(lines):
        yield line if number else line.removeprefix(name)


def same_length(text: str) -> str:
    """Replaces all line ends by newlines without changing offsets."""
    # A blank for the CR keeps every offset, so that heads and tails stay exact slices.
    return text.replace("\r\n", " \n").replace("\r", "\n")


def _escaped(text: str) -> str:
    # Only WebVTT has entities; there a raw `-->` in a text would end the cue.
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("-->", "--&gt;")


def cues(text: str, web: bool) -> Iterator[tuple[re.Match[str], Span, Span]]:
    """Yields each cue's timing, the span of its text, and that span without surrounding markup."""
    timings = list(_TIMING.finditer(text))
    ends = [timing.start() for timing in timings[1:]]
    for number, timing in enumerate(timings):
        start = timing.end()
        if number < len(ends):
            end = ends[number]
            # SubRip separates cues by their numbers, since texts there may contain blank lines.
            following = None if web else _NEXT_NUMBER.search(text, start - 1, end)
        else:
            end, following = len(text), None
        # In WebVTT a note or the next cue's name may follow a blank line; pysubs2 adds both to the
        # text of the cue before (decision 5).
        cut = _BLANK_LINE.search(text, start - 1, end) if web else following
        if cut and web and cut.start() == start - 1 and not _BLOCK.match(text, cut.end()):
            # The text is below the blank line, unless it is the name of the next cue.
            later = _BLANK_LINE.search(text, cut.end(), end)
            cut = later if later or end == len(text) else cut
        body = _stripped(text, start, max(start, cut.start()) if cut else end)
        yield timing, body, _unmarked(text, body)


def _stripped(text: str, start: int, end: int) -> Span:
    """Trims white space from a span; a blank span becomes empty at its start."""
    piece = text[start:end]
    stripped = piece.strip()
    begin = start + len(piece) - len(piece.lstrip()) if stripped else start
    return Span(begin, begin + len(stripped))


def _unmarked(text: str, body: Span) -> Span:
    """Trims markup around a text; if there is markup inside, trims only cue positions."""
    start, end = _end(_OPENING, text, body), body.end
    while start < end and text[end - 1] == ">":
        tag = text.rfind("<", start, end)
        if tag < 0 or not _CLOSING.fullmatch(text, tag, end):
            break
        end = tag
    inside = _stripped(text, start, max(start, end))
    if not MARKUP.search(_RENEWED.sub("\n", text[inside.start : inside.end])):
        return inside
    # Markup within the text has no known place in a translation and is dropped (decision 15).
    return Span(_end(_PLACES, text, body), body.end)


def _end(pattern: re.Pattern[str], text: str, body: Span) -> int:
    """Returns the end of a pattern's match at the start of a span; without a match, the start."""
    match = pattern.match(text, body.start, body.end)
    return match.end() if match else body.start
