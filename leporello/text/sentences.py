"""Splits text into sentences, with rules for stops, abbreviations, quotes and various scripts.

A stop ends a sentence if white space follows and the next word can begin a sentence. `Dr.`,
`e.g.`, initials and `3.` at the start of a list item do not end sentences. Stops of scripts
without spaces (`。！？`) need no space. A blank line ends a sentence without a stop.

The rules are mainly for European languages (most abbreviations are English, German and French) and
examine a few words around each stop, so that time grows linearly with the text.
"""

from functools import cache
from itertools import pairwise
from typing import Any

import regex

from leporello.core.environment.extras import require

_CLOSERS = r"""["'”’»›)\]}」』）】》〉]"""
_NOTE = r"(?:\[[\w*†‡]{1,4}\])"  # [12], [a]: a reference to a note after the stop
_IDEOGRAPH = r"[\p{Han}\p{Hiragana}\p{Katakana}]"
_BREAK = regex.compile(
    rf"""
    (?P<blank> (?:\r\n|[\n\r\u2028]) [^\S\n\r\u2028]*+ [\n\r\u2029] \s*+ | \u2029 \s*+ )
    | (?P<wide> (?<![。！？｡]) [。！？｡]++ (?P<wide_close>{_CLOSERS}*+) \s*+ )
    | (?P<stop> (?<![.!?…‽؟۔।॥]) [.!?…‽؟۔।॥]++ ) (?P<close>{_CLOSERS}*+) {_NOTE}*+
      (?: (?P<space>\s++) | (?={_IDEOGRAPH}) )
    """,
    regex.VERBOSE,
)
_LOOK = 40  # characters that are examined on either side of a stop
_LAST_WORD = regex.compile(r"(?r)[\p{L}\p{M}\p{N}.&’'-]*")
_NEXT = regex.compile(r"[\p{Ps}\p{Pi}\p{Pd}\"'¿¡*_\s]*+(?P<word>[\p{L}\p{M}'’]*+)")
_LIST_ITEM = regex.compile(
    r"(?r)(?:^|[\n\r\u2028]|[.!?…:;]\s)[^\S\n\r\u2028]*(?:\p{N}{1,3}|\p{L}|[ivxIVX]+)$"
)
_HIRAGANA = regex.compile(r"\p{Hiragana}")
_DOTTED = regex.compile(r"(?:\p{L}\.)+\p{L}")  # U.S, Ph.D, z.B
_BLANK_LINE = regex.compile(r"[\n\r\u2028][^\S\n\r\u2028]*+[\n\r]|\u2029")
_CONTINUES = regex.compile(r"[\p{Ll},;:.!?…)\]}%]")


def _words(words: str) -> frozenset[str]:
    return frozenset(words.split())


# They never end a sentence. NLTK's list needs data that pip does not install (decision 7).
_NEVER = _words(
    "adm approx bzw capt cf cmdr col comdr d.h dipl dr e.g eg esp fr gen gov hr i.e ie inkl lt ltc"
    " maj messrs mgr mlle mme mr mrs ms msgr prof pvt rev sen sens sgt u.a viz vs z.b zzgl"
)
# They end a sentence unless a number follows.
_NUMBERED = _words("art ca ch eq eqn est fig figs no nos nr op p pp sec vol vols")
# They do if sentences often begin with the next word; so do initials.
_PERHAPS = _words(
    "al apr aug ave a.d a.m b.c bros co corp d.c dec dept ed eds etc feb ft hon inc ing jan jr"
    " jul jun ltd mar mt nov oct ph.d p.m pres ref rep reps rt sep sept sr st ste supt u.k u.n"
    " univ u.s u.s.a usw v"
)
_OPENERS = _words(
    "a after all an and as at because before but by during each even for from he her here his how"
    " however i if in it its later many meanwhile most my no not now on once one or our perhaps"
    " she since so some such that the their then there these they this those though to under"
    " until we what when where which while who why with yet you your"
)


def sentence_starts(text: str, start: int = 0, end: int | None = None) -> list[int]:
    """Returns where sentences begin, ascending, without the start of the text.

    Characters from `start` to `end` are examined; the text before them is context.
    """
    matches = _BREAK.finditer(text, start, end)
    return [match.end() for match in matches if _ends_sentence(match)]


def _ends_sentence(match: regex.Match[str]) -> bool:
    # Titles and list items often have no stop.
    if match["blank"]:
        return True
    # A fixed look-ahead keeps the time linear.
    following = match.string[match.end() : match.end() + _LOOK]
    if match["wide"]:  # 「…。」と言った continues
        return not (match["wide_close"] and _HIRAGANA.match(following))
    if match["space"] is None:  # between ideographs only these end a sentence
        return match["stop"][0] in "!?"
    if _BLANK_LINE.search(match["space"]):
        return True
    opening = _NEXT.match(following)
    assert opening is not None
    # `“Why?” she asked` is one sentence, and so is `approx. five`.
    if _CONTINUES.match(following) or opening["word"][:1].islower():
        return False
    # Abbreviations end with a single period, so other stops need no further rules.
    return match["stop"] != "." or _full_stop(match, following, opening["word"])


def _full_stop(match: regex.Match[str], following: str, next_word: str) -> bool:
    """Returns whether a single period ends a sentence, by the words around it."""
    preceding = match.string[max(0, match.start() - _LOOK) : match.start()]
    last = _LAST_WORD.search(preceding)
    assert last is not None
    word = last.group().strip("'’-").removeprefix(".").casefold()
    if word in _NEVER or (not match["close"] and _LIST_ITEM.search(preceding)):
        return False
    if word in _NUMBERED:
        # `no. 5` is nearly always a number; `I fear no. 5 were left.` is not split (decision 7).
        return not following[:1].isnumeric()
    # Numbers are not initials: `in 1999. He`. The price: `am 3. Oktober` is split (decision 7).
    initial = len(word) == 1 and word.isalpha()
    if initial or word in _PERHAPS or _DOTTED.fullmatch(word):
        # `U.S. Army` and `J. Smith` continue: the stop is rather part of the abbreviation.
        return next_word[:1].isupper() and next_word.casefold() in _OPENERS
    return True


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Returns the (start, end) of each sentence, in order, without the blanks around it."""
    spans = []
    for start, end in pairwise([0, *sentence_starts(text), len(text)]):
        sentence = text[start:end]
        first = end - len(sentence.lstrip())
        if first < end:
            spans.append((first, start + len(sentence.rstrip())))
    return spans


def punkt(text: str) -> list[str]:
    """Returns the sentences that NLTK's English Punkt finds, which published code often uses."""
    sentences: list[str] = _punkt_tokenizer().tokenize(text.strip())
    return sentences


@cache
def _punkt_tokenizer() -> Any:  # noqa: ANN401 -- NLTK has no types
    require("`unit: punkt`", "nltk", "punkt")
    import punkt as data
    from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer

    # The package has NLTK's data, which `nltk.downloader` would download. Its code differs from
    # NLTK's in runs of punctuation such as ". . ." (decision 21).
    model, parameters = data.load_model("english"), PunktParameters()
    for name in ("abbrev_types", "collocations", "sent_starters"):
        setattr(parameters, name, getattr(model, name))
    parameters.ortho_context.update(model.ortho_context)
    return PunktSentenceTokenizer(parameters)
