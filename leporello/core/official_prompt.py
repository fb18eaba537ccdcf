"""Official prompt of a benchmark, divided as its authors divide it for truncation."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from leporello.core.records import JSON, Example


@dataclass(frozen=True, slots=True)
class OfficialPrompt:
    """Exact text around the document in a row's `input`.

    `before`, the document, `between`, `query` and `after` are together that `input`, or the chat
    variant that the authors derive from it. Stages get it from `OfficialPrompt.of(example)`.

    Attributes:
        before: Text before the document: an instruction and a header, or the question.
        between: Text between the document and the part that truncation must preserve.
        query: The query with its header.
        after: The header of the response.
        separator: Text that the authors insert where they truncate the document.
    """

    before: str
    between: str = ""
    query: str = ""
    after: str = ""
    separator: str = ""

    def around(self, text: str) -> str:
        """Returns the complete input with a document's text."""
        return self.before + text + self.suffix

    @property
    def suffix(self) -> str:
        """Text after the document."""
        return self.between + self.query + self.after

    @property
    def surviving(self) -> str:
        """Text that the authors preserve after the separator when they truncate the document."""
        return self.query + self.after

    def metadata(self) -> dict[str, JSON]:
        """Returns the prompt as entry of an example's `metadata`."""
        # Not under `gold`: combiners such as `Truncate` need it, and it has no answers.
        return {"prompt": {**asdict(self)}}

    @classmethod
    def of(cls, example: Example) -> OfficialPrompt | None:
        """Returns the prompt of an example, or None if its task has none."""
        fields = example.metadata.get("prompt")
        return (
            cls(**{name: str(value) for name, value in fields.items()})
            if isinstance(fields, dict)
            else None
        )
