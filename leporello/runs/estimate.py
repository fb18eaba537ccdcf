"""Estimates the reads of a pipeline from finished examples, or by trying some documents."""

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

_DOCUMENTS, _EXAMPLES = 4, 4  # documents that are tried, and examples per document
_ROWS = 200  # finished examples that are counted


@dataclass
class WorkEstimate:
    """Counts the reads of a sample of examples, to extrapolate the total.

    Attributes:
        stages: Stages of the pipeline.
        examples: Number of examples in the sample.
        reads: Number of reads of these examples.
        tokens: Number of input tokens of these reads, if the reader counts them.
        tried: Whether combiners were run up to their first reads because no example is finished.
        enriched: Whether all passages exist. If not, making them takes reads, and no example is
            tried.
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
        """Adds the examples on a document to the random sample if the document is drawn."""
        self._offered += 1
        if len(self._documents) < _DOCUMENTS:
            self._documents.append(examples)
        # Reservoir sampling: each document has the same chance, and only four are in memory.
        elif (index := self._random.randrange(self._offered)) < _DOCUMENTS:
            self._documents[index] = examples

    def look(self, files: JobFiles | None) -> None:
        """Counts the reads of finished examples; if none is finished, tries the sample.

        Raises:
            UserError: The user made a mistake.
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

    def extrapolate(self, count: int, examples: int) -> int:
        """Extrapolates a count from the sample to a number of examples."""
        return round(count / self.examples * examples) if self.examples else 0

    def _try(self, examples: Sequence[Example]) -> None:
        selections = select_document(self.stages, examples, None).selections
        for example, selection in zip(examples, selections, strict=True):
            reads: Sequence[Read] = []
            if not isinstance(selection, ExampleError):
                reads = self._reads(example, selection)
            self._count(len(reads), sum(map(self._size, reads)))

    def _reads(self, example: Example, selection: Selection) -> Sequence[Read]:
        """Returns the first reads of an example; an empty list if it fails."""
        active = ActiveExample.create(self.stages, 0, example, selection)
        try:
            with stage_errors("combiner"):
                active.start()
        except ExampleError:
            return []
        return active.reads

    def _size(self, read: Read) -> int:
        """Returns the tokens of a rendered read; 0 if the reader cannot render it."""
        reader = self.stages.reader_of(read.role)
        if not isinstance(reader, RendersPrompt):
            return 0
        try:
            tokens: int = reader.count([reader.render(read)])[0]  # type: ignore[attr-defined]  # every reader counts
        except UserError:
            raise
        except Exception:  # the run will report the error when it reads this
            return 0
        return tokens

    def _count(self, reads: int, tokens: int) -> None:
        self.examples += 1
        self.reads += reads
        self.tokens += tokens
