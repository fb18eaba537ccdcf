"""Tests that batches have minimal costs within the budget, and the budget fits the memory."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from command_line import write_files
from hypothesis import given
from hypothesis import strategies as st

from leporello.api import run
from leporello.readers.batching.micro_batches import Generation, ModelInput, batches
from leporello.readers.batching.token_budget import TokenBudget, memory_budget

NEW = 10


@given(
    st.lists(st.tuples(st.integers(0, 40), st.lists(st.integers(1, 9), max_size=4)), max_size=9),
    st.integers(0, 600),
    st.integers(1, 4),
    st.integers(0, 12),
)
def test_batches_contain_all_prompts_within_the_budget(
    shapes: list[tuple[int, list[int]]], budget: int, rows: int, new: int
) -> None:
    prompts = [
        ModelInput((i,) * length, tuple((0,) * choice for choice in choices))
        for i, (length, choices) in enumerate(shapes)
    ]
    chosen = list(batches(prompts, budget, rows, new))
    ordered = sorted(prompts, key=lambda prompt: (not prompt.choices, -len(prompt.tokens)))
    assert [prompt for batch in chosen for prompt in batch] == ordered
    for batch in chosen:
        costs, longest = [prompt.cost(rows, new) for prompt in batch], len(batch[0].tokens)
        count, most_new = sum(size for size, _ in costs), max(added for _, added in costs)
        assert len({bool(prompt.choices) for prompt in batch}) == 1
        assert len(batch) == 1 or count * (longest + most_new) <= budget
        tokens = sum(size * len(p.tokens) for p, (size, _) in zip(batch, costs, strict=True))
        assert count * longest - tokens <= 16 * (1 if batch[0].choices else max(1, new))


def budget(tokens: int = 1000) -> TokenBudget:
    return TokenBudget(tokens, lambda: tokens, (1, NEW))


def narrow(most: int, sizes: list[int]) -> Callable[[Sequence[ModelInput]], list[Generation]]:
    """Returns a function that answers batches up to a size, like a small GPU."""

    def answer(batch: Sequence[ModelInput]) -> list[Generation]:
        sizes.append(len(batch))
        if len(batch) > most:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate")
        return [Generation(str(prompt.tokens[0])) for prompt in batch]

    return answer


def test_out_of_memory_halves_batches_permanently(caplog: pytest.LogCaptureFixture) -> None:
    sizes: list[int] = []
    answer = narrow(2, sizes)
    prompts = [ModelInput((i,) * 10) for i in range(7)]
    token_budget = budget()
    for _ in range(2):
        replies = token_budget.read(prompts, answer)
        assert [replies[prompt].text for prompt in prompts] == list("0123456")
    assert (sizes[0], sizes.count(3), sizes[-7:]) == (7, 1, [1] * 7)
    assert token_budget.sizes() == {"batch_tokens": 30}
    assert token_budget.counts()["halvings"] == 2
    assert len(caplog.records) == 2
    assert "to 30 tokens" in caplog.text


def test_a_single_prompt_that_exceeds_the_memory_fails() -> None:
    with pytest.raises(torch.OutOfMemoryError):
        budget().read([ModelInput((1,)), ModelInput((2,))], narrow(0, []))
    with pytest.raises(ZeroDivisionError):
        budget().read([ModelInput((1,))], lambda _: [1 // 0])  # type: ignore[list-item]  # never returns


@pytest.mark.parametrize(("fitting", "most", "prompts"), [(10, 64, 4), (10, 2, 2), (1, 64, 1)])
def test_the_budget_leaves_a_third_of_the_memory_free(
    monkeypatch: pytest.MonkeyPatch, fitting: int, most: int, prompts: int
) -> None:
    prompt, sizes = ModelInput((1,) * 20), list[int]()
    answer = narrow(fitting, sizes)
    assert memory_budget(prompt, answer, "cpu", most) == 4096
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.empty_cache", lambda: None)
    tokens = memory_budget(prompt, answer, "cuda", most, (2, 5))
    assert tokens == prompts * 2 * (20 + 5)
    assert all(size > fitting for size in sizes[:-1])


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
        calls = Path(__file__).with_name("calls")
        calls.write_text(calls.read_text() + "x" if calls.exists() else "x")
        return 1000 // len(calls.read_text())

    def read(self, inputs):
        prompts = {ModelInput((n,) * (10 + n)): None for n, _ in enumerate(inputs)}
        answer = lambda batch: [Generation()] * len(batch)
        self.batching.read(prompts, answer)
        return [Output(str(self.batching.tokens), input_tokens=10) for _ in inputs]

    def count(self, texts):
        return [1 for _ in texts]
"""


CONFIG = """
pipelines: {mine: {reader: {class: "./plug.py:Sized"}}}
tasks: {rows: {class: JsonLines, path: rows.jsonl}}
"""


def test_the_manifest_contains_the_size_of_batches(tmp_path: Path) -> None:
    rows = [{"id": str(n), "document": "A text.", "question": "Why?"} for n in range(5)]
    write_files(tmp_path, {"plug.py": SIZED, "mine.yaml": CONFIG, "rows.jsonl": rows})
    options: dict[str, Any] = {"config": [tmp_path / "mine.yaml"], "workers": 0}
    for limit in (2, None):
        summary = run(["mine"], ["rows"], out=tmp_path / "out", limit=limit, **options)
    assert [row.prediction for row in summary.predictions("mine", "rows")] == ["1000"] * 5
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert [*manifest["sizes"].values()] == [{"batch_tokens": 1000}]
    timings = json.loads((tmp_path / "out/mine/rows/timings.json").read_text())["reading"]
    # The limit ended within the only shard, which is therefore run again.
    assert (timings["reads"], timings["batches"], timings["halvings"]) == (5, 1, 0)
    assert timings["padding"] == pytest.approx(1 - 60 / 70, abs=1e-4)
    assert timings["input_tokens_per_second"] > 0
    second = run(["mine"], ["rows"], out=tmp_path / "other", limit=1, **options)
    # The cache has a key per size.
    assert next(second.predictions("mine", "rows")).prediction == "500"
