"""Budgets: their remainders, the shares of workers, and the reads of a question within one."""

from pathlib import Path
from typing import Any

import pytest

from leporello.chunkers import Sentences
from leporello.combiners import MapReduce, ReadEach
from leporello.config import Pipeline
from leporello.core.calls.budget import Budget, Ledger, SharedBudget
from leporello.core.records import Document, Example
from leporello.engine.limits import Limits
from leporello.engine.shard_rows import rows_of
from leporello.engine.slots import Slots
from leporello.readers import BestSentence, Lead
from leporello.retrievers import BM25
from leporello.testing.text_contract import resumed
from leporello.testing.texts import Echo, long_text

SPENT = Ledger(reads=2, input_tokens=20, output_tokens=5, dollars=0.5)


def test_ledgers_are_added_and_subtracted() -> None:
    """The cost of some work is the ledger after it less the ledger before."""
    assert (SPENT + Ledger(1, 2, 3, 0.25, 4.0)) - SPENT == Ledger(1, 2, 3, 0.25, 4.0)
    assert SPENT.tokens == 25


def test_a_limit_is_reached_before_it_is_exceeded() -> None:
    for budget in (Budget(tokens=25, dollars=0.5), Budget(tokens=24)):
        assert budget.reached(SPENT) == "tokens"
    assert not Budget(tokens=25, dollars=0.5).is_exceeded(SPENT)
    assert Budget(tokens=24).is_exceeded(SPENT)
    assert not Budget(tokens=26, seconds=1.0).reached(SPENT)
    assert not Budget().reached(SPENT)


def test_workers_share_the_remaining_budget() -> None:
    shared = SharedBudget(Budget(tokens=100, dollars=2.0), workers=3)
    assert shared.share == Budget(tokens=33, dollars=2 / 3)
    shared.spent += SPENT
    assert shared.share == Budget(tokens=25, dollars=0.5)
    assert shared.share.after(SPENT) == Budget(tokens=50, dollars=1.0)
    shared.spent += SPENT + SPENT + SPENT + SPENT
    assert shared.share == Budget(tokens=0, dollars=0.0)


@pytest.mark.parametrize(
    ("workers", "tokens", "is_spent"),
    [(1, 0, True), (2, 9_800, False), (2, 9_900, True), (150, 9_800, False), (201, 9_800, True)],
)
def test_shared_budgets_end_when_little_is_left(workers: int, tokens: int, is_spent: bool) -> None:
    """A budget is spent if at most 1 % or less than one token per worker remains."""
    shared = SharedBudget(Budget(tokens=10_000), workers, Ledger(input_tokens=tokens))
    assert shared.is_spent is is_spent


TEXT = long_text(4000)
EXAMPLES = [
    Example(f"q{n}", Document(f"d{n}", TEXT[n * 97 :]), question=TEXT[n * 500 : n * 500 + 60])
    for n in range(6)
]


def _stages(budget: Budget, combiner: Any = None) -> Pipeline:
    return Pipeline(
        Sentences(size=60), BM25(k=9), BestSentence(), combiner or ReadEach(keep="best"),
        roles={"sum": Lead()}, budget=budget,
    )  # fmt: skip


def _over(row: dict[str, Any]) -> list[bool]:
    return [call["output"].get("over_budget", False) for call in row["calls"]]


@pytest.mark.parametrize("budget", [Budget(reads=4), Budget(tokens=300), Budget(seconds=1e-9)])
def test_reads_over_the_budget_are_not_read_and_counted_as_cut(budget: Budget) -> None:
    for row in rows_of(None, EXAMPLES, _stages(budget)):
        over = _over(row)
        assert 0 < sum(over) < len(over) == 9
        assert row["prediction"]["prediction"]
        assert row["prediction"]["coverage"]["cut"] > 0
    if budget.reads:
        assert over.count(False) == 4


def test_a_budget_without_room_for_one_read_fails_the_question() -> None:
    for row in rows_of(None, EXAMPLES, _stages(Budget(tokens=5))):
        assert "the budget (5 tokens) is too small for one read of" in row["failure"]["error"]


def test_all_roles_share_the_budget_and_a_resumed_shard_spends_the_same(tmp_path: Path) -> None:
    """A shard that is killed at any commit has the same rows in the end."""
    stages = _stages(Budget(tokens=700), MapReduce(map_role="sum"))
    limits = Limits(max_active=4, window=5)
    expected = rows_of(None, EXAMPLES, stages, limits)
    assert any(sum(_over(row)) for row in expected)
    tries = [*resumed(lambda path: rows_of(path, EXAMPLES, stages, limits), tmp_path)]
    assert len(tries) > 8
    assert all(rows == expected for rows in tries)


def test_a_reader_with_slots_respects_the_budget() -> None:
    stages = Pipeline(Sentences(size=60), BM25(k=9), Echo(), ReadEach(), budget=Budget(reads=2))
    with Slots(4) as slots:
        rows = rows_of(None, EXAMPLES, stages, slots=slots)
    assert [_over(row).count(False) for row in rows] == [2] * len(EXAMPLES)
