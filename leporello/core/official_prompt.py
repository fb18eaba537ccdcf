"""A benchmark's own input, in the pieces that its authors cut it into."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from leporello.core.records import JSON, Example


@dataclass(frozen=True, slots=True)
class OfficialPrompt:
    """What stands around the document in a row's `input`, to the character.

    `before`, the document, `between`, `query` and `after`, put together, are that `input`; in a
    chat variant, what the authors make of it. Stages find it with `OfficialPrompt.of(example)`.

    Attributes:
        before: Text in front of the document: an instruction and a header, or the question.
        between: Text from the document's end to where the authors begin what must survive a cut.
        query: The query with its header.
        after: The header of the response.
        separator: Text that the authors put where they cut the document off.
    """

    before: str
    between: str = ""
    query: str = ""
    after: str = ""
    separator: str = ""

    def around(self, text: str) -> str:
        """Returns the whole input around a document's text."""
        return self.before + text + self.suffix

    @property
    def suffix(self) -> str:
        """All that follows the document."""
        return self.between + self.query + self.after

    @property
    def surviving(self) -> str:
        """What the authors keep where they cut the document off, behind their separator."""
        return self.query + self.after

    def metadata(self) -> dict[str, JSON]:
        """Returns what an example's `metadata` holds of it."""
        return {"prompt": {**asdict(self)}}

    @classmethod
    def of(cls, example: Example) -> OfficialPrompt | None:
        """Returns the prompt that an example's task gave it, if it did."""
        fields = example.metadata.get("prompt")
        return (
            cls(**{name: str(value) for name, value in fields.items()})
            if isinstance(fields, dict)
            else None
        )
