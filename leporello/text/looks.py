"""Guesses the encoding of bytes, and whether a text is English."""

import codecs
import re
from itertools import islice

import regex

# UTF-32 before UTF-16, whose little-endian mark is a prefix of UTF-32's.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# WHATWG's encodings except ISO-8859-3, -10 and -14, which hardly any file is in, and DOS's.
_OLD = (
    *("ibm866", "iso-8859-2", "iso-8859-4", "iso-8859-5", "iso-8859-6", "iso-8859-7", "iso-8859-8"),
    *("iso-8859-13", "iso-8859-15", "iso-8859-16", "koi8-r", "koi8-u", "macroman", "mac-cyrillic"),
    *("tis-620", "cp874", *(f"cp{1250 + n}" for n in range(9)), "gb18030", "big5", "big5hkscs"),
    *("cp932", "euc-jp", "iso-2022-jp", "cp949", "cp437", "cp850", "cp852"),
)
# Python's codecs of the names that files declare. Browsers read the first group with an encoding
# that has more characters, and Python and chardet lack the others
# (https://encoding.spec.whatwg.org/#names-and-labels).
_MEANT = {
    "ascii": "cp1252", "iso8859-1": "cp1252", "iso8859-9": "cp1254", "iso8859-11": "cp874",
    "tis-620": "cp874", "gb2312": "gb18030", "gbk": "gb18030", "big5": "big5hkscs",
    "shift_jis": "cp932", "shift_jis_2004": "cp932", "euc_jis_2004": "euc_jp", "euc_kr": "cp949",
}  # fmt: skip
_LACKING = {
    **dict.fromkeys(("unicode", "csunicode", "ucs-2", "iso-10646-ucs-2"), "utf-16-le"),
    "unicodefeff": "utf-16-le", "unicodefffe": "utf-16-be", "mac-ukrainian": "mac_cyrillic",
}  # fmt: skip
_SHOWN = {
    "ISO8859": "ISO-8859", "ISO2022": "ISO-2022", "MAC-ROMAN": "MACINTOSH", "-LE": "LE",
    "-BE": "BE",
}  # fmt: skip
_ISO = re.compile(r"(?:cs)?iso-?8859-?(\d+)(?:-?[ei])?")  # `iso88592`, `iso-8859-8-i`
_SAMPLE = 2**16  # bytes that are examined
_LINES = 2**14  # bytes of lines that are examined: chardet takes 2 ms per KiB
_BEFORE = 200  # bytes that are examined before the first byte beyond ASCII of a line
_BEYOND_ASCII = re.compile(rb"[\x80-\xff]")
_ESCAPES = b"\x1b$"  # with which ISO-2022 begins characters of two bytes
# Characters beyond ASCII per undecodable byte in UTF-8 with faults; other encodings have 1.4.
_MOSTLY = 2
_FEWEST = 20  # bytes of a text that identify an encoding
_LIKELY = 0.9  # share of the highest confidence from which an encoding is considered
# A symbol or a capital letter within a word: rare in a text, frequent in a wrong encoding.
_ODD = regex.compile(
    r"\p{L}[^\p{L}\p{M}\p{N}\s\0-\x7f’·]\p{L}|\p{Ll}\p{Lu}|[\x80-\x9f\N{REPLACEMENT CHARACTER}]"
)
_REPLACED = "\N{REPLACEMENT CHARACTER}"
_SHORTEST = 4  # bytes of UTF-16 that its zeros identify
# UTF-16 of scripts without letters below U+0100 has zeros only in blanks, and may be valid UTF-8.
_CONTROLS = bytes({*range(0x20)} - {*b"\t\n\f\r"})
_FAR = re.compile(
    r"[ -~\u0370-\u06ff\u0e00-\u0e7f\u3000-\u30ff\u4e00-\u9fff\uac00-\ud7a3\uff00-\uffef\s]"
)

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


def codec_of(label: str) -> str:
    """Returns Python's name of the encoding that browsers use for a label; raises LookupError."""
    name = label.strip().lower()
    try:
        codec = codecs.lookup(name).name
    except LookupError:
        from chardet.registry import lookup_encoding

        iso, plain = _ISO.fullmatch(name), name.removeprefix("x-").removeprefix("x-")
        standard = f"iso8859-{iso[1]}" if iso else _LACKING.get(plain) or lookup_encoding(plain)
        codec = codecs.lookup(standard or plain).name
    b"a".decode(codec, "ignore")  # raises for codecs that are not of text, such as `hex`
    return _MEANT.get(codec, codec)


def looks_like(data: bytes) -> str:
    """Returns the most likely encoding of text, as Python and iconv name it; empty for UTF-8."""
    name = (marked_encoding(data) or (guessed_encoding(data), 0))[0]
    return "" if name in ("", "utf-8") else shown_encoding(name)


def shown_encoding(name: str) -> str:
    """Returns a name of an encoding that Python and iconv know, in capitals: `ISO-8859-2`."""
    shown = name.upper().replace("_", "-")
    for python, iconv in _SHOWN.items():
        shown = shown.replace(python, iconv)
    return shown


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
        return "" if beyond_ascii > _MOSTLY * broken else _old(sample) or _far(data) or "cp1252"
    head = data[:_SAMPLE]
    if len(head.translate(None, _CONTROLS)) < len(head) * 0.9:
        return _far(data)
    # Much slower for two bytes than for the first of them, which few texts have.
    at = data.find(_ESCAPES, at) if (at := data.find(_ESCAPES[:1])) >= 0 else -1
    return "" if at < 0 else _old(data[data.rfind(b"\n", 0, at) + 1 :][:_LINES])


def _wide(head: bytes) -> str:
    """Returns which UTF-16 or UTF-32 bytes are in, by the positions of zeros; empty if neither."""
    head = head[: len(head) // 4 * 4] if len(head) > _SHORTEST else head
    zeros = [head[i::4].count(0) * 4 > len(head) * 0.9 for i in range(4)]
    # The two high bytes of a character are zero; of Latin letters, a third one too.
    if (zeros[2] and zeros[3]) != (zeros[0] and zeros[1]):
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


def _far(data: bytes) -> str:
    """Returns which UTF-16 bytes of a script beyond Latin are in; empty if neither."""
    head = data[: len(data) // 2 * 2][:_SAMPLE] if len(data) > _FEWEST else b""
    texts = {name: head.decode(name, "replace") for name in ("utf-16-le", "utf-16-be")}
    shares = {name: len(_FAR.findall(text)) / len(text) for name, text in texts.items() if text}
    best = max(shares, key=lambda name: shares[name], default="")
    return best if best and shares[best] > 0.9 and _is_clean(texts[best]) else ""  # noqa: PLR2004


def _beyond_ascii(data: bytes) -> bytes:
    """Returns the first lines with characters beyond ASCII, which identify an encoding."""
    lines, at, size = [], 0, 0
    while size < _LINES and (match := _BEYOND_ASCII.search(data, at)):
        # Cut before ASCII only: other bytes may be the second half of a character.
        start = max(data.rfind(b"\n", at, match.start()) + 1, at, match.start() - _BEFORE)
        at = data.find(b"\n", match.end(), start + _LINES) + 1 or start + _LINES
        lines.append(data[start:at])
        size += at - start
    return b"".join(lines)


def _old(sample: bytes) -> str:
    """Returns the most likely encoding that predates Unicode; empty for binary data."""
    from chardet import detect_all

    # An é in a few words of English, as in a row of JSON, fits most encodings.
    if len(sample) < _FEWEST and len(_BEYOND_ASCII.findall(sample)) == 1:
        return "cp1252"
    results = detect_all(sample, compat_names=False, include_encodings=_OLD, ignore_threshold=True)
    names = [r["encoding"] for r in results if r["confidence"] > _LIKELY * results[0]["confidence"]]
    if not names[0]:
        return ""
    # chardet confuses ISO-8859-2 with CP1250 in texts with rare pairs of letters.
    odd = {name: len(_ODD.findall(sample.decode(name, "replace"))) for name in names if name}
    return codecs.lookup(min(odd, key=lambda name: odd[name])).name


def looks_english(text: str) -> bool:
    """Returns whether a text looks like English; short texts always do."""
    words = [match.group().lower() for match in islice(_WORD.finditer(text), _MOST_WORDS)]
    # In a short text one foreign name changes the share too much.
    if len(words) < _FEWEST_WORDS:
        return True
    return sum(word in _COMMON_WORDS for word in words) / len(words) >= _SHARE
