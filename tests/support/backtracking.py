"""Step counter for a backtracking search, and generator of texts that are hostile to a pattern.

The search takes the same steps as `re`, without its optimizations. If the steps grow faster than
the text here, they may do so in `re`, on this or another text. Nothing is timed.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, permutations
from re import _compiler, _parser  # type: ignore[attr-defined]  # no public API lists the parts
from typing import Any

_UNLIMITED = 1 << 20
_BOUND = 3  # repeats of a bounded repeat that are searched: more are only a constant factor
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_SINGLE = frozenset({"LITERAL", "NOT_LITERAL", "IN", "ANY"})
# Character class for each Unicode property, with enough letters for a hostile text.
_PROPERTIES = {
    "Han": "一-丁", "Hiragana": "あ-い", "Katakana": "ア-イ", "Thai": "ก-ข", "Lao": "ກ-ຂ",
    "Khmer": "ក-ខ", "Myanmar": "က-ခ", "L": "A-Za-z", "Ll": "a-z", "Lu": "A-Z", "M": "\u0300-\u0302",
    "N": "0-9", "P": "!-/", "Lt": "ǅ", "Ps": "(", "Pi": "“", "Pd": "–",
    "Sk": "^`", "Default_Ignorable_Code_Point": "\u00ad\u200b",
}  # fmt: skip
Item = tuple[Any, Any]


class Backtracking:
    """Backtracking search for a pattern that counts its steps in `steps`."""

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        """Parses a pattern for `re` or for the package `regex`."""
        if isinstance(pattern, bytes):
            pattern = pattern.decode("latin-1")
            flags |= re.ASCII
        self.backwards = pattern.startswith("(?r)")
        pattern = re.sub(r"\(\?r\)", "", pattern)
        pattern = re.sub(r"\[(?:[^\]\\]|\\.)*\]", lambda match: _plain(match[0], "{}"), pattern)
        tree = _parser.parse(_plain(pattern, "[{}]"), flags)
        self.items, self._state = list(tree), tree.state
        self._multiline = bool(tree.state.flags & re.MULTILINE)
        self.steps, self._groups = 0, dict[int, tuple[int, int]]()
        # By `id` of a part, which `items` keeps alive.
        self._compiled: dict[int, re.Pattern[str]] = {}
        self._fits: dict[tuple[int, str], bool] = {}

    def scan(self, text: str, is_anchored: bool) -> int:
        """Returns the steps of finding all matches in a text, or of one match at its start."""
        self.steps, position = 0, 0
        while position <= len(text):
            end = next(self._match(self.items, 0, text, position), None)
            if is_anchored:
                break
            position = end if end is not None and end > position else position + 1
        return self.steps

    def fits(self, item: Item, character: str) -> bool:
        """Returns whether a part that matches one character matches this one."""
        key = id(item), character
        if key not in self._fits:
            if id(item) not in self._compiled:
                tree = _parser.SubPattern(self._state, [item])
                self._compiled[id(item)] = _compiler.compile(tree)
            self._fits[key] = self._compiled[id(item)].match(character) is not None
        return self._fits[key]

    def _match(self, items: Any, number: int, text: str, position: int) -> Iterator[int]:
        items = getattr(items, "data", items)  # of a subpattern, whose own methods are slow
        count, end = len(items), len(text)
        self.steps += 1
        while number < count and items[number][0].name in _SINGLE:
            if position == end or not self.fits(items[number], text[position]):
                return
            number, position = number + 1, position + 1
            self.steps += 1
        if number == count:
            yield position
            return
        for end in self._part(items[number], text, position):
            yield from self._match(items, number + 1, text, end)

    def _part(  # noqa: C901, PLR0912 -- a case for each kind of part
        self, item: Item, text: str, position: int
    ) -> Iterator[int]:
        name, content = item[0].name, item[1]
        if name in _REPEATS:
            yield from self._repeat(name, content, text, position)
        elif name == "BRANCH":
            for branch in content[1]:
                yield from self._match(branch, 0, text, position)
        elif name == "SUBPATTERN":
            for end in self._match(content[-1], 0, text, position):
                self._groups[content[0]] = (position, end)
                yield end
        elif name == "ATOMIC_GROUP":
            yield from self._atomic(content, text, position)
        elif name == "GROUPREF":
            start, end = self._groups.get(content, (0, 0))
            if text.startswith(text[start:end], position):
                yield position + end - start
        elif name in {"ASSERT", "ASSERT_NOT"}:
            if self._matches_around(content, text, position) == (name == "ASSERT"):
                yield position
        elif name == "AT":
            if self._is_at(str(content), text, position):
                yield position
        else:
            raise NotImplementedError(name)

    def _atomic(self, items: Sequence[Item], text: str, position: int) -> Iterator[int]:
        yield from (
            end for end in [next(self._match(items, 0, text, position), None)] if end is not None
        )

    def _matches_around(self, content: Any, text: str, position: int) -> bool:
        direction, items = content
        start = position if direction > 0 else position - items.getwidth()[0]
        return start >= 0 and next(self._match(items, 0, text, start), None) is not None

    def _is_at(self, kind: str, text: str, position: int) -> bool:
        match kind:
            case "AT_BEGINNING" | "AT_BEGINNING_STRING":
                is_line = self._multiline and kind == "AT_BEGINNING"
                return position == 0 or (is_line and text[position - 1] == "\n")
            case "AT_END":
                return text[position:] in {"", "\n"} or (self._multiline and text[position] == "\n")
            case "AT_END_STRING":
                return position == len(text)
        before, after = text[max(0, position - 1) : position], text[position : position + 1]
        is_boundary = bool(re.match(r"\w", before)) != bool(re.match(r"\w", after))
        return is_boundary == (kind == "AT_BOUNDARY")

    def _repeat(self, name: str, content: Any, text: str, position: int) -> Iterator[int]:
        least, most, items = content
        least = min(least, _BOUND)
        most = _UNLIMITED if most is _parser.MAXREPEAT else min(most, least + _BOUND)
        if len(items) == 1 and items[0][0].name in _SINGLE:
            run = self._run(items[0], text, position, most)
            run_ends = run if name == "MIN_REPEAT" else reversed([*run])
            for end in islice(run_ends, 1 if name == "POSSESSIVE_REPEAT" else None):
                if end >= position + least:
                    self.steps += 1
                    yield end
        elif name == "POSSESSIVE_REPEAT":
            ends = [position]
            while len(ends) <= most:
                next_end = next(self._match(items, 0, text, ends[-1]), None)
                if next_end is None or next_end == ends[-1]:
                    break
                ends.append(next_end)
            yield from ends[least:][-1:]
        else:
            yield from self._rounds(items, (least, most), name == "MIN_REPEAT", text, position)

    def _run(self, item: Item, text: str, position: int, most: int) -> Iterator[int]:
        yield position
        for end in range(position, min(len(text), position + most)):
            self.steps += 1
            if not self.fits(item, text[end]):
                return
            yield end + 1

    def _rounds(
        self, items: Sequence[Item], bounds: tuple[int, int], lazy: bool, text: str, position: int
    ) -> Iterator[int]:
        self.steps += 1
        least, most = bounds
        if lazy and least <= 0:
            yield position
        if most > 0:
            for end in self._match(items, 0, text, position):
                if end > position or least > 0:
                    yield from self._rounds(items, (least - 1, most - 1), lazy, text, end)
        if not lazy and least <= 0:
            yield position

    def hostile(self) -> Iterator[Callable[[int], str]]:
        """Yields functions that return a hostile text for a number of repeats.

        For each prefix of the pattern and each sample of the repeat after it, there are three
        texts: the prefix and many samples, many times both, and many samples. A null ends them.
        """
        characters = sorted({*"a1 \n", *self._literals(self.items)}, reverse=True)
        parts = [*self._single_items(self.items)]
        # One character for each set of parts that match it.
        alphabet = sorted({tuple(self.fits(p, c) for p in parts): c for c in characters}.values())
        shapes = set()
        for prefix, repeated in self._repeats(self.items, ""):
            pumps = {*self._samples(repeated, alphabet)} - {""}
            joined = {a + b for a, b in permutations(sorted(pumps)[:4], 2)}
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

    def _single_items(self, items: Any) -> Iterator[Item]:
        for item in items if isinstance(items, (list, tuple, _parser.SubPattern)) else ():
            if isinstance(item, tuple) and str(item[0]) in _SINGLE:
                yield item
            else:
                yield from self._single_items(item)

    def _repeats(self, items: Any, prefix: str) -> Iterator[tuple[str, Any]]:
        """Yields the content of unbounded repeats, with a text that matches the pattern before."""
        for item in items:
            name, content = str(item[0]), item[1]
            if name in _REPEATS:
                if content[1] is _parser.MAXREPEAT:
                    yield prefix, content[2]
                yield from self._repeats(content[2], prefix)
            elif name == "BRANCH":
                for branch in content[1]:
                    yield from self._repeats(branch, prefix)
            elif name in {"SUBPATTERN", "ATOMIC_GROUP", "ASSERT", "ASSERT_NOT"}:
                yield from self._repeats(content if name == "ATOMIC_GROUP" else content[-1], prefix)
            prefix += next(self._samples([item], []), "")

    def _samples(self, items: Any, alphabet: list[str]) -> Iterator[str]:
        """Yields short texts that the parts match: one for each choice, if there is an alphabet."""
        if not items:
            yield ""
            return
        item, *others = items
        suffix = next(self._samples(others, []), "")
        yield from (sample + suffix for sample in self._sample(item, alphabet))
        if alphabet and others:
            start = next(self._sample(item, []), "")
            yield from (start + suffix for suffix in self._samples(others, alphabet))

    def _sample(self, item: Item, alphabet: list[str]) -> Iterator[str]:
        name, content = str(item[0]), item[1]
        if name in _SINGLE:
            characters = alphabet or [*"a1A ", *self._literals([item])]
            characters += [] if alphabet else [chr(c) for c in range(9, 128)]
            fitting = [c for c in characters if self.fits(item, c)] or [
                c for c in map(chr, range(0x3100)) if self.fits(item, c)
            ][:1]
            yield from fitting if alphabet else fitting[:1]
        elif name in _REPEATS:
            least = max(content[0], 1 if alphabet else 0)
            yield from (sample * least for sample in self._samples(content[2], alphabet))
        elif name == "BRANCH":
            branches = content[1] if alphabet else content[1][:1]
            yield from (sample for branch in branches for sample in self._samples(branch, alphabet))
        elif name in {"SUBPATTERN", "ATOMIC_GROUP"}:
            yield from self._samples(content if name == "ATOMIC_GROUP" else content[-1], alphabet)
        else:
            yield ""


def _plain(pattern: str, form: str) -> str:
    """Returns a pattern with character classes in place of Unicode properties, which `re` lacks."""
    return re.sub(r"\\p\{(\w+)\}", lambda match: form.format(_PROPERTIES[match[1]]), pattern)
