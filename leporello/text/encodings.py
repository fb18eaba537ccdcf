"""What bytes look like that are not in the encoding that they should be in."""

from __future__ import annotations

import codecs

__all__ = ["looks_like", "marked_encoding"]

# UTF-32 first: its little-endian mark begins with UTF-16's.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Where zeros stand in the first characters of text, most of which are ASCII.
_ZEROS = {
    (0, 1, 1, 1): "utf-32-le",
    (1, 1, 1, 0): "utf-32-be",
    (0, 1): "utf-16-le",
    (1, 0): "utf-16-be",
}
# What files are in that are no UTF-8, as iconv calls it; the first of those that give one text.
_LIKELY = {
    "cp1252": "WINDOWS-1252", "cp1250": "WINDOWS-1250", "cp1251": "WINDOWS-1251",
    "koi8_r": "KOI8-R",
    "cp1253": "WINDOWS-1253", "cp1255": "WINDOWS-1255", "cp1256": "WINDOWS-1256",
    "cp932": "SHIFT-JIS", "euc_jp": "EUC-JP", "gb18030": "GB18030", "big5": "BIG5",
    "cp949": "CP949",
}  # fmt: skip
_MOST = 1 << 16  # bytes that are looked at


def marked_encoding(data: bytes) -> tuple[str, int] | None:
    """Returns the encoding that a byte order mark names and the mark's length, if there is one."""
    encodings = ((name, len(mark)) for mark, name in _MARKS if data.startswith(mark))
    return next(encodings, None)


def looks_like(data: bytes) -> str:
    """Returns the likeliest encoding of text, in capitals as iconv has it; empty for UTF-8."""
    data = data[:_MOST]
    if marked := marked_encoding(data):
        return "" if marked[0] == "utf-8" else marked[0].upper()
    for zeros, name in _ZEROS.items():
        units = [data[i : i + len(zeros)] for i in range(0, min(len(data), 16), len(zeros))]
        whole = [unit for unit in units if len(unit) == len(zeros)]
        if whole and all(tuple(int(not byte) for byte in unit) == zeros for unit in whole):
            return name.upper()
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data)
    except UnicodeDecodeError:
        from charset_normalizer import from_bytes

        best = from_bytes(data, cp_isolation=[*_LIKELY]).best()
        names = best.could_be_from_charset if best else []
        return _LIKELY[next((name for name in _LIKELY if name in names), "cp1252")]
    return ""
