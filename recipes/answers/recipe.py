"""The recipe `answers`: prepares data, trains, validates, and writes the shipped files."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from leporello.core.environment.classes import ClassError, find_class
from leporello.core.errors import UserError, did_you_mean
from leporello.core.files import opened, write_json
from leporello.core.protocols import KINDS
from leporello.core.records import JSON
from leporello.engine.progress import Progress
from leporello.jobs.manifest import versions
from leporello.training.fine_tuning import checkpoint_folder
from leporello.training.model_card import RECORD, new_folder
from recipes.answers.base import Base, load_base
from recipes.answers.negatives import nearest_passages
from recipes.answers.questions import Question, read_questions, split
from recipes.answers.settings import AnswersSettings
from recipes.answers.ship import ship
from recipes.answers.train import (
    AnswersTraining,
    device_named,
    validation_scores,
)
from recipes.answers.windows import Draw, Group, GroupMaker
from recipes.settings import exclusion
from recipes.weights import card_of

_NEGATIVES = 8  # maximum number of passages without the answer per question
_VALIDATED = 40  # maximum number of validation questions per set
_FREE = ("checkpoint_seconds", "threads", "device")  # settings that may change on resuming

_log = logging.getLogger("leporello")


@dataclass(frozen=True)
class TrainingData:
    """Questions of a training."""

    train: list[Question]  # training questions
    validation: list[Question]  # validation questions, on other documents
    excluded: int  # number of excluded questions


SETTINGS = AnswersSettings


def run(settings: AnswersSettings, out: Path) -> dict[str, Any]:
    """Trains or resumes, and writes `answers/`, the log and a record into a folder."""
    device_named(settings.device)
    base = load_base(settings)
    with checkpoint_folder(out, _identity(settings)) as folder:
        data = prepare(settings)
        training = AnswersTraining(
            settings, base, _maker(data.train, settings, base), _rows(data.train), folder
        )
        with Progress("training, in steps") as progress:
            training.run(progress.example)
        groups = _validation_groups(data.validation, settings, base)
        scores = validation_scores(training.network, base.special, groups, settings.batch)
        record = _record(settings, training, data, scores)
        with new_folder(out) as target:
            ship(training.network, base, target / "answers", _card(record), settings.language)
            shutil.copy(folder / "log.jsonl", target)
            write_json(target / RECORD, {**record, **versions()})
    return record


def prepare(settings: AnswersSettings) -> TrainingData:
    """Reads the questions, removes excluded ones, and splits the others by document.

    Raises UserError if a set of the settings does not exist, or no questions are left.
    """
    everything = [question for file in settings.questions for question in read_questions(file)]
    is_apart = cache(exclusion(settings.exclude))
    free = [q for q in everything if not any(map(is_apart, (q.passage, *q.others)))]
    train, validation = split(free, settings.validation, settings.seed)
    sets = {question.source for question in train}
    for phase in settings.phases:
        for name in phase.weights or ():
            if name not in sets:
                raise UserError(
                    f"weights: there are no questions of the set {name!r}{did_you_mean(name, sets)}"
                )
        if phase.weights is not None and not any(phase.weights.values()):
            raise UserError("weights: are all zero; remove them to weight every set by its size")
    if not train:
        raise UserError("there are no questions to train on")
    return TrainingData(train, validation, len(everything) - len(free))


def _maker(questions: Sequence[Question], settings: AnswersSettings, base: Base) -> GroupMaker:
    try:
        retriever: Any = find_class(settings.retriever, KINDS["retriever"], Path())
    except ClassError as error:
        raise UserError(f"retriever: {error}") from None
    negatives = nearest_passages(questions, retriever(k=4 * _NEGATIVES + 4), _NEGATIVES)
    return GroupMaker(questions, negatives, base.tokenizer, settings, base.longest)


def _rows(questions: Sequence[Question]) -> dict[str, list[int]]:
    rows = defaultdict(list)
    for row, question in enumerate(questions):
        rows[question.source].append(row)
    return dict(rows)


def _validation_groups(
    questions: Sequence[Question], settings: AnswersSettings, base: Base
) -> list[Group]:
    chosen = [questions[row] for rows in _rows(questions).values() for row in rows[:_VALIDATED]]
    maker = _maker(chosen, settings, base)
    return [maker.make(Draw(row, (0, row)), settings.phases[-1]) for row in range(len(chosen))]


def _identity(settings: AnswersSettings) -> dict[str, JSON]:
    """Returns the settings and hashes of files that checkpoints depend on, as JSON."""
    files: dict[str, JSON] = {}
    for path in (*settings.questions, *([settings.exclude] if settings.exclude else [])):
        with opened(path) as file:
            files[str(path)] = hashlib.file_digest(file, "sha256").hexdigest()
    plain = {name: value for name, value in _plain(settings).items() if name not in _FREE}
    return {"settings": plain, "files": files}


def _plain(settings: AnswersSettings) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(asdict(settings), default=str))
    return plain


def _record(
    settings: AnswersSettings,
    training: AnswersTraining,
    data: TrainingData,
    scores: Mapping[str, float],
) -> dict[str, Any]:
    counts = Counter(question.source for question in data.train)
    return {
        "recipe": "answers",
        "questions": dict(sorted(counts.items())),
        "excluded": data.excluded,
        "validated": len(data.validation),
        "validation": {name: round(value, 4) for name, value in scores.items()},
        "steps": training.state.steps,
        "tokens": training.state.all_tokens,
        "seconds": round(training.state.seconds),
        "settings": _plain(settings),
    }


def _card(record: Mapping[str, Any]) -> str:
    """Returns a model card with the known facts, and a list of facts that a person must add."""
    settings = record["settings"]
    sets = "\n".join(f"| {name} | {count:,} |" for name, count in record["questions"].items())
    scores = ", ".join(f"{name} {value:.3f}" for name, value in record["validation"].items())
    fields = {**settings, **record, "sets": sets, "scores": scores or "none", "most": _VALIDATED}
    return card_of("answers").format(**fields)
