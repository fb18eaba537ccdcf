"""Fine-tuning of models that mark where an answer begins and ends."""

from __future__ import annotations

from collections import Counter
from functools import partial

from leporello.core.records import Read
from leporello.core.training import TrainingPairs, TuningJob, TuningResult
from leporello.readers.encoders.question_answering import PassageWindow
from leporello.readers.extractive import Extractive
from leporello.readers.training import collators
from leporello.readers.training.examples import TrainingExample
from leporello.readers.training.hardware import check  # noqa: F401 -- asked for beside the trainer
from leporello.readers.training.trainer import ModelToTune, fine_tune


def extractive(reader: Extractive, job: TuningJob) -> TuningResult:
    """Fine-tunes a model to mark the target in the windows where it stands.

    Other windows teach that there is no answer, unless the reader's `null_threshold` is null.
    """
    network = reader.network
    model = ModelToTune(
        network.model,
        "AutoModelForQuestionAnswering",
        network.tokens,
        network.device,
        collators.spans,
    )
    return fine_tune(model, job, partial(_training_examples, reader))


def _training_examples(
    reader: Extractive, pairs: TrainingPairs, counts: Counter[str]
) -> list[TrainingExample]:
    examples = []
    for read, target in zip(pairs.inputs, pairs.targets, strict=True):
        of_read = _of_read(reader, read, target)
        marked = any(example.labels[1] for example in of_read)
        nothing = "no answer in the passages" if of_read else "not found, and left out"
        counts["learnt" if marked else nothing] += 1
        examples += of_read
    return examples


def _of_read(reader: Extractive, read: Read, target: str) -> list[TrainingExample]:
    """Returns an example for each window; the answer is looked for in each."""
    examples = []
    answer = "" if target == reader.unanswerable else target.strip()
    for _, window in reader.windows(read):
        positions = _marked(window, answer) if answer else None
        if positions is None and reader.null_threshold is not None:
            positions = (window.prompt.null, window.prompt.null)
        if positions is not None:
            examples.append(TrainingExample(window.prompt, positions))
    return examples


def _marked(window: PassageWindow, answer: str) -> tuple[int, int] | None:
    """Returns first and last token of the answer where it first stands in a window, if any."""
    begin = window.text.casefold().find(answer.casefold())
    while begin >= 0:
        if positions := _tokens(window, begin, begin + len(answer)):
            return positions
        begin = window.text.casefold().find(answer.casefold(), begin + 1)
    return None


def _tokens(window: PassageWindow, begin: int, end: int) -> tuple[int, int] | None:
    """Returns the tokens that these characters lie in, if all of them lie in the window."""
    marked = [
        (index, span)
        for index, (mark, span) in enumerate(zip(window.prompt.marks, window.offsets, strict=True))
        if mark
    ]
    inside = [index for index, (start, stop) in marked if start < end and stop > begin]
    if not inside or marked[0][1][0] > begin or marked[-1][1][1] < end:
        return None
    return inside[0], inside[-1]
