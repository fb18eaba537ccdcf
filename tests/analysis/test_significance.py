"""Resampling, held against the implementations that others use."""

from __future__ import annotations

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
from tiny_models import STORY

from leporello import Coverage, Document, Example, Prediction
from leporello.analysis.comparison.significance import (
    bootstrap,
    holm,
    interval,
    p_of_bootstrap,
    randomisation,
)
from leporello.config.metrics import metrics_of
from leporello.core.errors import UserError
from leporello.metrics import METRICS, Resampled
from leporello.metrics.coco.meteor import MeteorCoco

RANDOM = np.random.default_rng(5)
WORDS = STORY.lower().split()[:20]


def mean(sums: NDArray[Any], counts: NDArray[Any]) -> NDArray[Any]:
    """Scores by the mean of the only column."""
    scores: NDArray[Any] = sums[:, 0] / counts
    return scores


def table(values: NDArray[Any]) -> NDArray[Any]:
    """Returns scores as a metric's summands."""
    return np.asarray(values, dtype=np.float64)[:, None]


def test_intervals_are_those_of_scipy() -> None:
    """The percentile interval of a mean difference is that of scipy.stats.bootstrap."""
    one, other = RANDOM.random(200) * 100, RANDOM.random(200) * 90
    drawn = bootstrap([table(one), table(other)], mean, samples=20_000, seed=1)
    ours = interval(drawn[0] - drawn[1])
    theirs = stats.bootstrap(
        (one, other),
        lambda a, b, axis: (a - b).mean(axis=axis),
        paired=True,
        n_resamples=20_000,
        method="percentile",
        rng=np.random.default_rng(2),
    ).confidence_interval
    assert ours == pytest.approx(tuple(theirs), abs=0.4)


def sentences(count: int, noise: float, seed: int) -> list[str]:
    """Returns sentences of which a share of the words is another one's."""
    random = np.random.default_rng(seed)
    base = np.random.default_rng(0).integers(0, len(WORDS), (count, 12))
    wrong = random.random(base.shape) < noise
    changed = np.where(wrong, random.integers(0, len(WORDS), base.shape), base)
    return [" ".join(WORDS[n] for n in row) for row in changed]


@pytest.mark.parametrize("kind", ["bs", "ar"])
def test_p_is_that_of_sacrebleu(kind: str) -> None:
    """Both tests agree with sacreBLEU's paired tests of BLEU on the same sentences."""
    references = sentences(80, 0.0, 1)
    systems = [sentences(80, 0.3, 2), sentences(80, 0.33, 3), sentences(80, 0.45, 4)]
    metric = BLEU(references=[references])
    named: Any = list(zip(["base", "near", "far"], systems, strict=True))
    _, theirs = PairedTest(named, {"BLEU": metric}, None, kind, n_samples=4000)()
    told: Any = theirs["BLEU"][1:]
    wanted = [result.p_value for result in told]

    tables = [np.array(metric._extract_corpus_statistics(s, None), dtype=float) for s in systems]

    def score(sums: NDArray[Any], counts: NDArray[Any]) -> NDArray[Any]:
        assert len(sums) == len(counts)
        return np.array([metric._compute_score_from_stats(list(row)).score for row in sums])

    if kind == "ar":
        ours = randomisation(tables[0], tables[1:], score, samples=4000, seed=3)
    else:
        drawn = bootstrap(tables, score, samples=4000, seed=3)
        seen = [score(t.sum(axis=0)[None], np.ones(1))[0] for t in tables]
        ours = [p_of_bootstrap(drawn[place] - drawn[0], seen[place] - seen[0]) for place in (1, 2)]
    assert ours == pytest.approx(wanted, abs=0.03)
    assert ours[1] < 0.01 < ours[0]


@settings(max_examples=60)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm(p_values: list[float]) -> None:
    """Corrected p-values are those of the definition, never below the given ones."""
    ranked = sorted(p_values)
    wanted = [
        max(min(1.0, (len(ranked) - k) * ranked[k]) for k in range(rank + 1))
        for rank in range(len(ranked))
    ]
    found = holm(p_values)
    assert sorted(found) == pytest.approx(wanted)
    assert all(corrected >= p for corrected, p in zip(found, p_values, strict=True))


def test_documents_are_drawn_whole() -> None:
    """Examples that share a document widen the interval: ten copies of one are no ten examples."""
    values = np.repeat(RANDOM.random(20), 10)
    owners = np.repeat(np.arange(20), 10).tolist()
    alone = bootstrap([table(values)], mean, samples=2000, seed=0)[0]
    together = bootstrap([table(values)], mean, samples=2000, seed=0, units=owners)[0]
    assert together.std() > 2 * alone.std()


ANSWERS = ["the mill", "a cat", "a mill and a donkey", "nothing at all", "", "B", "40%", "2, 1, 3"]
GOLD = {
    "concordance_index": ["2, 1, 3", "1, 2, 3"],
    "exponential_similarity": ["60%", "35%"],
    "longbench_v2": ["B", "A"],
    "loogle_cloze": ['{"<mask-0>": "Ann", "<mask-1>": "Bo"}', '{"<mask-0>": "Bo"}'],
    "no_answer": ["unanswerable", "a cat"],
    "option_letter": ["B", "A"],
    "pan21": ["[1, 1, 2]", "[1, 2, 1, 3]"],
}
SAID = {
    "loogle_cloze": ['{"<mask-0>": "Bo"}', '{"<mask-0>": "Ann", "<mask-1>": "Ann"}', "no"],
    "pan21": ["[1, 1, 2]", "[1, 2, 2, 2]", "[1, 1]", "no"],
}
SUMMED = sorted(name for name in METRICS if issubclass(METRICS[name], Resampled))


def statistics(name: str, count: int) -> tuple[Resampled, Sequence[Any]]:
    """Returns a metric and its statistics of many answers."""
    try:
        metric = metrics_of([name])[name]
    except UserError as error:
        pytest.skip(str(error))
    assert isinstance(metric, Resampled)
    said, gold = SAID.get(name, ANSWERS), GOLD.get(name, ["the mill", "a cat", "a donkey"])
    found = []
    for number in range(count):
        text = said[number % len(said)]
        prediction = Prediction("x", text, text, (), (), Coverage(0, 0, 0, 0), "")
        example = Example(
            "x",
            Document("d", "a"),
            references=(gold[number % len(gold)],),
            metadata={"gold": {"labels": ["the mill", "a cat", "a donkey"]}},
        )
        found.append(metric.statistics(prediction, example))
    return metric, found


ELSEWHERE = {
    "recall",
    "recall_read",
    "judge",
    "citations",
    "meteor_coco",
}  # an average as others; what its program counts, below; a reader's opinion


@pytest.mark.parametrize("name", [n for n in SUMMED if n not in ELSEWHERE])
def test_sums_give_the_score(name: str) -> None:
    """A headline from sums is the one that the metric gives for those examples, repeated or not."""
    metric, found = statistics(name, 24)
    rows = metric.summands(found)
    for weights in (np.ones(24), np.bincount(RANDOM.integers(0, 24, 24), minlength=24)):
        repeated = [s for s, times in zip(found, weights, strict=True) for _ in range(int(times))]
        wanted = metric.aggregate(repeated)[metric.headline]  # type: ignore[attr-defined]  # of every metric
        sums = (weights @ rows)[None, :]
        [given_] = metric.of_sums(sums, np.array([float(weights.sum())]))
        assert given_ == pytest.approx(wanted, abs=1e-3)


def test_sums_of_meteor() -> None:
    """METEOR of summed counts is METEOR of the segments."""
    metric = object.__new__(MeteorCoco)  # without a look for Java, which it needs to count only
    one = [6.0, 5.0, 2.0, 2.0, 3.0, 3.0, 1.0, 1.0, *([0.0] * 12), 2.0, 4.0, 4.0]
    whole = [4.0, 4.0, 1.0, 1.0, 3.0, 3.0, 1.0, 1.0, *([0.0] * 12), 1.0, 4.0, 4.0]
    found = [{"counts": one}, {"counts": whole}, {"counts": one}]
    sums = metric.summands(found).sum(axis=0)[None, :]
    wanted = metric.aggregate(found)["meteor_coco"]
    assert metric.of_sums(sums, np.array([3.0]))[0] == pytest.approx(wanted, abs=1e-3)
    assert 10 < wanted < 100
