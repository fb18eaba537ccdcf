"""Coverage: every character of a file is counted in one part."""

from dataclasses import asdict

from hypothesis import given
from hypothesis import strategies as st

from leporello import Span
from leporello.core.coverage import PARTS, Coverage, ledger_line, loss_lines, mean_shares, shares
from leporello.core.records import Loss

SPANS = st.lists(
    st.tuples(st.integers(0, 50), st.integers(0, 50)).map(lambda ends: Span(*sorted(ends)))
)


@given(SPANS, SPANS, st.integers(0, 60), st.lists(st.tuples(st.integers(0, 99), st.booleans())))
def test_parts_add_up_to_the_file(
    selected: list[Span], read: list[Span], unchunked: int, lost: list[tuple[int, bool]]
) -> None:
    losses = tuple(Loss("image", "reason", "", length, 1, furniture) for length, furniture in lost)
    ledger = asdict(Coverage.of(50, losses, selected, read, unchunked=unchunked))
    assert min(ledger.values()) >= 0
    assert sum(ledger[part] for part in PARTS) == 50 + sum(length for length, _ in lost)
    assert abs(sum(shares(ledger).values()) - 1) < 1e-9


def test_an_empty_file_has_no_shares() -> None:
    empty = asdict(Coverage.of(0, (), (), ()))
    half = asdict(Coverage.of(4, (), (Span(0, 2),), (Span(0, 2),)))
    assert shares(empty) == {}
    assert mean_shares([empty, half])["read"] == 0.5
    assert ledger_line(empty).startswith("0 characters: unselected 0 (0.0 %)")


def test_losses_of_a_kind_share_one_line() -> None:
    pages = [Loss("page without text", "scanned", f"p. {n}", 100) for n in range(1, 7)]
    assert loss_lines([*pages, Loss("image", "not read", count=3)]) == [
        "6 × page without text (600 characters; p. 1, p. 2, p. 3, p. 4, …): scanned",
        "3 × image: not read",
    ]
