"""Finds page headers, footers and page numbers: lines that recur at the edges of pages."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter

from leporello.loaders.pdf.layout import PageLine, Pages
from leporello.text.headings.labels import roman_value

HEAD, NUMBER = "running head or foot", "page number"

_PAGES = 3  # pages that make a recurring line furniture
_ROWS = 4  # rows at each edge that are examined
_EDGE = 0.15  # of the page's height
_LARGER = 1.2  # times the body's type: a heading, not a running head
_LONGEST = 150  # characters
_NUMBER_WORDS, _NUMBER_LENGTH = 4, 12  # page 3 of 12
_CLOSE = 2 * (_PAGES - 1)  # pages from the first to the last of them: some have no number
_AROUND_WORDS = "|-–—·•.,:;()[]/~*"
_BUCKET = 6.0  # points by which the height of headers may vary
_AROUND = frozenset(
    ("page", "p", "pg", "seite", "s", "página", "pagina", "of", "von", "de", "sur", "di")
)
_HERE = "\0"  # placeholder of the page number

# Words of a line without the parts that differ between pages.
Words = tuple[str, ...]
# Whether a number is Roman, and its difference to the index of the page.
Step = tuple[bool, int]
# Pages and heights of numbers that grow with the pages.
Steps = dict[Step, set[tuple[int, int]]]


def furniture(pages: Pages, heights: Sequence[float]) -> list[dict[int, str]]:
    """Returns for each page the kinds of its furniture, by index of the line."""
    if len(pages) < _PAGES:
        return [{} for _ in pages]
    sizes = Counter[float]()
    for lines in pages:
        for line in lines:
            sizes[round(line.size)] += len(line.text)
    largest = _LARGER * max(sizes, key=sizes.__getitem__, default=0)
    edges = [dict(_edge(lines, h, largest)) for lines, h in zip(pages, heights, strict=True)]
    steps = _steps(edges)
    words = [
        {i: _masked(line, page, steps) for i, line in edge.items()}
        for page, edge in enumerate(edges)
    ]
    pages_of: dict[tuple[Words, int], set[int]] = {}
    for page, (edge, masked) in enumerate(zip(edges, words, strict=True)):
        for i, line in edge.items():
            for bucket in _buckets(line):
                pages_of.setdefault((masked[i], bucket), set()).add(page)
    texts = {key for key, at in pages_of.items() if any(_runs(at))}
    kinds = (
        {i: kind for i, line in edge.items() if (kind := _kind(line, masked[i], texts))}
        for edge, masked in zip(edges, words, strict=True)
    )
    return [_outermost(lines, kind) for lines, kind in zip(pages, kinds, strict=True)]


def _outermost(lines: Sequence[PageLine], kinds: dict[int, str]) -> dict[int, str]:
    """Returns the lines with only furniture between them and the edge of the page."""
    rows: dict[int, list[int]] = {}
    for i, line in enumerate(lines):
        rows.setdefault(round(line.y), []).append(i)
    outermost: dict[int, str] = {}
    for downwards in (False, True):
        for y in sorted(rows, reverse=downwards):
            row_kinds = {i: kinds[i] for i in rows[y] if i in kinds}
            if not row_kinds:
                break
            outermost |= row_kinds
    return outermost


def _kind(line: PageLine, words: Words, texts: set[tuple[Words, int]]) -> str:
    """Returns the kind of furniture of a line at the edge; empty if the line is text."""
    remaining = [word for word in words if word != _HERE]
    counted = "/" in line.text or not _AROUND.isdisjoint(remaining)  # 3 of 12
    if _HERE in words and all(w in _AROUND or (counted and w.isdigit()) for w in remaining):
        return NUMBER
    repeated = (words, _bucket(line)) in texts
    return HEAD if words and (repeated or _HERE in words[:1] + words[-1:]) else ""


def _bucket(line: PageLine) -> int:
    return round(line.y / _BUCKET)


def _buckets(line: PageLine) -> range:
    return range(_bucket(line) - 1, _bucket(line) + 2)


def _runs(pages: Iterable[int]) -> Iterator[tuple[int, ...]]:
    """Yields runs of close pages that suffice for furniture."""
    order = sorted(pages)
    for run in zip(*(order[i:] for i in range(_PAGES)), strict=False):
        if run[-1] - run[0] <= _CLOSE:
            yield run


def _edge(
    lines: Sequence[PageLine], height: float, largest: float
) -> Iterator[tuple[int, PageLine]]:
    """Yields the numbers and lines of a page's first and last rows."""
    rows = sorted({round(line.y) for line in lines})
    edge = {*rows[:_ROWS], *rows[-_ROWS:]}
    for i, line in enumerate(lines):
        high = line.y < _EDGE * height or line.y > (1 - _EDGE) * height
        if high and round(line.y) in edge and len(line.text) <= _LONGEST and line.size <= largest:
            yield i, line


def _steps(edges: Sequence[dict[int, PageLine]]) -> Steps:
    """Returns differences between page numbers in lines and indices of pages.

    The numbers must grow with the pages, at the same height on three close pages.
    """
    pages_of: dict[tuple[Step, int], set[int]] = {}
    for page, edge in enumerate(edges):
        for line in edge.values():
            for roman, n in filter(itemgetter(1), map(_number, _words(line.text))):
                for bucket in _buckets(line):
                    pages_of.setdefault(((roman, n - page), bucket), set()).add(page)
    steps: Steps = {}
    for (step, bucket), at in pages_of.items():
        for run in _runs(at):
            steps.setdefault(step, set()).update((page, bucket) for page in run)
    return steps


def _words(text: str) -> list[str]:
    """Returns words in small letters, without surrounding punctuation."""
    return [word for part in text.lower().split() if (word := part.strip(_AROUND_WORDS))]


def _masked(line: PageLine, page: int, steps: Steps) -> Words:
    """Replaces the page number in a line's words; in a short line the height does not matter."""
    words = [(word, *_number(word)) for word in _words(line.text)]
    length = len("".join(line.text.split()))
    is_short = len(words) <= _NUMBER_WORDS and length <= _NUMBER_LENGTH
    page_numbers = {
        word
        for word, roman, n in words
        if n and (at := steps.get((roman, n - page))) and (is_short or (page, _bucket(line)) in at)
    }
    return tuple(_HERE if word in page_numbers else word for word, _, _ in words)


def _number(word: str) -> tuple[bool, int]:
    """Returns whether a word is a Roman number, and its value; 0 if it is not a number."""
    if word.isdecimal():
        return False, 0 if word[0] == "0" else int(word[:6])
    number = roman_value(word.upper())
    return number > 0, number
