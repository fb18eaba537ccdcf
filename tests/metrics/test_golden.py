"""Compares metrics with the numbers of official scorers and of the libraries that they use."""

import json
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import pytest
from command_line import GOLDEN
from hypothesis import given
from hypothesis import strategies as st
from scored import check_official, example_of, metric_named, prediction_of, score_of

from leporello import Example, Span
from leporello.config.metrics import metrics_of
from leporello.core.errors import UserError
from leporello.metrics import METRICS, Metric, Statistics
from leporello.metrics.coco import scores
from leporello.metrics.coco.java import coco_words, need_coco
from leporello.metrics.coco.scores import BleuCoco, MeteorCoco, RougeLCoco
from leporello.metrics.rouge import rouge_l_sum
from leporello.tasks import LongBench
from leporello.tasks.long_context.infinite_bench import references as references_of

Case = Mapping[str, Any]
# Names of metrics in the golden files, and in this package.
NAMES = {
    "accuracy": "option_letter",
    "concordance_index": "concordance_index",
    "exact_match": "exact_match",
    "exp_similarity": "exponential_similarity",
    "f1": "f1",
    "rouge": "rouge_scrolls",
}


def golden(name: str, *metrics: str) -> list[Case]:
    """Returns the cases of a benchmark for all metrics or the given ones."""
    cases = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    return [case for case in cases if not metrics or case["metric"] in metrics]


def case_id(case: Case) -> str:
    return str(case["id"])


def needs_coco() -> None:
    """Skips the test with the reason if the Java programs cannot run."""
    try:
        need_coco("coco")
    except UserError as error:
        pytest.skip(str(error))


def statistics_of(metric: Metric, case: Case, **options: Any) -> list[Statistics]:
    pairs = zip(case["predictions"], case["references"], strict=True)
    rows = [metric.statistics(prediction_of(p), example_of(*r, **options)) for p, r in pairs]
    return [statistics for statistics in rows if statistics is not None]


@pytest.mark.parametrize("case", golden("scrolls"), ids=case_id)
def test_scrolls(case: Case) -> None:
    """Totals and per-example scores equal those of the SCROLLS scorer to four decimals."""
    metric = metric_named(NAMES[case["metric"]])
    check_official(metric, statistics_of(metric, case), case)


@pytest.mark.parametrize("case", golden("zero_scrolls"), ids=case_id)
def test_zero_scrolls(case: Case) -> None:
    """Scores equal those of the ZeroSCROLLS scorer, whose F1 transliterates."""
    metric = metric_named("f1_unidecode" if case["metric"] == "f1" else NAMES[case["metric"]])
    check_official(metric, statistics_of(metric, case), case)


texts = st.text(alphabet="abAB19 .-\n\nïé", max_size=60)


def tokenised(cases: Sequence[Case]) -> dict[str, str]:
    """Returns the official tokenizer's words of each text in the cases."""
    words = {t: w for c in cases for t, w in zip(c["predictions"], c["tokenized_predictions"])}  # noqa: B905 -- checked below
    for case in cases:
        pairs = zip(case["references"], case["tokenized_references"], strict=True)
        words |= dict(chain.from_iterable(zip(r, w, strict=True) for r, w in pairs))
    return words


COCO = golden("muld", "Bleu_1", "Bleu_4", "METEOR", "ROUGE_L")
WORDS = tokenised(COCO)


@pytest.fixture
def official_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces the Java program by the official tokenizer's words of the cases."""
    monkeypatch.setattr(scores, "need_coco", lambda _: None)
    monkeypatch.setattr(scores, "coco_words", lambda *texts: [WORDS[text] for text in texts])


@pytest.mark.usefixtures("official_words")
@pytest.mark.parametrize("case", golden("muld", "Bleu_1", "Bleu_4"), ids=case_id)
def test_bleu(case: Case) -> None:
    """BLEU of pooled counts and of each example equals coco-caption's, even if tiny."""
    order = int(case["metric"][-1])
    metric = BleuCoco()
    rows = statistics_of(metric, case)
    counts = [metric.row(statistics) for statistics in rows]
    sums = [*map(sum, zip(*counts, strict=True))]
    total, *per_example = (metric.scores(row)[f"bleu_{order}"] / 100 for row in (sums, *counts))
    assert total == pytest.approx(case["score"], rel=1e-9)
    assert per_example == pytest.approx(case["per_example"], rel=1e-9)
    assert metric.aggregate(rows)[f"bleu_{order}"] == pytest.approx(100 * case["score"], abs=1e-4)


@pytest.mark.usefixtures("official_words")
@pytest.mark.parametrize("case", golden("muld", "ROUGE_L"), ids=case_id)
def test_rouge_l(case: Case) -> None:
    """ROUGE-L equals coco-caption's, in total and for each example."""
    check_coco(RougeLCoco(), case)


@pytest.mark.integration
@pytest.mark.parametrize("case", golden("muld", "METEOR"), ids=case_id)
def test_meteor(case: Case) -> None:
    """METEOR of pooled counts and of each example equals METEOR 1.5's."""
    check_coco(metric_named("meteor_coco"), case)


def check_coco(metric: Metric, case: Case) -> None:
    rows = statistics_of(metric, case)
    scores = [metric.score(statistics) / 100 for statistics in rows]
    assert scores == pytest.approx(case["per_example"], abs=1e-12)
    assert metric.aggregate(rows)[metric.name] == pytest.approx(100 * case["score"], abs=1e-4)


@pytest.mark.parametrize("text", WORDS)
def test_words_are_those_of_the_official_tokenizer(text: str) -> None:
    """One running program returns the official script's words for each text."""
    needs_coco()
    assert coco_words(text, "", text) == (WORDS[text], "", WORDS[text])


# Lines of counts and scores that METEOR's program printed.
METEOR_LINES = [
    ("4 6 4 3 0 0 2 2 0 0 0 0 0 0 0 0 0 0 0 0 2 2 2", 0.07407407407407407),
    ("2 2 1 1 1 1 1 1 0 0 0 0 0 0 0 0 0 0 0 0 1 2 2", 1.0),
    ("6 6 2 2 0 0 1 1 0 0 0 0 3 3 0 0 1 1 1 1 1 6 6", 0.757142857142857),
    ("0 3 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0", 0.0),
    ("0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0", 0.0),
    ("2 2 0 0 1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1 1 1", 0.2),
    ("8 9 2 3 6 6 2 2 0 0 0 0 0 0 0 0 0 0 0 0 2 8 8", 0.5230551846972475),
]


@pytest.mark.usefixtures("official_words")
@pytest.mark.parametrize(("line", "score"), METEOR_LINES)
def test_meteor_of_counts(line: str, score: float) -> None:
    """METEOR's counts give METEOR's score without the program."""
    statistics = {"counts": [float(number) for number in line.split()]}
    assert MeteorCoco().score(statistics) / 100 == pytest.approx(score, abs=1e-15)


@pytest.mark.parametrize("case", golden("muld", "f1"), ids=case_id)
def test_character_types(case: Case) -> None:
    """F1 over labels equals scikit-learn's: macro, micro and per label."""
    metric, choices = metric_named("f1_macro"), ("Hero", "Villain/Antagonist")
    scores = metric.aggregate(statistics_of(metric, case, choices=choices))
    assert scores["f1_macro"] == pytest.approx(100 * case["score"], abs=1e-4)
    assert scores["f1_micro"] == pytest.approx(100 * case["micro"], abs=1e-4)
    for label, score in case["classes"].items():
        assert scores[f"f1[{label}]"] == pytest.approx(100 * score, abs=1e-4)


@pytest.mark.parametrize("case", golden("muld", "pan21_f1"), ids=case_id)
def test_style_change(case: Case) -> None:
    """Scores of all three tasks equal those of PAN's evaluator."""
    metric = metric_named("pan21")
    answers, truths = case["predictions"], case["references"]
    pairs = [(json.dumps(answers[problem]), json.dumps(truths[problem])) for problem in truths]
    rows = [metric.statistics(prediction_of(p), example_of(r)) for p, r in pairs]
    scores = metric.aggregate([json.loads(json.dumps(s)) for s in rows])
    for task, score in case["tasks"].items():
        assert scores[f"pan21_{task}"] == pytest.approx(100 * score, abs=1e-4)


@pytest.mark.integration
@given(texts, texts)
def test_rouge_equals_rouge_score(reference: str, text: str) -> None:
    """Each F-measure equals the library's to the last bit."""
    from rouge_score.rouge_scorer import RougeScorer

    statistics = METRICS["rouge"]().statistics(prediction_of(text), example_of(reference))
    kinds = ["rouge1", "rouge2", "rougeL"]
    official = RougeScorer([*kinds, "rougeLsum"], use_stemmer=False).score(reference, text)
    assert statistics == {kind: 100 * official[kind].fmeasure for kind in kinds}
    assert rouge_l_sum(text, reference) == official["rougeLsum"].fmeasure


def metric_of(case: Case) -> Metric:
    if case["metric"] == "longbench":
        entries = LongBench(case["task"]).metrics
    elif case["metric"] == "infinite_bench":
        entry = {"class": "infinite_bench", "task": case["task"]}
        entries = ({**entry, "skip": case["skip"]} if "skip" in case else entry,)
    else:
        entries = (case["metric"],)
    return metric_named(case["metric"], entries)


def examples(case: Case) -> list[Example]:
    gold = case.get("references") or [
        references_of(case["task"], label, ()) for label in case["labels"]
    ]
    groups = case.get("groups", [("", "")] * len(gold))
    choices = tuple(case.get("choices", ()))
    metadata = ({"difficulty": difficulty, "length": length} for difficulty, length in groups)
    return [
        example_of(*texts, choices=choices, metadata=fields)
        for texts, fields in zip(gold, metadata, strict=True)
    ]


@pytest.mark.parametrize("case", golden("long_context"), ids=case_id)
def test_long_contexts(case: Case) -> None:
    """Scores of examples, the total and other means are equal; official ones are rounded."""
    metric = metric_of(case)
    pairs = zip(case["predictions"], examples(case), strict=True)
    rows = [s for text, example in pairs if (s := metric.statistics(prediction_of(text), example))]
    rounded = {"longbench": 0.0051, "longbench_v2": 0.051, "loogle_cloze": 0.0051}
    check_official(metric, rows, case, rounded.get(case["metric"], 1e-4))


# A valid reference for each metric that does not accept any text.
GOLD = {
    "concordance_index": "2, 1, 3",
    "exponential_similarity": "60%",
    "graphwalks": '["a"]',
    "longbench_v2": "The correct answer is (B)",
    "loogle_cloze": '{"<mask-0>": "Bob"}',
    "option_letter": "B",
    "pan21": "[1, 1, 2]",
}
# Scores pairs of examples, not examples: tests/tasks/test_shuffle_test.py.
IN_PAIRS = {"shuffle_accuracy"}


@pytest.mark.parametrize(
    "name",
    sorted(METRICS.keys() - IN_PAIRS - {"judge", "citations"}),  # these ask a reader
)
def test_a_failure_scores_zero(name: str) -> None:
    """And a right answer has the full score; in this file, as METEOR starts for many seconds."""
    metric = metric_named(name)
    gold = GOLD.get(name, "an answer of four words")
    facts: dict[str, Any] = {"labels": [gold], "prefix": "an ", "relevance": {"2": 1}}
    metadata = {"gold": facts}
    example = example_of(gold, text="an answer", evidence=(Span(0, 9),), metadata=metadata)
    statistics = metric.statistics(prediction_of(), example)
    assert statistics is not None
    assert json.loads(json.dumps(statistics)) == statistics
    assert metric.score(statistics) == 0
    assert set(metric.aggregate([statistics]).values()) == {0}
    texts = {"recall": "", "recall_read": "", "graphwalks": "Final Answer: [a]", "helmet_ndcg": "2"}
    text = texts.get(name, gold)
    perfect = metric.statistics(prediction_of(text, hits=((0, 9),)), example)
    assert perfect is not None
    assert metric.score(perfect) == pytest.approx(50 if name == "pan21" else 100)


def test_no_code_of_an_answer_runs() -> None:
    """Code that the authors would run as Python is not an answer."""
    [metric] = metrics_of(["loogle_cloze"]).values()
    for text in ("dict([('<mask-0>', 'Bob')])", "{'<mask-0>': exit()}", "(" * 5000):
        assert score_of(metric, text, example_of('{"<mask-0>": "Bob"}')) == 0
