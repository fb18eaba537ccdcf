"""Haystack component that runs a pipeline."""

from typing import Any

from leporello.api import Pipeline
from leporello.core.environment.extras import require

require("leporello.adapters.haystack", "haystack")
from haystack import Document, component  # noqa: E402 -- after the check


@component
class Leporello:
    """Answers one question about one document.

    Attributes:
        source: Source of the pipeline for `Pipeline.from_yaml`: a name, a file or a mapping.
        name: Name of the pipeline in the file.
    """

    def __init__(self, source: str | dict[str, Any] = "", name: str = "") -> None:
        self.source, self.name = source, name
        self._pipeline = Pipeline.from_yaml(source, name)

    @component.output_types(answer=str, documents=list[Document], ledger=list[str])
    def run(self, document: str, question: str) -> dict[str, Any]:
        """Returns the answer, the selected passages, and the coverage of the document.

        The document is a path, a URL or a text.
        """
        answer = self._pipeline.answer(document, question)
        documents = [
            Document(content=p.text, score=p.score, meta={"place": p.place, "read": p.read})
            for p in answer.passages
        ]
        return {"answer": answer.text, "documents": documents, "ledger": [*answer.ledger]}
