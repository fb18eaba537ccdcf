"""Splits a character's name into variants and phrases, and builds patterns that find them."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from leporello.text.folding import composed
from leporello.text.tokens import Words

_LONGEST = 120  # characters of a name; longer texts are not names
_MOST = 8  # phrases of a name


def _word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


MEN = _word_set(
    "mr mister sir lord king prince duke count baron father brother uncle grandpa grandfather herr"
    " monsieur senor don signor"
)
WOMEN = _word_set(
    "mrs ms miss mistress madam madame mme mlle lady dame queen princess duchess countess baroness"
    " mother sister aunt auntie grandma grandmother frau fraulein mademoiselle senora senorita"
    " dona signora"
)
TITLES = (
    MEN
    | WOMEN
    | _word_set(
        "mx dr doctor prof professor captain capt major maj general gen colonel col lieutenant lt"
        " sergeant sgt corporal cpl private pvt admiral commander cmdr officer detective det"
        " inspector insp agent reverend rev rabbi pastor bishop cardinal pope saint st fr emperor"
        " empress president senator governor mayor judge justice chief sheriff deputy marshal nurse"
        " coach master cousin chancellor ambassador secretary"
    )
)
# They identify a person only together with a name.
# Without this list `old` or `man` in any sentence would count as the character (decision 14).
ROLES = _word_set(
    "old young younger older little big fat tall short man woman boy girl guy kid child lady"
    " gentleman male female voice cop guard soldier waiter waitress driver"
)
SUFFIXES = _word_set("jr sr junior senior ii iii iv esq phd ph.d md m.d")
# Many surnames share these words, so they do not identify anybody.
PARTICLES = _word_set("van von zu de la le du der den di da del della dos el al bin ibn y")
# An article marks a description: `the Man in Black` counts only as a whole (decision 14).
_ARTICLES = frozenset(("the", "a", "an"))
_PLACED = frozenset(("of", "from", "in", "with", "at", "on"))  # Lawrence of Arabia

# The closing bracket is optional, because a name that was cut may have lost it.
_BRACKETED = re.compile(r"[(\[][^()\[\]]*[)\]]?")
# Single quotes inside words are apostrophes: `O'Brien` has no nickname.
_QUOTED = re.compile(r"""["“„«]([^"“”„«»]+)["”“»]|(?<!\w)['‘]([^'‘’]+)['’](?!\w)""")
_ALIAS = re.compile(r"/|\ba\.?k\.?a\b\.?|\balias\b", re.IGNORECASE)
_WORD = re.compile(r"[^\s,;:!?*#]+")

# Editions of one book mix these characters, so all of them match each other (decision 14).
HYPHENS = "-‐‑–"
APOSTROPHES = "'’‘ʼ`´"


@dataclass(frozen=True, slots=True)
class Name:
    """A variant of a character's name."""

    phrases: tuple[str, ...]  # folded, in order; each may refer to the character alone
    title: str = ""  # title (`dr`), folded; may be empty


def names(text: str) -> list[Name]:
    """Returns the variants of a character's name: the name itself, its aliases and nicknames."""
    # A long text is a question, and each of its words would be searched as a name.
    if len(text) > _LONGEST:
        return []
    unbracketed = _BRACKETED.sub(" ", text)
    # A name entirely in brackets keeps its words, since nothing else would be left.
    unbracketed = unbracketed if unbracketed.strip() else text.strip("()[] ")
    nicknames = [double or single for double, single in _QUOTED.findall(unbracketed)]
    variants = [_parsed(_words(part)) for part in _ALIAS.split(_QUOTED.sub(" ", unbracketed))]
    variants += [_one_phrase(_words(nickname)) for nickname in nicknames]
    return [name for name in variants if 0 < len(name.phrases) <= _MOST]


def _words(text: str) -> list[str]:
    """Returns the folded words; points stay only inside initials (`j.r`)."""
    words = (word.strip(f'._"“‘”…{HYPHENS}{APOSTROPHES}') for word in _WORD.findall(folded(text)))
    return [word for word in words if word]


def _parsed(words: list[str]) -> Name:
    has_article = bool(words) and words[0] in _ARTICLES and len(words) > 1
    words = words[1:] if has_article else words
    titles = next((n for n, word in enumerate(words) if word not in TITLES), len(words))
    remaining = words[titles:]
    # The last word stays in any case: `Junior` can be the complete name.
    while len(remaining) > 1 and remaining[-1] in SUFFIXES:
        remaining = remaining[:-1]
    if not remaining or any(word.isdigit() for word in remaining):  # Captain; Agent 47
        return _one_phrase(words)
    # The last one, since a text writes it directly before the name.
    title = words[titles - 1] if titles else ""
    placed = next((n for n, word in enumerate(remaining) if n and word in _PLACED), len(remaining))
    phrases = _sufficient_words(remaining[:placed])
    # In these names a single word fits too many other people (decision 14).
    if has_article or not phrases or remaining[-1] in ROLES:  # the Man in Black, Old Man, Iron Man
        return Name(_one_phrase(remaining).phrases, title)
    return Name(tuple(dict.fromkeys(phrases)), title)


def _one_phrase(words: Sequence[str]) -> Name:
    return Name((" ".join(words),) if words else ())


def _sufficient_words(words: Sequence[str]) -> list[str]:
    """Returns the words of a name that may refer to the character alone."""
    # At the ends a particle can be the name itself, as in `Della Street` or `Yi Du`.
    inside = range(1, len(words) - 1)
    return [
        word
        for n, word in enumerate(words)
        if len(word) > 1 and word not in ROLES and not (n in inside and word in PARTICLES)
    ]


def folded(text: str) -> str:
    """Returns a text in small letters without marks (`Zoë` -> `zoe`)."""
    # Texts and lists of characters differ in accents: `Zoë` must match `Zoe` (decision 14).
    marked = unicodedata.normalize("NFKD", composed(text).casefold())
    plain = "".join(_STROKES.get(c, c) for c in re.sub(_MARKS, "", marked))
    # Syllables of scripts such as Korean, whose parts are not accents, are composed again.
    return unicodedata.normalize("NFC", plain)


# Accents of European scripts, and vowel signs of Arabic and Hebrew.
_MARKS = "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u064b-\u065f\u0670]*"
_STROKES = {"ø": "o", "ł": "l", "đ": "d", "ħ": "h", "ı": "i"}  # not decomposed by Unicode


@cache
def _variants() -> dict[str, str]:
    """Returns for each letter the characters that fold to it."""
    variants: dict[str, str] = {}
    # Latin, Greek and Cyrillic with their extensions; other letters match only themselves.
    for code in (*range(0x41, 0x530), *range(0x1E00, 0x2000)):
        letter = folded(chr(code))
        if len(letter) == 1:
            variants[letter] = variants.get(letter, "") + chr(code)
    return variants


@lru_cache(maxsize=256)
def pattern(phrase: str) -> re.Pattern[str]:
    """Returns a pattern that finds a folded phrase as complete words, in any letter case."""
    # The lookbehind follows the first character, so that the search jumps from one such character
    # to the next: 10 MB take tenths of a second (decision 14).
    first, *following = map(_character_pattern, phrase)
    before = "" if _unspaced(phrase[0]) else r"(?<![^\W_].)"
    after = "" if _unspaced(phrase[-1]) else r"(?![^\W_])"
    return re.compile(f"{first}{before}{_MARKS}{''.join(following)}{after}", re.DOTALL)


def _character_pattern(character: str) -> str:
    """Returns the pattern of a character of a folded phrase."""
    if character == " ":
        # Up to three, for names that continue on an indented line.
        return r"\s{1,3}"
    if character in HYPHENS:
        # Optional, because editions also write `Annmarie` and `Ann Marie` (decision 14).
        return rf"[{HYPHENS}\s]?"
    if character in APOSTROPHES:
        return f"[{APOSTROPHES}]?"
    if character == ".":
        return r"\.?[ ]?"
    letters = f"[{re.escape(_variants().get(character, '') + character)}]"
    return letters + _MARKS if character.isalpha() else letters


def _unspaced(character: str) -> bool:
    """Returns whether a character is of a script without spaces, where words have no boundaries."""
    return len(Words().offsets(character * 2)) > 1
