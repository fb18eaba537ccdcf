"""Counts the steps of a backtracking search, and makes texts that are hostile to a pattern.

The steps are those of `re`'s way through a pattern, without its short cuts: what grows faster than
the text here may do so there, on another text if not on this one. Nothing is timed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, product
from re import _compiler, _parser  # type: ignore[attr-defined]  # nothing public tells the parts
from typing import Any

_NEVER = 1 << 20
_BOUND = 3  # more of a bounded repeat is a constant factor
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_ONE = ("LITERAL", "NOT_LITERAL", "IN", "ANY")
# Their classes hold enough letters for a hostile text.
_PROPERTIES = {
    "Han": "一-丁", "Hiragana": "あ-い", "Katakana": "ア-イ", "Thai": "ก-ข", "Lao": "ກ-ຂ",
    "Khmer": "ក-ខ", "Myanmar": "က-ခ", "L": "A-Za-z", "Ll": "a-z", "Lu": "A-Z", "M": "\u0300-\u0302",
    "N": "0-9", "P": "!-/", "Lt": "ǅ", "Ps": "(", "Pi": "“", "Pd": "–",
}  # fmt: skip
Item = tuple[Any, Any]


class Backtracking:
    """A pattern as a tree of choices, searched with every step counted.

    Attributes:
        items: Parts of the pattern, as Python's parser has them.
        steps: Number of steps so far.
    """

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        """Takes a pattern apart, one of the package regex too."""
        if isinstance(pattern, bytes):
            pattern = pattern.decode("latin-1")
            flags |= re.ASCII
        self.backwards = pattern.startswith("(?r)")
        pattern = re.sub(r"\(\?r\)", "", pattern)
        pattern = re.sub(r"\[(?:[^\]\\]|\\.)*\]", lambda of: _plain(of[0], "{}"), pattern)
        tree = _parser.parse(_plain(pattern, "[{}]"), flags)
        self.items, self._state = list(tree), tree.state
        self.steps, self._groups = 0, dict[int, tuple[int, int]]()
        self._fits: dict[int, dict[str, bool]] = {}  # by the id of a part, which lives as long

    def scan(self, text: str, whole: bool) -> int:
        """Returns the steps of finding all matches in a text, or of one match at its start."""
        self.steps, position = 0, 0
        while position <= len(text):
            end = next(self._match(self.items, 0, text, position), None)
            if whole:
                break
            position = end if end is not None and end > position else position + 1
        return self.steps

    def fits(self, item: Item, character: str) -> bool:
        """Returns whether a part of one character takes this one."""
        known = self._fits.setdefault(id(item), {})
        if character not in known:
            tree = _parser.SubPattern(self._state, [item])
            known[character] = _compiler.compile(tree).match(character) is not None
        return known[character]

    def _match(self, items: Sequence[Item], at: int, text: str, here: int) -> Iterator[int]:
        self.steps += 1
        if at == len(items):
            yield here
            return
        for end in self._part(items[at], text, here):
            yield from self._match(items, at + 1, text, end)

    def _part(  # noqa: C901, PLR0912 -- a case for each part that a pattern may have
        self, item: Item, text: str, here: int
    ) -> Iterator[int]:
        name, told = str(item[0]), item[1]
        if name in _ONE:
            if here < len(text) and self.fits(item, text[here]):
                yield here + 1
        elif name in _REPEATS:
            yield from self._repeat(name, told, text, here)
        elif name == "BRANCH":
            for branch in told[1]:
                yield from self._match(branch, 0, text, here)
        elif name == "SUBPATTERN":
            for end in self._match(told[-1], 0, text, here):
                self._groups[told[0]] = (here, end)
                yield end
        elif name == "ATOMIC_GROUP":
            yield from self._first(told, text, here)
        elif name == "GROUPREF":
            start, end = self._groups.get(told, (0, 0))
            if text.startswith(text[start:end], here):
                yield here + end - start
        elif name in {"ASSERT", "ASSERT_NOT"}:
            if self._looks(told, text, here) == (name == "ASSERT"):
                yield here
        elif name == "AT":
            if self._stands(str(told), text, here):
                yield here
        else:
            raise NotImplementedError(name)

    def _first(self, items: Sequence[Item], text: str, here: int) -> Iterator[int]:
        yield from (
            end for end in [next(self._match(items, 0, text, here), None)] if end is not None
        )

    def _looks(self, told: Any, text: str, here: int) -> bool:
        direction, items = told
        start = here if direction > 0 else here - items.getwidth()[0]
        return start >= 0 and next(self._match(items, 0, text, start), None) is not None

    def _stands(self, what: str, text: str, here: int) -> bool:
        word = [0 <= at < len(text) and bool(re.match(r"\w", text[at])) for at in (here - 1, here)]
        return {
            "AT_BEGINNING": here == 0 or (self._multiline and text[here - 1] == "\n"),
            "AT_BEGINNING_STRING": here == 0,
            "AT_END": text[here:] in {"", "\n"} or (self._multiline and text[here] == "\n"),
            "AT_END_STRING": here == len(text),
            "AT_BOUNDARY": word[0] != word[1],
            "AT_NON_BOUNDARY": word[0] == word[1],
        }[what]

    @property
    def _multiline(self) -> bool:
        return bool(self._state.flags & re.MULTILINE)

    def _repeat(self, name: str, told: Any, text: str, here: int) -> Iterator[int]:
        least, most, items = told
        least = min(least, _BOUND)
        most = _NEVER if most is _parser.MAXREPEAT else min(most, least + _BOUND)
        if len(items) == 1 and str(items[0][0]) in _ONE:
            run = self._run(items[0], text, here, most)
            ends = run if name == "MIN_REPEAT" else reversed([*run])
            for end in islice(ends, 1 if name == "POSSESSIVE_REPEAT" else None):
                if end >= here + least:
                    self.steps += 1
                    yield end
        elif name == "POSSESSIVE_REPEAT":
            reached = [here]
            while len(reached) <= most:
                further = next(self._match(items, 0, text, reached[-1]), None)
                if further is None or further == reached[-1]:
                    break
                reached.append(further)
            yield from reached[least:][-1:]
        else:
            yield from self._rounds(items, (least, most), name == "MIN_REPEAT", text, here)

    def _run(self, item: Item, text: str, here: int, most: int) -> Iterator[int]:
        yield here
        for end in range(here, min(len(text), here + most)):
            self.steps += 1
            if not self.fits(item, text[end]):
                return
            yield end + 1

    def _rounds(
        self, items: Sequence[Item], left: tuple[int, int], lazy: bool, text: str, here: int
    ) -> Iterator[int]:
        self.steps += 1
        least, most = left
        if lazy and least <= 0:
            yield here
        if most > 0:
            for end in self._match(items, 0, text, here):
                if end > here or least > 0:
                    yield from self._rounds(items, (least - 1, most - 1), lazy, text, end)
        if not lazy and least <= 0:
            yield here

    def hostile(self) -> Iterator[Callable[[int], str]]:
        """Yields shapes of texts, each by its number of repeats.

        For each prefix of the pattern and each thing that repeats behind it: the prefix and many of
        these, many of both, and many of these alone; something odd stands at the end.
        """
        tried = sorted({*"a1 \n", *self._literals(self.items)}, reverse=True)
        parts = [*self._ones(self.items)]
        # One of those characters that no part tells apart.
        alphabet = sorted({tuple(self.fits(p, c) for p in parts): c for c in tried}.values())
        shapes = set()
        for prefix, repeated in self._repeats(self.items, ""):
            pumps = {*self._samples(repeated, alphabet)} - {""}
            joined = {a + b for a, b in product(sorted(pumps)[:4], repeat=2)}
            for pump in sorted(pumps)[:8] + sorted(joined - pumps):
                shapes |= {(prefix, pump), ("", prefix + pump), ("", pump)}
        shapes |= {("", prefix) for prefix, _ in self._repeats(self.items, "") if prefix}
        for prefix, pump in sorted(shapes):
            yield lambda n, prefix=prefix, pump=pump: prefix + pump * n + "\0"  # type: ignore[misc]

    def _literals(self, items: Any) -> Iterator[str]:
        for item in items if isinstance(items, (list, tuple, _parser.SubPattern)) else ():
            if isinstance(item, tuple) and str(item[0]) in {"LITERAL", "NOT_LITERAL"}:
                yield chr(item[1])
            elif isinstance(item, tuple) and str(item[0]) == "RANGE":
                yield chr(item[1][0])
            else:
                yield from self._literals(item)

    def _ones(self, items: Any) -> Iterator[Item]:
        for item in items if isinstance(items, (list, tuple, _parser.SubPattern)) else ():
            if isinstance(item, tuple) and str(item[0]) in _ONE:
                yield item
            else:
                yield from self._ones(item)

    def _repeats(self, items: Any, prefix: str) -> Iterator[tuple[str, Any]]:
        """Yields what unbounded repeats repeat, with a text that leads to each."""
        for item in items:
            name, told = str(item[0]), item[1]
            if name in _REPEATS:
                if told[1] is _parser.MAXREPEAT:
                    yield prefix, told[2]
                yield from self._repeats(told[2], prefix)
            elif name == "BRANCH":
                for branch in told[1]:
                    yield from self._repeats(branch, prefix)
            elif name in {"SUBPATTERN", "ATOMIC_GROUP", "ASSERT", "ASSERT_NOT"}:
                yield from self._repeats(told if name == "ATOMIC_GROUP" else told[-1], prefix)
            prefix += next(self._samples([item], []), "")

    def _samples(self, items: Any, alphabet: list[str]) -> Iterator[str]:
        """Yields short texts that the parts take: with an alphabet one for each choice there is."""
        if not items:
            yield ""
            return
        item, *others = items
        rest = next(self._samples(others, []), "")
        yield from (one + rest for one in self._sample(item, alphabet))
        if alphabet and others:
            first = next(self._sample(item, []), "")
            yield from (first + more for more in self._samples(others, alphabet))

    def _sample(self, item: Item, alphabet: list[str]) -> Iterator[str]:
        name, told = str(item[0]), item[1]
        if name in _ONE:
            tried = alphabet or [*"a1A ", *self._literals([item])]
            tried += [] if alphabet else [chr(c) for c in range(9, 128)]
            fitting = [c for c in tried if self.fits(item, c)] or [
                c for c in map(chr, range(0x3100)) if self.fits(item, c)
            ][:1]
            yield from fitting if alphabet else fitting[:1]
        elif name in _REPEATS:
            least = max(told[0], 1 if alphabet else 0)
            yield from (one * least for one in self._samples(told[2], alphabet))
        elif name == "BRANCH":
            branches = told[1] if alphabet else told[1][:1]
            yield from (one for branch in branches for one in self._samples(branch, alphabet))
        elif name in {"SUBPATTERN", "ATOMIC_GROUP"}:
            yield from self._samples(told if name == "ATOMIC_GROUP" else told[-1], alphabet)
        else:
            yield ""


def _plain(pattern: str, form: str) -> str:
    """Returns a pattern of the package regex without Unicode's properties."""
    return re.sub(r"\\p\{(\w+)\}", lambda of: form.format(_PROPERTIES[of[1]]), pattern)
