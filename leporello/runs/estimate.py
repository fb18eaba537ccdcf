"""How much a pipeline would read: told by what it has read, or by trying some documents."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from leporello.config import Pipeline
from leporello.core.errors import UserError
from leporello.core.protocols import RendersPrompt
from leporello.core.records import Example, Read
from leporello.engine.active_example import ActiveExample
from leporello.engine.failures import ExampleError, stage_errors
from leporello.engine.selection import Selection, select_document
from leporello.jobs.files import JobFiles

_DOCUMENTS, _EXAMPLES = 4, 4  # tried, and of each document
_ROWS = 200  # of finished examples that are looked at


@dataclass
class WorkEstimate:
    """Reads of some examples, from which those of all are extrapolated.

    Attributes:
        stages: Stages of the pipeline.
        examples: Number of examples that were looked at.
        reads: Number of reads of these examples.
        tokens: Number of input tokens of these reads, where the reader counts them.
        tried: Whether examples were tried: their combiners went as far as their first reads.
        enriched: Whether nothing need be read first to make passages; else none is tried.
    """

    stages: Pipeline
    examples: int = 0
    reads: int = 0
    tokens: int = 0
    tried: bool = False
    enriched: bool = True
    _documents: list[Sequence[Example]] = field(default_factory=list)
    _offered: int = 0
    _random: random.Random = field(default_factory=lambda: random.Random(0))

    def offer(self, examples: Sequence[Example]) -> None:
        """Takes the examples on one document, as one of a fair sample of all documents."""
        self._offered += 1
        if len(self._documents) < _DOCUMENTS:
            self._documents.append(examples)
        elif (index := self._random.randrange(self._offered)) < _DOCUMENTS:
            self._documents[index] = examples

    def look(self, files: JobFiles | None) -> None:
        """Counts what finished examples read; where there are none, tries those offered.

        Raises:
            UserError: A mistake of the user's.
        """
        finished = 0
        for example in files.examples() if files else ():
            if example.prediction is None:
                continue
            finished += 1
            outputs = [call["output"] for call in example.calls]
            self._count(len(outputs), example.statistics.input_tokens)
            if finished == _ROWS:
                break
        if not finished and self.enriched:
            self.tried = True
            for examples in self._documents:
                self._try(examples[:_EXAMPLES])

    def of(self, count: int, examples: int) -> int:
        """Returns what so many examples would come to, of a count over those looked at."""
        return round(count / self.examples * examples) if self.examples else 0

    def _try(self, examples: Sequence[Example]) -> None:
        selections = select_document(self.stages, examples, None).selections
        for example, selection in zip(examples, selections, strict=True):
            reads: Sequence[Read] = []
            if not isinstance(selection, ExampleError):
                reads = self._reads(example, selection)
            self._count(len(reads), sum(map(self._size, reads)))

    def _reads(self, example: Example, selection: Selection) -> Sequence[Read]:
        """Returns the first reads of an example; none if it fails."""
        active = ActiveExample.create(self.stages, 0, example, selection)
        try:
            with stage_errors("combiner"):
                active.start()
        except ExampleError:
            return []
        return active.reads

    def _size(self, read: Read) -> int:
        """Returns the tokens of a rendered read; 0 where the reader renders none, or refuses."""
        reader = self.stages.reader_of(read.role)
        if not isinstance(reader, RendersPrompt):
            return 0
        try:
            tokens: int = reader.count([reader.render(read)])[0]  # type: ignore[attr-defined]  # every reader counts
        except UserError:
            raise
        except Exception:  # it will fail when it is read, and be told then
            return 0
        return tokens

    def _count(self, reads: int, tokens: int) -> None:
        self.examples += 1
        self.reads += reads
        self.tokens += tokens
