"""ZeroSCROLLS' metrics of orders, percentages and option letters."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from leporello.core.records import Example
from leporello.metrics.protocol import Averaged, GoldError
from leporello.text.answers import LETTER, PERCENTAGE, ids


@dataclass(frozen=True)
class ConcordanceIndex(Averaged):
    """Share of the pairs of summaries that the answer puts in the right order.

    Only digits, blanks and commas of the answer are read: `3-1-2` is 312. The answer scores 0
    unless it contains exactly the numbers of the reference, so any stray number spoils it. Without
    ties, as here, this is the index of `lifelines`.
    """

    name = "concordance_index"
    signature = "concordance_index|other-ids:0|average:mean|version:1"

    def value(self, text: str, example: Example) -> float:
        """Returns the index for the best reference."""
        orders = [_reference_order(example, reference) for reference in example.references]
        # The best reference, as in the benchmark's code.
        return 100 * max(_concordance(order, ids(text)) for order in orders)


def _reference_order(example: Example, reference: str) -> list[str]:
    order = ids(reference)
    if len(order) < 2 or len(set(order)) < len(order):  # noqa: PLR2004 -- an order needs a pair
        raise GoldError(
            example, f"the reference {reference!r:.80} is not an order of two or more different ids"
        )
    return order


def _concordance(order: Sequence[str], answer: Sequence[str]) -> float:
    # An answer with other numbers scores 0, as in ZeroSCROLLS; so combiners always return all.
    if sorted(order) != sorted(answer):
        return 0.0
    ranks = {number: n for n, number in enumerate(answer)}
    pairs = [ranks[first] < ranks[second] for first, second in combinations(order, 2)]
    return sum(pairs) / len(pairs)


# The benchmark's constant: an error of 10 points halves the score.
_HALVING = 10  # percentage points


@dataclass(frozen=True)
class ExponentialSimilarity(Averaged):
    """Closeness of the first percentage in the answer, halved for every ten points of difference.

    A percentage is digits directly followed by `%`; `60`, `60 %` and `60 percent` score 0.
    Signs are ignored: `-20%` is 20.
    """

    name = "exponential_similarity"
    signature = "exponential_similarity|base:0.5|points:10|average:mean|version:1"

    def value(self, text: str, example: Example) -> float:
        """Returns the similarity to the nearest reference, which must be a percentage."""
        needed = "percentage such as 60%"
        gold = [_required(PERCENTAGE, gold, example, needed) for gold in example.references]
        # An answer without `%` scores 0, as in the benchmark, whatever number it has.
        if (match := PERCENTAGE.search(text)) is None:
            return 0.0
        guess, *right = (float(number.removesuffix("%")) for number in (match[0], *gold))
        distance = min(abs(guess - number) for number in right)
        return float(100 * 0.5 ** (distance / _HALVING))


def _required(pattern: re.Pattern[str], reference: str, example: Example, needed: str) -> str:
    """Returns the first match in a reference; raises GoldError without one."""
    if match := pattern.search(reference):
        return match[0]
    raise GoldError(example, f"the reference {reference!r:.80} has no {needed}")


@dataclass(frozen=True)
class OptionLetter(Averaged):
    """Whether the first word A, B, C or D in the answer is the right letter.

    Only capitals count: `A good guess is B` means A. A text without a letter is wrong. Each
    reference must have a letter; references of SCROLLS are texts of options instead, which
    `exact_match` compares.
    """

    name = "option_letter"
    signature = "option_letter|letter:first-of-A-D|average:mean|version:1"

    def value(self, text: str, example: Example) -> float:
        """Returns 100 or 0; each reference must have a letter."""
        needed, match = "letter A, B, C or D", LETTER.search(text)
        gold = {_required(LETTER, reference, example, needed) for reference in example.references}
        return 100.0 * bool(match and match[0] in gold)
