"""Budgets: their limits, their remainders, and the shares of workers."""

import pytest

from leporello.core.calls.budget import Budget, Ledger, SharedBudget

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
