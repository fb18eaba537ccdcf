"""Model of lm-evaluation-harness that runs a pipeline: `simple_evaluate(model=LeporelloLM(…))`."""

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NoReturn

from leporello.api import Pipeline, UserError
from leporello.core.environment.extras import require
from leporello.core.records import Document

# An extra that development does not install, since it brings `datasets` (decision 43).
require("leporello.adapters.lm_eval", "lm_eval")
from lm_eval.api.model import LM  # noqa: E402 -- after the check


class LeporelloLM(LM):  # type: ignore[misc, unused-ignore]  # it need not be installed
    """Answers tasks with generated text.

    The last separator in a prompt of the harness divides the document from the question.

    Attributes:
        pipeline: The pipeline.
        separator: Text between document and question.
    """

    def __init__(self, pipeline: Pipeline | str = "", separator: str = "\n\n") -> None:
        super().__init__()
        self.pipeline = pipeline if isinstance(pipeline, Pipeline) else Pipeline.from_yaml(pipeline)
        self.separator = separator

    def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[str]:
        """Returns one answer per request; requests on one document are processed together."""
        del disable_tqdm
        requests_on: dict[str, list[int]] = defaultdict(list)
        parts = [request.args[0].rpartition(self.separator) for request in requests]
        for number, (document, _, question) in enumerate(parts):
            requests_on[document or question].append(number)
        texts: dict[int, str] = {}
        # Together, so that chunks and index of a document are made once.
        for document, numbers in requests_on.items():
            questions = [parts[number][2] for number in numbers]
            answers = self.pipeline.answers(Document("prompt", document), questions)
            texts |= {n: a.text for n, a in zip(numbers, answers, strict=True)}
        return [_before_stop(texts[n], request.args[1]) for n, request in enumerate(requests)]

    def loglikelihood(self, *_: object, **__: object) -> NoReturn:
        """Raises an error: a pipeline cannot compute the probability of a given text."""
        raise UserError(
            "a pipeline of Leporello has no log-likelihoods: choose tasks, or variants of them,"
            " whose output_type is generate_until"
        )

    loglikelihood_rolling = loglikelihood


def _before_stop(text: str, settings: dict[str, Any]) -> str:
    stops = settings.get("until") or []
    stops = [stops] if isinstance(stops, str) else stops
    return re.split("|".join(map(re.escape, filter(None, stops))), text)[0] if stops else text
