"""Guesses the encoding of bytes, and whether a text is English."""

from __future__ import annotations

import codecs
import re
from itertools import islice

# UTF-32 before UTF-16, whose little-endian mark is a prefix of UTF-32's.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Common encodings of files that are not UTF-8, and iconv's names of them. Among all encodings,
# short texts would match too many.
_OLD = {
    "cp1252": "WINDOWS-1252", "cp1250": "WINDOWS-1250", "cp1251": "WINDOWS-1251",
    "cp1253": "WINDOWS-1253", "cp1254": "WINDOWS-1254", "cp1255": "WINDOWS-1255",
    "cp1256": "WINDOWS-1256", "cp1257": "WINDOWS-1257", "koi8_r": "KOI8-R",
    "iso8859_2": "ISO-8859-2", "mac_roman": "MACINTOSH", "cp437": "CP437", "gb18030": "GB18030",
    "big5": "BIG5", "cp932": "SHIFT-JIS", "euc_jp": "EUC-JP", "cp949": "CP949",
}  # fmt: skip
_SAMPLE = 2**16  # bytes that are examined
_LINES_BEYOND_ASCII = re.compile(rb"[^\n]{0,200}[\x80-\xff][^\n]{0,200}")
_MOSTLY = 5  # characters beyond ASCII per undecodable byte, in UTF-8 with faults
_REPLACED = "\N{REPLACEMENT CHARACTER}"
_FEWEST = 4  # bytes beyond ASCII that identify an encoding
_SHORTEST = 4  # bytes of UTF-16 that its zeros identify


_WORD = re.compile(r"[^\W\d_]+")
# Common in English, rare in related languages (`in`, `is`, `of`, `was` are also Dutch or German).
_COMMON_WORDS = frozenset([
    "the", "and", "that", "with", "for", "from", "this", "which", "by", "had", "have", "they",
    "are", "were", "not", "but", "it", "to", "his", "her", "you", "at", "be", "she",
])  # fmt: skip
_FEWEST_WORDS = 40  # shorter texts are not judged
_MOST_WORDS = 2000  # words that are examined
_SHARE = 0.06  # English prose has 0.2 to 0.33; English lists and tables a few hundredths more


def marked_encoding(data: bytes) -> tuple[str, int] | None:
    """Returns the encoding of a byte order mark and the mark's length; None without a mark."""
    encodings = ((name, len(mark)) for mark, name in _MARKS if data.startswith(mark))
    return next(encodings, None)


def looks_like(data: bytes) -> str:
    """Returns the most likely encoding of text, in capitals as in iconv; empty for UTF-8."""
    name = (marked_encoding(data) or (guessed_encoding(data), 0))[0]
    return "" if name in ("", "utf-8") else _OLD.get(name, name.upper())


def guessed_encoding(data: bytes) -> str:
    """Returns the most likely encoding of text without a mark, by Python's name.

    Empty for UTF-8, even with faults: valid UTF-8 sequences are rare in other encodings.
    """
    if wide := _wide(data[:_SAMPLE]):
        return wide
    try:
        data.decode()
    except UnicodeDecodeError:
        sample = _beyond_ascii(data)
        # A file cut within a character, or with one bad byte, is still UTF-8.
        text = sample.decode("utf-8", "replace")
        broken, beyond_ascii = text.count(_REPLACED), sum(c > "\x7f" for c in text)
        return "" if beyond_ascii > _MOSTLY * broken else _old(sample)
    return ""


def _wide(head: bytes) -> str:
    """Returns which UTF-16 or UTF-32 bytes are in, by the positions of zeros; empty if neither."""
    head = head[: len(head) // 4 * 4] if len(head) > _SHORTEST else head
    zeros = [head[i::4].count(0) * 4 > len(head) * 0.9 for i in range(4)]
    if zeros in ([False, True, True, True], [True, True, True, False]):
        wide = "utf-32-le" if zeros[3] else "utf-32-be"
        return wide if _is_clean(head.decode(wide, "replace")) else ""
    counts = {"utf-16-be": head[::2].count(0), "utf-16-le": head[1::2].count(0)}
    (_, fewer), (name, most) = sorted(counts.items(), key=lambda item: item[1])
    if len(head) < _SHORTEST or not most or fewer * 20 > most:
        return ""
    try:
        head.decode()
        share = 5
    except UnicodeDecodeError:  # a text with few Latin letters has few zeros
        share = 200
    return name if most * share > len(head) and _is_clean(head.decode(name, "replace")) else ""


def _is_clean(text: str) -> bool:
    unprintable = sum(not (c.isprintable() or c.isspace()) or c == _REPLACED for c in text)
    return unprintable * 100 < len(text)


def _beyond_ascii(data: bytes) -> bytes:
    """Returns the first lines with characters beyond ASCII, which identify an encoding."""
    sample = b""
    for line in _LINES_BEYOND_ASCII.finditer(data):
        sample += line[0] + b"\n"
        if len(sample) > _SAMPLE:
            break
    return sample


def _old(sample: bytes) -> str:
    """Returns the most likely encoding that predates Unicode."""
    from charset_normalizer import from_bytes

    # A dash or an é alone fits most of the encodings.
    if sum(byte > 0x7F for byte in sample) < _FEWEST:  # noqa: PLR2004 -- where ASCII ends
        return "cp1252"
    # Tried on 19 texts: 17 right with one line, 16 with twenty; Turkish and Hebrew were missed.
    matches = [*from_bytes(sample, cp_isolation=[*_OLD], preemptive_behaviour=False)]
    # Where several encodings match equally well, Windows-1252 is the most common.
    likely = (m for m in matches if m.encoding == "cp1252" and m.chaos <= matches[0].chaos)
    return next(likely, matches[0]).encoding if matches else "cp1252"


def looks_english(text: str) -> bool:
    """Returns whether a text looks like English; short texts always do.

    Args:
        text: Text of any length; only its first 2,000 words are examined.
    """
    words = [match.group().lower() for match in islice(_WORD.finditer(text), _MOST_WORDS)]
    # In a short text one foreign name changes the share too much.
    if len(words) < _FEWEST_WORDS:
        return True
    return sum(word in _COMMON_WORDS for word in words) / len(words) >= _SHARE
