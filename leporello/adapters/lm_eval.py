"""A pipeline as a model of lm-evaluation-harness: `simple_evaluate(model=LeporelloLM(…))`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NoReturn

from lm_eval.api.model import LM

from leporello.api import Pipeline, UserError
from leporello.core.records import Document


class LeporelloLM(LM):  # type: ignore[misc, unused-ignore]  # it need not be installed
    """Answers the tasks that have a text generated.

    The harness gives one prompt. What follows the last separator in it is the question, and what
    stands before it the document.

    Attributes:
        pipeline: The pipeline.
        separator: Separator of document and question.
    """

    def __init__(self, pipeline: Pipeline | str = "", separator: str = "\n\n") -> None:
        super().__init__()
        self.pipeline = pipeline if isinstance(pipeline, Pipeline) else Pipeline.from_yaml(pipeline)
        self.separator = separator

    def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[str]:
        """Returns an answer a request; those on one document are selected and read together."""
        del disable_tqdm
        asked: dict[str, list[int]] = defaultdict(list)
        parts = [request.args[0].rpartition(self.separator) for request in requests]
        for number, (document, _, question) in enumerate(parts):
            asked[document or question].append(number)
        told: dict[int, str] = {}
        for document, numbers in asked.items():
            questions = [parts[number][2] for number in numbers]
            answers = self.pipeline.answers(Document("prompt", document), questions)
            told |= {n: a.text for n, a in zip(numbers, answers, strict=True)}
        return [_until(told[n], request.args[1]) for n, request in enumerate(requests)]

    def loglikelihood(self, *_: object, **__: object) -> NoReturn:
        """Refuses: a pipeline writes answers, and knows no probability of another's text."""
        raise UserError(
            "a pipeline of Leporello has no log-likelihoods: take tasks, or variants of them, whose"
            " output_type is generate_until"
        )

    loglikelihood_rolling = loglikelihood


def _until(text: str, settings: dict[str, Any]) -> str:
    stops = settings.get("until") or []
    listed = [stops] if isinstance(stops, str) else stops
    return re.split("|".join(map(re.escape, filter(None, listed))), text)[0] if listed else text
