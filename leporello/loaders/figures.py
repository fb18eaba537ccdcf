"""Raised and lowered text, and formulas of MathML and Office, as text.

`^` raises, `/` divides, and lowered figures are plain, as in 10^-3, 1/2 and H2O. Parentheses
enclose whatever is longer than a word: x^(n+1).
"""

import re
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any, TypeAlias

_DEEPEST = 60  # elements within each other; only the text of deeper elements is read
_LONGEST = 30  # pieces of raised or lowered text; what is longer is not a figure
_POWER = re.compile(r"[-+−–±]?[\w.,'′]+(?:[-–]\d+)?[-+−)]?|\S")  # needs no parentheses
# Parts of a fraction that need no parentheses: a number, a name, each with a power; and its base.
_OPERAND = re.compile(r"(?:[-+−]?\d[\d.,]*[%!]?|[^\W\d]\w*)(?:\^[-−]?\w+)?|√?\([^()]*\)")
_BASE = re.compile(r"[\w.,′]*|.|√?\([^()]*\)", re.DOTALL)
_INDEX = re.compile(r"\w+(?:[.,]\w+)*")
_SIGNS = re.compile(r"[°′″‴*†‡§¶®™©℠¯ˉ˜~ˆ^→⃗'\"’”.,;:!?\s]*")  # which need no sign
_SCRIPT = re.compile(r"[_^][-+−]?[^\W_]+\Z")  # at the end of a text, which letters would continue
# Letters that end a word, as in 4th, 1er, 2e, Mme and TM, notes in brackets, and sentences.
_WORDS = re.compile(
    r"st|nd|rd|th|ers?|res?|es?|i?[eè]mes?|mes?|lles?|os?|tm|sm|[\[(].*|.{25,}", re.I | re.S
)
_INVISIBLE = str.maketrans({"\u2061": " ", "\u2062": "", "\u2063": ",", "\u2064": " "})
_SKIPPED = {"annotation", "annotation-xml", "mphantom"}
_Parts: TypeAlias = list[tuple[str, str]]  # names and texts of an element's children


def raised(text: str, *, is_formula: bool = False) -> tuple[str, str]:
    """Returns what to write around raised text; outside of formulas, `th` needs no sign."""
    if text[:1] == "^" or _SIGNS.fullmatch(text) or (not is_formula and _WORDS.fullmatch(text)):
        return "", ""
    return ("^", "") if _POWER.fullmatch(text) else ("^(", ")")


def lowered(text: str, before: str) -> tuple[str, str]:
    """Returns what to write before and after lowered text; its figures do not run into `before`."""
    if not _INDEX.fullmatch(text):
        return ("_(", ")") if len(text) > 1 else ("", "")
    return ("_" if before[-1:].isdigit() and text[:1].isdigit() else "", "")


def mark_figure(pieces: list[str], first: int, *, is_raised: bool) -> None:
    """Adds the signs of raised or lowered text, from `first` in alternate separators and texts."""
    if len(pieces) - first > _LONGEST:
        return
    gap, text = pieces[first], "".join(pieces[first + 1 :])
    before = pieces[first - 1] if first and not gap.strip(" ") else ""
    if is_raised:
        signs = raised(text) if before else ("", "")
    elif _is_below(pieces, first, text):
        signs = "", ""
    else:
        signs = lowered(text, "" if gap else before)
    pieces[first + 1] = signs[0] + pieces[first + 1]
    pieces[-1] += signs[1]


def _is_below(pieces: list[str], first: int, text: str) -> bool:
    """Returns whether a fraction ends with lowered text, and removes the sign above its line."""
    above, line = pieces[first - 3 : first : 2] if first >= 6 else ("", "")  # noqa: PLR2004 -- three texts
    is_fraction = line in ("/", "\u2044") and above[:1] == "^" and text.isdigit()
    if is_fraction:
        pieces[first - 3] = above[1:]
        if not pieces[first - 4] and pieces[first - 5][-1:].isalnum():
            pieces[first - 4] = " "
    return is_fraction


def formula(element: Any, depth: int = 0) -> str:  # noqa: ANN401 -- an element of any ElementTree
    """Returns the text of an element of MathML or of Office's mathematics."""
    name = _name(element)
    if name in _SKIPPED:
        return ""
    if depth > _DEEPEST:
        return "".join(element.itertext())
    text = " ".join((element.text or "").translate(_INVISIBLE).split())
    if name in ("t", "mtext"):
        text = (element.text or "").replace("\n", " ")
    parts = [
        (_name(e), formula(e, depth + 1))
        for e in element
        if isinstance(e.tag, str) and not _name(e).endswith("Pr")
    ]
    if build := _BUILDERS.get(name):
        return build(element, parts)
    runs = (
        "".join(part for _, part in run) if is_digits else _joined(part for _, part in run)
        for is_digits, run in groupby(parts, lambda part: part[0] == "mn")
    )
    return _joined((text, *runs))  # browsers show digits in several <mn> as one number


def _name(element: Any) -> str:  # noqa: ANN401 -- an element of any ElementTree
    return str(element.tag).rpartition("}")[2].rpartition(":")[2]


def _joined(texts: Iterable[str]) -> str:
    """Joins texts; figures that meet are separated, as in 2 1/2, and so is what a script ends."""
    joined = ""
    for text in texts:
        meets = joined[-1:].isdigit() and text[:1].isdigit()
        meets = meets or (
            text[:1].isalnum() and _SCRIPT.search(joined, len(joined) - 30) is not None
        )
        joined += " " * meets + text
    return joined


def _fraction(parts: list[str], line: str) -> str:
    """Returns a fraction; without a line between them, one part is over the other."""
    if line in ("noBar", "0"):
        return " over ".join(parts)
    return "/".join(part if _OPERAND.fullmatch(part) else f"({part})" for part in parts)


def _power(text: str) -> str:
    before, after = raised(text, is_formula=True)
    return before + text + after


def _script(base: str, low: str, high: str, *, is_limit: bool = False) -> str:
    if not _BASE.fullmatch(base):
        base = f"({base})"
    before, after = lowered(low, base)
    if low and (is_limit or not low.isdigit()):
        before, after = ("_", "") if _INDEX.fullmatch(low) else ("_(", ")")
    return base + before + low + after + _power(high)


def _root(inner: str, degree: str) -> str:
    return f"({inner})^(1/{degree})" if degree else f"√({inner})"


def _of(parts: _Parts, *names: str) -> list[str]:
    """Returns the texts of children by name; empty for those that do not exist."""
    texts = dict(parts)
    return [texts.get(name, "") for name in names]


def _nth(parts: _Parts, *indices: int) -> list[str]:
    """Returns the texts of children by index; empty for those that do not exist."""
    return [parts[i][1] if i < len(parts) else "" for i in indices]


def _property(element: Any, name: str, default: str) -> str:  # noqa: ANN401 -- see above
    for inner in element.iter():
        if isinstance(inner.tag, str) and _name(inner) == name:
            return next((v for k, v in inner.attrib.items() if k.endswith("val")), "")
        if inner is not element and _name(inner) == "e":
            break
    return default


def _enclosed(element: Any, parts: _Parts) -> str:  # noqa: ANN401 -- see above
    begin, end = _property(element, "begChr", "("), _property(element, "endChr", ")")
    separator = _property(element, "sepChr", "|")
    return begin + _listed(separator, parts) + end


def _fenced(element: Any, parts: _Parts) -> str:  # noqa: ANN401 -- see above
    separator = (element.get("separators", ",").split() or [""])[0]
    return f"{element.get('open', '(')}{_listed(separator, parts)}{element.get('close', ')')}"


def _listed(separator: str, parts: _Parts) -> str:
    return separator.join(text for _, text in parts)


_BUILDERS: dict[str, Callable[[Any, _Parts], str]] = {
    "mfrac": lambda e, p: _fraction(_nth(p, 0, 1), e.get("linethickness", "")),
    "msup": lambda _, p: _script(*_nth(p, 0, 9, 1)),
    "msub": lambda _, p: _script(*_nth(p, 0, 1, 9)),
    "msubsup": lambda _, p: _script(*_nth(p, 0, 1, 2)),
    "munder": lambda _, p: _script(*_nth(p, 0, 1, 9), is_limit=True),
    "mover": lambda _, p: _script(*_nth(p, 0, 9, 1)),
    "munderover": lambda _, p: _script(*_nth(p, 0, 1, 2), is_limit=True),
    "msqrt": lambda _, p: _root(_joined(text for _, text in p), ""),
    "mroot": lambda _, p: _root(*_nth(p, 0, 1)),
    "mfenced": _fenced,
    "semantics": lambda _, p: _nth(p, 0)[0],
    "mspace": lambda *_: " ",
    **dict.fromkeys(("mtr", "mlongdiv", "mstack", "msgroup"), lambda _, p: _listed(" ", p)),
    "mtable": lambda _, p: f"[{_listed('; ', p)}]",
    "f": lambda e, p: _fraction(_of(p, "num", "den"), _property(e, "type", "")),
    "sSup": lambda _, p: _script(*_of(p, "e", "", "sup")),
    "sSub": lambda _, p: _script(*_of(p, "e", "sub", "")),
    "sSubSup": lambda _, p: _script(*_of(p, "e", "sub", "sup")),
    "sPre": lambda _, p: _power(_of(p, "sup")[0]) + "".join(_of(p, "sub", "e")),
    "limLow": lambda _, p: _script(*_of(p, "e", "lim", ""), is_limit=True),
    "limUpp": lambda _, p: _script(*_of(p, "e", "", "lim")),
    "nary": lambda e, p: (
        _script(_property(e, "chr", "∫"), *_of(p, "sub", "sup"), is_limit=True)
        + " "
        + _of(p, "e")[0]
    ),
    "rad": lambda _, p: _root(*_of(p, "e", "deg")),
    "d": _enclosed,
    "func": lambda _, p: " ".join(_of(p, "fName", "e")),
    "mr": lambda _, p: _listed(" ", p),
    "m": lambda _, p: f"[{_listed('; ', p)}]",
    "eqArr": lambda _, p: _listed("; ", p),
}
