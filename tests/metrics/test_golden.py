"""Metrics against the numbers of the official scorers, and against the libraries behind them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import pytest
from command_line import GOLDEN
from hypothesis import given
from hypothesis import strategies as st

from leporello import Coverage, Document, Example, Prediction
from leporello.config.metrics import metrics_of
from leporello.core.errors import UserError
from leporello.metrics import METRICS, Metric, Statistics
from leporello.metrics.coco.bleu_rouge import BleuCoco, RougeLCoco, bleu
from leporello.metrics.coco.java import need_coco
from leporello.metrics.coco.meteor import meteor
from leporello.metrics.coco.tokenizer import coco_words
from leporello.metrics.rouge import rouge_l_sum

Case = Mapping[str, Any]
# What the golden files call them -> ours.
NAMES = {
    "accuracy": "option_letter",
    "concordance_index": "concordance_index",
    "exact_match": "exact_match",
    "exp_similarity": "exponential_similarity",
    "f1": "f1",
    "rouge": "rouge_scrolls",
}


def golden(name: str, *metrics: str) -> list[Case]:
    """Returns the cases of a benchmark, of all metrics or of some."""
    cases = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    return [case for case in cases if not metrics or case["metric"] in metrics]


def called(case: Case) -> str:
    """Returns a case's name, for the list of tests."""
    return str(case["id"])


def predicted(text: str) -> Prediction:
    """Returns a prediction."""
    return Prediction("x", text, text, (), (), Coverage(0, 0, 0, 0), "")


def asked(*references: str, choices: tuple[str, ...] = ()) -> Example:
    """Returns an example with this gold."""
    return Example("x", Document("d", ""), references=references, choices=choices)


def made(name: str) -> Metric:
    """Returns a metric; skips the test where what it needs is not installed, and says what."""
    try:
        return metrics_of([name])[name]
    except UserError as error:
        pytest.skip(str(error))


def needs_coco() -> None:
    """Skips the test where the Java programs cannot be run, and says why."""
    try:
        need_coco("coco")
    except UserError as error:
        pytest.skip(str(error))


def counted(metric: Metric, case: Case, **more: Any) -> list[Statistics]:
    """Returns the statistics of all examples of a case."""
    pairs = zip(case["predictions"], case["references"], strict=True)
    found = [metric.statistics(predicted(p), asked(*r, **more)) for p, r in pairs]
    return [statistics for statistics in found if statistics is not None]


# -- SCROLLS and ZeroSCROLLS -------------------------------------------------------------------


@pytest.mark.parametrize("case", golden("scrolls"), ids=called)
def test_scrolls(case: Case) -> None:
    """Totals and per-example scores equal those of the SCROLLS scorer to four decimals."""
    check(made(NAMES[case["metric"]]), case)


@pytest.mark.parametrize("case", golden("zero_scrolls"), ids=called)
def test_zero_scrolls(case: Case) -> None:
    """The same for ZeroSCROLLS, whose F1 transliterates."""
    check(made("f1_unidecode" if case["metric"] == "f1" else NAMES[case["metric"]]), case)


def check(metric: Metric, case: Case) -> None:
    """Compares the total, and each example."""
    found = counted(metric, case)
    scores = metric.aggregate(found)
    assert scores[metric.name] == pytest.approx(case["score"], abs=1e-4)
    for name, mean in case.get("means", {}).items():
        assert scores[name] == pytest.approx(mean, abs=1e-4)
    for statistics, expected in zip(found, case["per_example"], strict=True):
        if isinstance(expected, dict):
            assert statistics == pytest.approx(expected, abs=1e-9)
        else:
            assert metric.score(statistics) == pytest.approx(expected, abs=1e-9)


texts = st.text(alphabet="abAB19 .-\n\nïé", max_size=60)


# -- MuLD --------------------------------------------------------------------------------------


def tokenised(cases: Sequence[Case]) -> dict[str, str]:
    """Returns the words that the official tokenizer made of each text of the cases."""
    given = {t: w for c in cases for t, w in zip(c["predictions"], c["tokenized_predictions"])}  # noqa: B905 -- checked below
    for case in cases:
        pairs = zip(case["references"], case["tokenized_references"], strict=True)
        given |= dict(chain.from_iterable(zip(r, w, strict=True) for r, w in pairs))
    return given


COCO = golden("muld", "Bleu_1", "Bleu_4", "METEOR", "ROUGE_L")
WORDS = tokenised(COCO)


def words_of(*texts: str) -> list[str]:
    """Returns the words that the official tokenizer found in each of these texts."""
    return [WORDS[text] for text in texts]


@pytest.mark.parametrize("case", golden("muld", "Bleu_1", "Bleu_4"), ids=called)
def test_bleu(case: Case) -> None:
    """BLEU of pooled counts, and of each example, is that of coco-caption, however small."""
    order = int(case["metric"][-1])
    metric = BleuCoco(words=words_of)
    found = counted(metric, case)
    assert bleu(found)[order - 1] == pytest.approx(case["score"], rel=1e-9)
    each = [bleu([statistics])[order - 1] for statistics in found]
    assert each == pytest.approx(case["per_example"], rel=1e-9)
    assert metric.aggregate(found)[f"bleu_{order}"] == pytest.approx(100 * case["score"], abs=1e-4)


@pytest.mark.parametrize("case", golden("muld", "ROUGE_L"), ids=called)
def test_rouge_l(case: Case) -> None:
    """ROUGE-L is that of coco-caption, the total and each example."""
    metric = RougeLCoco(words=words_of)
    found = counted(metric, case)
    scores = [metric.score(statistics) / 100 for statistics in found]
    assert scores == pytest.approx(case["per_example"], abs=1e-12)
    total = metric.aggregate(found)["rouge_l_coco"]
    assert total == pytest.approx(100 * case["score"], abs=1e-4)


@pytest.mark.parametrize("text", WORDS)
def test_words_are_those_of_the_official_tokenizer(text: str) -> None:
    """One program, kept alive, says of each text alone what the official script said."""
    needs_coco()
    assert coco_words(text, "", text) == (WORDS[text], "", WORDS[text])


@pytest.mark.integration
@pytest.mark.parametrize("case", golden("muld", "METEOR"), ids=called)
def test_meteor(case: Case) -> None:
    """METEOR of pooled counts, and of each example, is that of METEOR 1.5."""
    metric = made("meteor_coco")
    found = counted(metric, case)
    scores = [metric.score(statistics) / 100 for statistics in found]
    assert scores == pytest.approx(case["per_example"], abs=1e-12)
    total = metric.aggregate(found)["meteor_coco"]
    assert total == pytest.approx(100 * case["score"], abs=1e-4)


# Texts, METEOR's own line about them, and its score, as the program gave them.
METEOR_LINES = [
    ("4 6 4 3 0 0 2 2 0 0 0 0 0 0 0 0 0 0 0 0 2 2 2", 0.07407407407407407),
    ("2 2 1 1 1 1 1 1 0 0 0 0 0 0 0 0 0 0 0 0 1 2 2", 1.0),
    ("6 6 2 2 0 0 1 1 0 0 0 0 3 3 0 0 1 1 1 1 1 6 6", 0.757142857142857),
    ("0 3 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0", 0.0),
    ("0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0", 0.0),
    ("2 2 0 0 1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1 1 1", 0.2),
    ("8 9 2 3 6 6 2 2 0 0 0 0 0 0 0 0 0 0 0 0 2 8 8", 0.5230551846972475),
]


@pytest.mark.parametrize(("line", "score"), METEOR_LINES)
def test_meteor_of_counts(line: str, score: float) -> None:
    """What METEOR counts comes to METEOR's score without the program."""
    assert meteor([[float(number) for number in line.split()]]) == pytest.approx(score, abs=1e-15)


@pytest.mark.parametrize("case", golden("muld", "f1"), ids=called)
def test_character_types(case: Case) -> None:
    """F1 over labels is scikit-learn's with these labels: macro, micro and of each."""
    metric, choices = made("f1_macro"), ("Hero", "Villain/Antagonist")
    scores = metric.aggregate(counted(metric, case, choices=choices))
    assert scores["f1_macro"] == pytest.approx(100 * case["score"], abs=1e-4)
    assert scores["f1_micro"] == pytest.approx(100 * case["micro"], abs=1e-4)
    for label, score in case["classes"].items():
        assert scores[f"f1[{label}]"] == pytest.approx(100 * score, abs=1e-4)


@pytest.mark.parametrize("case", golden("muld", "pan21_f1"), ids=called)
def test_style_change(case: Case) -> None:
    """All three tasks are scored as PAN's evaluator scores them."""
    metric = made("pan21")
    given, wanted = case["predictions"], case["references"]
    pairs = [(json.dumps(given[problem]), json.dumps(wanted[problem])) for problem in wanted]
    found = [metric.statistics(predicted(p), asked(r)) for p, r in pairs]
    scores = metric.aggregate([json.loads(json.dumps(s)) for s in found])
    for task, score in case["tasks"].items():
        assert scores[f"pan21_{task}"] == pytest.approx(100 * score, abs=1e-4)


@pytest.mark.integration
@given(texts, texts)
def test_rouge_is_that_of_rouge_score(reference: str, text: str) -> None:
    """Each F-measure is the library's to the last bit."""
    from rouge_score.rouge_scorer import RougeScorer

    found = METRICS["rouge"]().statistics(predicted(text), asked(reference))
    kinds = ["rouge1", "rouge2", "rougeL"]
    official = RougeScorer([*kinds, "rougeLsum"], use_stemmer=False).score(reference, text)
    assert found == {kind: 100 * official[kind].fmeasure for kind in kinds}
    assert rouge_l_sum(text, reference) == official["rougeLsum"].fmeasure
