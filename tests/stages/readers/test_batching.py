"""Micro-batches cost least of all that the budget allows; the budget is what memory allows."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import combinations, pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from leporello.api import run
from leporello.readers.batching.micro_batches import Generation, ModelInput, batches
from leporello.readers.batching.token_budget import TokenBudget, memory_budget

NEW = 10


def cost(batch: Sequence[ModelInput], budget: int, rows: int, new: int) -> float:
    """Returns the padded tokens, and 16 for each step; more than any where the budget is less."""
    costs = [prompt.cost(rows, new) for prompt in batch]
    taken, longest = sum(own for own, _ in costs), len(batch[0].tokens)
    if len(batch) > 1 and taken * (longest + max(added for _, added in costs)) > budget:
        return float("inf")
    return taken * longest + 16 * (1 if batch[0].choices else max(1, new))


@given(
    st.lists(st.tuples(st.integers(0, 40), st.lists(st.integers(1, 9), max_size=4)), max_size=9),
    st.integers(0, 600),
    st.integers(1, 4),
    st.integers(0, 12),
)
def test_no_other_batches_cost_less(
    shapes: list[tuple[int, list[int]]], budget: int, rows: int, new: int
) -> None:
    """Of all ways to cut the sorted prompts, none that fits pads and steps less."""
    prompts = [
        ModelInput((i,) * length, tuple((0,) * choice for choice in choices))
        for i, (length, choices) in enumerate(shapes)
    ]
    made = list(batches(prompts, budget, rows, new))
    for scored in (True, False):
        alike = [prompt for prompt in prompts if bool(prompt.choices) == scored]
        ordered = sorted(alike, key=lambda prompt: -len(prompt.tokens))
        inner = range(1, len(ordered))
        ways = [cuts for count in range(len(ordered)) for cuts in combinations(inner, count)]
        costs = [
            sum(
                cost(ordered[a:b], budget, rows, new) for a, b in pairwise((0, *cuts, len(ordered)))
            )
            for cuts in ways
        ]
        of_made = [cost(b, budget, rows, new) for b in made if bool(b[0].choices) == scored]
        assert sum(of_made) == min(costs, default=0)


def budget(asked: int = 1000) -> TokenBudget:
    """Returns a budget that has nothing to find."""
    return TokenBudget(asked, lambda: asked)


def narrow(most: int, tried: list[int]) -> Callable[[Sequence[ModelInput]], list[Generation]]:
    """Returns what answers batches of so many prompts at most, as a small GPU would."""

    def answer(batch: Sequence[ModelInput]) -> list[Generation]:
        tried.append(len(batch))
        if len(batch) > most:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate")
        return [Generation(str(prompt.tokens[0])) for prompt in batch]

    return answer


def test_out_of_memory_halves_the_batches_for_good(caplog: pytest.LogCaptureFixture) -> None:
    """They shrink until they pass, later ones begin so, and each time it is told and counted."""
    tried: list[int] = []
    answer = narrow(2, tried)
    prompts = [ModelInput((i,) * 10) for i in range(7)]
    made = budget()
    for _ in range(2):
        replies = made.read(prompts, 1, NEW, answer)
        assert [replies[prompt].text for prompt in prompts] == list("0123456")
    assert (tried[0], tried.count(3), tried[-7:]) == (7, 1, [1] * 7)
    assert made.sizes() == {"batch_tokens": 30}
    assert made.counts()["halvings"] == 2
    assert len(caplog.records) == 2
    assert "to 30 tokens" in caplog.text


def test_one_prompt_that_exhausts_the_memory_fails() -> None:
    """And so does any other error, at once."""
    with pytest.raises(torch.OutOfMemoryError):
        budget().read([ModelInput((1,)), ModelInput((2,))], 1, NEW, narrow(0, []))
    with pytest.raises(ZeroDivisionError):
        budget().read([ModelInput((1,))], 1, NEW, lambda _: [1 // 0])  # type: ignore[list-item]  # never a reply


class Card:
    """A GPU of 100 bytes, of which a prompt takes so many until the cache is emptied."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, each: int) -> None:
        self.each, self.taken = each, 0
        monkeypatch.setattr("torch.cuda.is_available", lambda: True)
        monkeypatch.setattr("torch.cuda.mem_get_info", lambda _: (100 - self.taken, 100))
        monkeypatch.setattr("torch.cuda.empty_cache", lambda: setattr(self, "taken", 0))

    def answer(self, batch: Sequence[ModelInput]) -> list[Generation]:
        """Takes memory, and keeps it as libraries do."""
        if (taken := self.each * len(batch)) > 100:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate")
        self.taken = max(self.taken, taken)
        return [Generation()] * len(batch)


@pytest.mark.parametrize(("each", "most", "prompts"), [(10, 64, 4), (10, 2, 2), (70, 64, 1)])
def test_a_budget_is_found_by_growing_batches(
    monkeypatch: pytest.MonkeyPatch, each: int, most: int, prompts: int
) -> None:
    """Until they take seven tenths of the GPU's memory, or fail; never more than are ever read."""
    card = Card(monkeypatch, each)
    prompt = ModelInput((1,) * 20)
    found = memory_budget(prompt, card.answer, "cuda", most, rows=2, new_tokens=5)
    assert found == prompts * 2 * (20 + 5)
    assert card.taken == 0


SIZED = """
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from leporello import Output
from leporello.readers.batching.micro_batches import Generation, ModelInput
from leporello.readers.batching.token_budget import TokenBudget

@dataclass(frozen=True)
class Sized:
    @cached_property
    def batching(self):
        return TokenBudget("auto", self.find)

    def find(self):
        found = Path(__file__).with_name("found")
        found.write_text(found.read_text() + "x" if found.exists() else "x")
        return 1000 // len(found.read_text())

    def read(self, inputs):
        prompts = {ModelInput((n,) * (10 + n)): None for n, _ in enumerate(inputs)}
        answer = lambda batch: [Generation()] * len(batch)
        self.batching.read(prompts, 1, 0, answer)
        return [Output(str(self.batching.tokens), input_tokens=10) for _ in inputs]

    def count(self, texts):
        return [1 for _ in texts]
"""


def test_a_size_that_was_found_stands_in_the_manifest(tmp_path: Path) -> None:
    """A resumed run uses it again, on whatever machine; timings tell of the batches."""
    (tmp_path / "plug.py").write_text(SIZED)
    config = tmp_path / "mine.yaml"
    config.write_text(
        'pipelines: {mine: {reader: {class: "./plug.py:Sized"}}}\n'
        "tasks: {rows: {class: JsonLines, path: rows.jsonl}}\n"
    )
    rows = [{"id": str(n), "document": "A text.", "question": "Why?"} for n in range(5)]
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    for limit in (2, None):
        done = run(
            ["mine"], ["rows"], config=[config], out=tmp_path / "out", limit=limit, workers=0
        )
    assert [found.prediction for found in done.predictions("mine", "rows")] == ["1000"] * 5
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert [*manifest["sizes"].values()] == [{"batch_tokens": 1000}]
    told = json.loads((tmp_path / "out/mine/rows/timings.json").read_text())["reading"]
    # The limit's border lay within the only shard, which is done again.
    assert (told["reads"], told["batches"], told["halvings"]) == (5, 1, 0)
    assert told["padding"] == pytest.approx(1 - 60 / 70, abs=1e-4)
    assert told["input_tokens_per_second"] > 0
    other = run(["mine"], ["rows"], config=[config], out=tmp_path / "other", limit=1, workers=0)
    assert next(other.predictions("mine", "rows")).prediction == "500"  # the shelf has it by size
