"""Analyses of a task's data and of a run's predictions: lengths, spread, format discrepancy."""

import math
import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median, pstdev
from typing import Literal

from leporello.analysis.finished import FinishedRun
from leporello.config import load_config
from leporello.core.calls.answers import as_text
from leporello.core.records import Document, Example
from leporello.engine.task_examples import examples_of

_TAIL = 0.05


@dataclass(frozen=True, slots=True)
class Distribution:
    """Summary of numbers."""

    count: int
    mean: float
    low: float  # 5 % quantile
    median: float
    high: float  # 95 % quantile
    largest: float


def distribution(values: Sequence[float]) -> Distribution | None:
    """Returns the summary of numbers; None without numbers."""
    if not values:
        return None
    ordered = sorted(values)
    last = len(ordered) - 1
    return Distribution(
        count=len(ordered),
        mean=fmean(ordered),
        low=ordered[math.floor(_TAIL * last)],
        median=median(ordered),
        high=ordered[math.ceil((1 - _TAIL) * last)],
        largest=ordered[-1],
    )


_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Spread:
    """Spread of the outputs' bigrams over the documents (SCROLLS, section 4).

    It is the standard deviation of the positions at which the distinct bigrams of an output first
    occur in the document. Words are sequences of letters and digits, in lower case.
    """

    words: Distribution | None  # in words, as in the paper; None if nothing could be measured
    shares: Distribution | None  # deviations as shares of the document's length, 0 to 0.5
    pairs: int  # number of documents with an output
    unmeasured: int  # number of these with fewer than two of the output's bigrams in the document


@dataclass(frozen=True, slots=True)
class TaskAnalysis:
    """Statistics of a task's data."""

    examples: int
    documents: int
    faulty: int  # number of examples with faulty data, which the other statistics exclude
    inputs: Distribution | None  # lengths of document and question, in words between blanks
    outputs: Distribution | None  # lengths of the references in words; None without references
    spread: Spread  # spread of the outputs in the documents


@dataclass(frozen=True, slots=True)
class FormatDiscrepancy:
    """Differences in form between predictions and references (ZeroSCROLLS, section 5)."""

    pipeline: str
    task: str
    predictions: Distribution | None  # lengths in words between blanks
    references: Distribution | None  # lengths of the references to these examples, in words
    shorter: float | None  # share of predictions below the 5 % quantile of the references
    longer: float | None  # share of predictions above the 95 % quantile of the references
    empty: int  # number of predictions without a word
    missing: int  # number of examples without a prediction; they failed


def analyze_examples(
    examples: Iterable[Example], *, spread_of: Literal["references", "question"] = "references"
) -> TaskAnalysis:
    """Returns statistics of a task's data, computed document by document.

    The examples are grouped by document, and iterated once. `spread_of` is the text to locate: for
    ContractNLI, whose references are labels, the paper locates the hypothesis, the question.
    """
    inputs, outputs = array("d"), array("d")
    deviations, shares = array("d"), array("d")
    count = documents = faulty = pairs = 0
    last: Document | None = None
    for example in examples:
        count += 1
        documents += example.document is not last
        last = example.document
        if example.fault:
            faulty += 1
            continue
        length, words, first = _measured(example.document)
        inputs.append(length + len(example.question.split()))
        outputs.extend(len(text.split()) for text in example.references)
        for text in example.references if spread_of == "references" else (example.question,):
            pairs += 1
            bigrams = {*pairwise(_WORD.findall(text.lower()))}
            positions = [first[bigram] for bigram in bigrams if bigram in first]
            if len(positions) > 1:  # one position has no spread
                deviations.append(pstdev(positions))
                shares.append(deviations[-1] / words)
    unmeasured = pairs - len(shares)
    spread = Spread(distribution(deviations), distribution(shares), pairs, unmeasured)
    return TaskAnalysis(
        count, documents, faulty, distribution(inputs), distribution(outputs), spread
    )


def _measured(document: Document) -> tuple[int, int, Mapping[tuple[str, str], int]]:
    """Returns words between blanks, words of letters and digits, and first places of bigrams."""

    def measure() -> tuple[int, int, Mapping[tuple[str, str], int]]:
        words = _WORD.findall(document.text.lower())
        # Backwards, so that the first of equal bigrams wins.
        backwards = zip(reversed(words[:-1]), reversed(words[1:]), strict=True)
        first = dict(zip(backwards, range(len(words) - 2, -1, -1), strict=True))
        return len(document.text.split()), len(words), first

    measured: tuple[int, int, Mapping[tuple[str, str], int]] = document.memo("words", measure)
    return measured


def analyze_predictions(
    pipeline: str, task: str, answers: Iterable[tuple[Example, str | None]]
) -> FormatDiscrepancy:
    """Compares the form of a task's references and predictions, of which None is a failure."""
    lengths, reference_lengths = array("d"), array("d")
    missing = 0
    for example, text in answers:
        if text is None:
            missing += 1
            continue
        lengths.append(len(text.split()))
        reference_lengths.extend(len(reference.split()) for reference in example.references)
    references = distribution(reference_lengths)
    bounds = (references.low, references.high) if references and lengths else None
    return FormatDiscrepancy(
        pipeline,
        task,
        predictions=distribution(lengths),
        references=references,
        shorter=fmean(length < bounds[0] for length in lengths) if bounds else None,
        longer=fmean(length > bounds[1] for length in lengths) if bounds else None,
        empty=lengths.count(0),
        missing=missing,
    )


# The references of these tasks are labels, so the paper locates the hypothesis of the question.
_SPREAD_OF_QUESTION = ("contract_nli",)


def analyze_task(task: str, config: Sequence[Path] = (), split: str = "") -> TaskAnalysis:
    """Returns statistics of a task's data; a split replaces the task's split."""
    [spec] = load_config(config).tasks_named([task])
    source = (spec.with_split(split) if split else spec).spec.build()
    of_question = task.rpartition("/")[2] in _SPREAD_OF_QUESTION
    return analyze_examples(
        examples_of(source, task), spread_of="question" if of_question else "references"
    )


def analyze_run(run: Path) -> list[FormatDiscrepancy]:
    """Compares the form of answers and references, for each job of a run."""
    discrepancies = []
    for job in FinishedRun.at(run).jobs:
        answers = (
            (example, as_text(files.prediction["raw"]) if files.prediction else None)
            for example, files in job.finished()
        )
        discrepancies.append(analyze_predictions(job.pipeline, job.task, answers))
    return discrepancies
