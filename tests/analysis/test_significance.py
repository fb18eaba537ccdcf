"""Tests of resampling against the implementations in other libraries."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest
from scipy import stats
from scored import example_of, metric_named, prediction_of
from tiny_models import STORY

from leporello.analysis.comparison.significance import (
    bootstrap,
    holm,
    interval,
    p_of_bootstrap,
    randomisation,
)
from leporello.metrics import METRICS, Resampled
from leporello.metrics.coco.scores import MeteorCoco

RANDOM = np.random.default_rng(5)
WORDS = STORY.lower().split()[:20]


def mean(sums: NDArray[Any], counts: NDArray[Any]) -> NDArray[Any]:
    scores: NDArray[Any] = sums[:, 0] / counts
    return scores


def table(values: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(values, dtype=np.float64)[:, None]


def test_intervals_equal_those_of_scipy() -> None:
    first, second = RANDOM.random(200) * 100, RANDOM.random(200) * 90
    samples = bootstrap([table(first), table(second)], mean, samples=20_000, seed=1)
    actual = interval(samples[0] - samples[1])
    expected = stats.bootstrap(
        (first, second),
        lambda a, b, axis: (a - b).mean(axis=axis),
        paired=True,
        n_resamples=20_000,
        method="percentile",
        rng=np.random.default_rng(2),
    ).confidence_interval
    assert actual == pytest.approx(tuple(expected), abs=0.4)


def sentences(count: int, noise: float, seed: int) -> list[str]:
    """Returns sentences in which a share of the words is replaced."""
    random = np.random.default_rng(seed)
    base = np.random.default_rng(0).integers(0, len(WORDS), (count, 12))
    wrong = random.random(base.shape) < noise
    changed = np.where(wrong, random.integers(0, len(WORDS), base.shape), base)
    return [" ".join(WORDS[n] for n in row) for row in changed]


@pytest.mark.parametrize("kind", ["bs", "ar"])
def test_p_equals_that_of_sacrebleu(kind: str) -> None:
    """Both tests agree with sacreBLEU's paired tests of BLEU on the same sentences."""
    references = sentences(80, 0.0, 1)
    systems = [sentences(80, 0.3, 2), sentences(80, 0.33, 3), sentences(80, 0.45, 4)]
    metric = BLEU(references=[references])
    pairs: Any = list(zip(["base", "near", "far"], systems, strict=True))
    _, by_metric = PairedTest(pairs, {"BLEU": metric}, None, kind, n_samples=4000)()
    results: Any = by_metric["BLEU"][1:]
    expected = [result.p_value for result in results]

    tables = [np.array(metric._extract_corpus_statistics(s, None), dtype=float) for s in systems]

    def score(sums: NDArray[Any], counts: NDArray[Any]) -> NDArray[Any]:
        assert len(sums) == len(counts)
        return np.array([metric._compute_score_from_stats(list(row)).score for row in sums])

    if kind == "ar":
        actual = randomisation(tables[0], tables[1:], score, samples=4000, seed=3)
    else:
        samples = bootstrap(tables, score, samples=4000, seed=3)
        scores = [score(t.sum(axis=0)[None], np.ones(1))[0] for t in tables]
        actual = [p_of_bootstrap(samples[n] - samples[0], scores[n] - scores[0]) for n in (1, 2)]
    assert actual == pytest.approx(expected, abs=0.03)
    assert actual[1] < 0.01 < actual[0]


@settings(max_examples=60)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm(p_values: list[float]) -> None:
    """Corrected p-values match the definition, and are never below the original ones."""
    ranked = sorted(p_values)
    expected = [
        max(min(1.0, (len(ranked) - k) * ranked[k]) for k in range(rank + 1))
        for rank in range(len(ranked))
    ]
    actual = holm(p_values)
    assert sorted(actual) == pytest.approx(expected)
    assert all(corrected >= p for corrected, p in zip(actual, p_values, strict=True))


def test_examples_of_a_document_are_drawn_together() -> None:
    values = np.repeat(RANDOM.random(20), 10)
    owners = np.repeat(np.arange(20), 10).tolist()
    independent = bootstrap([table(values)], mean, samples=2000, seed=0)[0]
    together = bootstrap([table(values)], mean, samples=2000, seed=0, units=owners)[0]
    assert together.std() > 2 * independent.std()


ANSWERS = ["the mill", "a cat", "a mill and a donkey", "nothing at all", "", "B", "40%", "2, 1, 3"]
GOLD = {
    "concordance_index": ["2, 1, 3", "1, 2, 3"],
    "exponential_similarity": ["60%", "35%"],
    "graphwalks": ['["a", "b"]', '["c"]'],
    "longbench_v2": ["B", "A"],
    "loogle_cloze": ['{"<mask-0>": "Ann", "<mask-1>": "Bo"}', '{"<mask-0>": "Bo"}'],
    "no_answer": ["unanswerable", "a cat"],
    "option_letter": ["B", "A"],
    "pan21": ["[1, 1, 2]", "[1, 2, 1, 3]"],
}
PREDICTIONS = {
    "loogle_cloze": ['{"<mask-0>": "Bo"}', '{"<mask-0>": "Ann", "<mask-1>": "Ann"}', "no"],
    "pan21": ["[1, 1, 2]", "[1, 2, 2, 2]", "[1, 1]", "no"],
    "helmet_ndcg": ["1 > 2", "2 > 1", "3", "no"],
}
SUMMED = sorted(name for name in METRICS if issubclass(METRICS[name], Resampled))


FACTS: dict[str, Any] = {
    "labels": ["the mill", "a cat", "a donkey"],
    "prefix": "a ",
    "relevance": {"1": 2, "2": 1},
}


def statistics(name: str, count: int) -> tuple[Resampled, Sequence[Any]]:
    metric = metric_named(name)
    assert isinstance(metric, Resampled)
    texts, gold = PREDICTIONS.get(name, ANSWERS), GOLD.get(name, ["the mill", "a cat", "a donkey"])
    rows = []
    for number in range(count):
        prediction = prediction_of(texts[number % len(texts)])
        example = example_of(gold[number % len(gold)], text="a", metadata={"gold": FACTS})
        rows.append(metric.statistics(prediction, example))
    return metric, rows


# Metrics that need hits or a reader; `meteor_coco` has its own test below.
ELSEWHERE = {"recall", "recall_read", "judge", "citations", "meteor_coco"}


@pytest.mark.parametrize("name", [n for n in SUMMED if n not in ELSEWHERE])
def test_sums_give_the_score(name: str) -> None:
    metric, examples = statistics(name, 24)
    rows = metric.summands(examples)
    for weights in (np.ones(24), np.bincount(RANDOM.integers(0, 24, 24), minlength=24)):
        pairs = zip(examples, weights, strict=True)
        repeated = [example for example, times in pairs for _ in range(int(times))]
        expected = metric.aggregate(repeated)[metric.headline]  # type: ignore[attr-defined]  # of every metric
        sums = (weights @ rows)[None, :]
        [actual] = metric.of_sums(sums, np.array([float(weights.sum())]))
        assert actual == pytest.approx(expected, abs=1e-3)


def test_sums_of_meteor() -> None:
    """METEOR of summed counts equals METEOR of the segments."""
    metric = object.__new__(MeteorCoco)  # skips the check for Java, which only counting needs
    partial = [6.0, 5.0, 2.0, 2.0, 3.0, 3.0, 1.0, 1.0, *([0.0] * 12), 2.0, 4.0, 4.0]
    complete = [4.0, 4.0, 1.0, 1.0, 3.0, 3.0, 1.0, 1.0, *([0.0] * 12), 1.0, 4.0, 4.0]
    counts = [{"counts": partial}, {"counts": complete}, {"counts": partial}]
    sums = metric.summands(counts).sum(axis=0)[None, :]
    expected = metric.aggregate(counts)["meteor_coco"]
    assert metric.of_sums(sums, np.array([3.0]))[0] == pytest.approx(expected, abs=1e-3)
    assert 10 < expected < 100
