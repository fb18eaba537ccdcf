"""Guesses from looks: the encoding of bytes, and whether a text is English."""

from __future__ import annotations

import codecs
import re
from itertools import islice

# UTF-32 first: its little-endian mark begins with UTF-16's.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# What files are in that are no UTF-8, as iconv calls it; of all that there are, short texts look
# like too many.
_OLD = {
    "cp1252": "WINDOWS-1252", "cp1250": "WINDOWS-1250", "cp1251": "WINDOWS-1251",
    "cp1253": "WINDOWS-1253", "cp1254": "WINDOWS-1254", "cp1255": "WINDOWS-1255",
    "cp1256": "WINDOWS-1256", "cp1257": "WINDOWS-1257", "koi8_r": "KOI8-R",
    "iso8859_2": "ISO-8859-2", "mac_roman": "MACINTOSH", "cp437": "CP437", "gb18030": "GB18030",
    "big5": "BIG5", "cp932": "SHIFT-JIS", "euc_jp": "EUC-JP", "cp949": "CP949",
}  # fmt: skip
_SAMPLE = 2**16  # bytes that are looked at
_LINES_BEYOND_ASCII = re.compile(rb"[^\n]{0,200}[\x80-\xff][^\n]{0,200}")
_MOSTLY = 5  # characters beyond ASCII for each that is broken, in UTF-8 with faults
_REPLACED = "\N{REPLACEMENT CHARACTER}"
_FEWEST = 4  # bytes beyond ASCII that tell of an encoding
_SHORTEST = 4  # bytes of UTF-16 that is known by its zeros


_WORD = re.compile(r"[^\W\d_]+")
# Common in English, and rare in its neighbours (`in`, `is`, `of`, `was` are Dutch or German too).
_COMMON_WORDS = frozenset([
    "the", "and", "that", "with", "for", "from", "this", "which", "by", "had", "have", "they",
    "are", "were", "not", "but", "it", "to", "his", "her", "you", "at", "be", "she",
])  # fmt: skip
_FEWEST_WORDS = 40  # words below which nothing is told
_MOST_WORDS = 2000  # words that are looked at
_SHARE = 0.06  # of English prose a fifth to a third; of lists and tables some hundredths more


def marked_encoding(data: bytes) -> tuple[str, int] | None:
    """Returns the encoding that a byte order mark names and the mark's length, if there is one."""
    encodings = ((name, len(mark)) for mark, name in _MARKS if data.startswith(mark))
    return next(encodings, None)


def looks_like(data: bytes) -> str:
    """Returns the likeliest encoding of text, in capitals as iconv has it; empty for UTF-8."""
    name = (marked_encoding(data) or (guessed_encoding(data), 0))[0]
    return "" if name in ("", "utf-8") else _OLD.get(name, name.upper())


def guessed_encoding(data: bytes) -> str:
    """Returns what text without a mark is likely in, as Python calls it.

    Empty for UTF-8, be it with faults: other encodings have no characters such as its own.
    """
    if wide := _wide(data[:_SAMPLE]):
        return wide
    try:
        data.decode()
    except UnicodeDecodeError:
        sample = _beyond_ascii(data)
        text = sample.decode("utf-8", "replace")
        bad, others = text.count(_REPLACED), sum(c > "\x7f" for c in text)
        return "" if others > _MOSTLY * bad else _old(sample)
    return ""


def _wide(head: bytes) -> str:
    """Returns which UTF-16 or UTF-32 bytes are in, by where their zeros stand; empty if in none."""
    head = head[: len(head) // 4 * 4] if len(head) > _SHORTEST else head
    zeros = [head[i::4].count(0) * 4 > len(head) * 0.9 for i in range(4)]
    if zeros in ([False, True, True, True], [True, True, True, False]):
        wide = "utf-32-le" if zeros[3] else "utf-32-be"
        return wide if _is_clean(head.decode(wide, "replace")) else ""
    each = {"utf-16-be": head[::2].count(0), "utf-16-le": head[1::2].count(0)}
    (_, fewer), (name, most) = sorted(each.items(), key=lambda item: item[1])
    if len(head) < _SHORTEST or not most or fewer * 20 > most:
        return ""
    try:
        head.decode()
        share = 5
    except UnicodeDecodeError:  # a text with few Latin letters has few zeros
        share = 200
    return name if most * share > len(head) and _is_clean(head.decode(name, "replace")) else ""


def _is_clean(text: str) -> bool:
    odd = sum(not (c.isprintable() or c.isspace()) or c == _REPLACED for c in text)
    return odd * 100 < len(text)


def _beyond_ascii(data: bytes) -> bytes:
    """Returns the first lines that tell of an encoding."""
    sample = b""
    for line in _LINES_BEYOND_ASCII.finditer(data):
        sample += line[0] + b"\n"
        if len(sample) > _SAMPLE:
            break
    return sample


def _old(sample: bytes) -> str:
    """Returns the encoding of before Unicode that bytes look like."""
    from charset_normalizer import from_bytes

    if sum(byte > 0x7F for byte in sample) < _FEWEST:  # noqa: PLR2004 -- where ASCII ends
        return "cp1252"
    found = [*from_bytes(sample, cp_isolation=[*_OLD], preemptive_behaviour=False)]
    # Where several fit alike, it is what most such files are in.
    likely = (m for m in found if m.encoding == "cp1252" and m.chaos <= found[0].chaos)
    return next(likely, found[0]).encoding if found else "cp1252"


def looks_english(text: str) -> bool:
    """Returns whether a text looks like English, which a text of a few words always does.

    Args:
        text: Text of any length; its first 2,000 words are looked at.
    """
    words = [found.group().lower() for found in islice(_WORD.finditer(text), _MOST_WORDS)]
    if len(words) < _FEWEST_WORDS:
        return True
    return sum(word in _COMMON_WORDS for word in words) / len(words) >= _SHARE
