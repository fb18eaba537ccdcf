"""Labels before the words of a heading (`1.2`, `Chapter IV`, `Appendix A`), and known names."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

_LONGEST = 200  # characters of a title that are examined


@dataclass(frozen=True, slots=True)
class Label:
    """The numbering of a heading."""

    word: str  # `part`, `chapter`, `section`, `appendix`, or empty without such a word
    style: str  # `1` for figures, `I` for Roman ones, `A` for letters
    path: tuple[int, ...]  # numbers, outermost first; letters count from 1
    title: str  # text after the number; may be empty

    @property
    def depth(self) -> int:
        """Number of levels."""
        return len(self.path)


def _words(meaning: str, words: str) -> dict[str, str]:
    return dict.fromkeys(words.split(), meaning)


_WORDS: Mapping[str, str] = {
    **_words("part", "part partie teil parte book livre buch libro volume band tome act acte"),
    **_words("chapter", "chapter chap chapitre kapitel capítulo capitulo capitolo hoofdstuk"),
    **_words("chapter", "canto letter scene scène szene stave"),
    **_words("section", "section article abschnitt sección"),
    **_words("appendix", "appendix annex annexe anhang apéndice appendice bijlage"),
}
_NUMBERS = {
    word: number
    for words in (
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
        " sixteen seventeen eighteen nineteen twenty",
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth",
        "premier deuxième troisième quatrième cinquième sixième septième huitième neuvième dixième",
        "première seconde",
        "erste zweite dritte vierte fünfte sechste siebte achte neunte zehnte",
        "ersten zweiten dritten vierten fünften sechsten siebten achten neunten zehnten",
        "erster zweiter dritter vierter fünfter sechster siebter achter neunter zehnter",
        "erstes zweites drittes viertes fünftes sechstes siebtes achtes neuntes zehntes",
    )
    for number, word in enumerate(words.split(), start=1)
}
_TENS = {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60}

# Names that are headings if they fill a line.
NAMES = frozenset({
    "abstract", "acknowledgement", "acknowledgements", "acknowledgment", "acknowledgments",
    "afterword", "appendices", "appendix", "background", "bibliography", "conclusion",
    "conclusions", "contents", "curriculum vitae", "declaration", "dedication", "discussion",
    "epilogue", "executive summary", "foreword", "future work", "general introduction", "glossary",
    "index", "introduction", "list of abbreviations", "list of acronyms", "list of figures",
    "list of publications", "list of symbols", "list of tables", "literature review",
    "materials and methods", "methodology", "methods", "nomenclature", "notation", "preface",
    "prologue", "publications", "references", "related work", "results", "results and discussion",
    "summary", "table of contents", "vita", "abbildungsverzeichnis", "anhang", "danksagung",
    "einführung", "einleitung", "fazit", "inhaltsverzeichnis", "literatur", "literaturverzeichnis",
    "nachwort", "schluss", "tabellenverzeichnis", "vorwort", "zusammenfassung", "annexes",
    "avant-propos", "bibliographie", "liste des figures", "liste des tableaux", "préface",
    "remerciements", "résumé", "sommaire", "table des matières", "agradecimientos", "bibliografía",
    "conclusiones", "introducción", "prólogo", "resumen", "índice",
})  # fmt: skip

_AFTER_WORD = re.compile(
    r"([^\W\d_]+)\s+(?:the\s+)?(\d{1,3}|[^\W\d_]+(?:-[^\W\d_]+)?)((?:\.\d{1,3})*)(?!\w)"
    r"\s*[.:)\-–—]*\s*",
    re.IGNORECASE,
)
_BEFORE_WORD = re.compile(r"([^\W\d_]+)\s+([^\W\d_]+)\b\s*[.:\-–—]*\s*")
_FIGURES = re.compile(r"(\d{1,3}(?:\.\d{1,3})*(?:\.[a-z])?)\.?(?:\s+|$)")
_LETTERS = re.compile(r"([IVXLC]{1,7}|[A-Z])((?:\.\d{1,3})*)\.?(?:\s+|$)")
_ROMAN = re.compile(r"(?=[IVXLC])C{0,3}(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")
_ROMAN_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}
_ATTRIBUTES = re.compile(r"(?:(?<!\s)\s++)?+\{[#.][^{}]*+\}$")  # pandoc's: {#intro .unnumbered}
_EDGES = " \t*_`\"'“”‘’.:;,!?()[]–—-"


@lru_cache(4096)
def label_of(title: str) -> Label | None:
    """Returns the number of any form that a title begins with; None without a number."""
    title = title[:_LONGEST].strip()
    return _after_word(title) or _before_word(title) or _figures(title) or _letters(title)


def name_of(title: str) -> str:
    """Returns a title's words for comparison: without label, case and surrounding punctuation."""
    stripped = _ATTRIBUTES.sub("", title[:_LONGEST].strip(_EDGES + "#"))
    if is_name(stripped):
        return _folded(stripped)
    label = label_of(stripped)
    return _folded(label.title) if label else _folded(stripped)


def is_name(title: str) -> bool:
    """Returns whether a title, without a label, is a known name."""
    return _folded(title) in NAMES


def _folded(title: str) -> str:
    return " ".join(title.casefold().strip(_EDGES).split())


def _after_word(title: str) -> Label | None:
    """Reads `Chapter 3: …`, `PART TWO`, `Book the First`, `Appendix A.1 …`."""
    if not (match := _AFTER_WORD.match(title)) or not (word := _WORDS.get(match[1].casefold())):
        return None
    if (numbered := _number(match[2], letters=word == "appendix")) is None:
        return None
    style, number = numbered
    path = (number, *map(int, match[3].split(".")[1:]))
    return Label(word, style, path, title[match.end() :])


def _before_word(title: str) -> Label | None:
    """Reads `First Part`, `PREMIÈRE PARTIE`, `Zweites Kapitel: …`."""
    if not (match := _BEFORE_WORD.match(title)) or not (word := _WORDS.get(match[2].casefold())):
        return None
    number = _NUMBERS.get(match[1].casefold())
    return Label(word, "1", (number,), title[match.end() :]) if number else None


def _figures(title: str) -> Label | None:
    if not (match := _FIGURES.match(title)):
        return None
    parts = match[1].split(".")
    path = tuple(int(part) if part.isdigit() else ord(part) - ord("a") + 1 for part in parts)
    return Label("", "1", path, title[match.end() :])


def _letters(title: str) -> Label | None:
    """Reads `IV. …` and `A.1 …`; ambiguous letters are Roman."""
    if not (match := _LETTERS.match(title)) or not (value := _number(match[1], letters=False)):
        return None
    style, number = value
    # `C.1` is in appendix C: chapters with Roman numbers rarely number their sections `I.1`.
    if match[2] and len(match[1]) == 1:
        style, number = "A", ord(match[1]) - ord("A") + 1
    return Label("", style, (number, *map(int, match[2].split(".")[1:])), title[match.end() :])


def _number(text: str, *, letters: bool) -> tuple[str, int] | None:
    """Returns the style and value of a number: `3`, `IV`, `Three`, `TWENTY-ONE`, `B`."""
    if text.isdecimal():
        return "1", int(text)
    if len(text) == 1 and text.isascii() and text.isupper() and (letters or text not in "IVX"):
        return "A", ord(text) - ord("A") + 1
    if (text.isupper() or text.islower()) and (roman := roman_value(text.upper())):
        return "I", roman
    tens, _, ones = text.casefold().partition("-")
    value = _TENS.get(tens, 0) + _NUMBERS.get(ones, 0) if ones else _NUMBERS.get(tens)
    value = value or _TENS.get(tens)
    return ("1", value) if value else None


def roman_value(text: str) -> int:
    """Returns the value of a Roman number in capitals up to 399; 0 for other texts."""
    if not _ROMAN.fullmatch(text):
        return 0
    values = [_ROMAN_VALUES[letter] for letter in text]
    # A letter before a greater one is subtracted: IV.
    return sum(-value if value < after else value for value, after in pairwise([*values, 0]))
