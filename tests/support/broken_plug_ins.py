"""Plug-ins with faults that the test kit must find."""

import itertools
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing import parent_process
from typing import Any, ClassVar

from leporello import Document, Example, Hit, Output, Read, Span
from leporello.readers import Lead
from leporello.retrievers import First

COUNT = itertools.count()


@dataclass(frozen=True)
class Undeclared:
    """Declares a file that is missing."""

    depends_on: ClassVar[tuple[str, ...]] = ("no-such.txt",)


@dataclass(frozen=True)
class Words:
    """Chunker that yields the words of the text, with the fault that `wrong` names."""

    wrong: str = ""

    def chunk(self, document: Any) -> Any:
        ends = [n for n, letter in enumerate(document.text) if letter == " "]
        spans = [Span(a, b) for a, b in itertools.pairwise([0, *ends, len(document.text)])]
        match self.wrong:
            case "backwards":
                spans.reverse()
            case "quadratic":
                spans = [s for s in spans if all(s.start <= o.start or s > o for o in spans)]
            case "emoji":
                document.text.encode("ascii")
            case "random":
                spans = spans[next(COUNT) % 5 :]
            case "thread":
                assert threading.current_thread() is threading.main_thread()
            case "process":
                assert not parent_process()
            case "exit" if parent_process():
                os._exit(3)
        return iter(spans)


@dataclass
class Thawed:
    """Chunker that is not a frozen dataclass."""

    wrong: str = ""
    chunk = Words.chunk


@dataclass(frozen=True)
class Firsts(First):
    """Retriever of the first chunks, with the fault that `wrong` names."""

    wrong: str = ""
    search_only: ClassVar[tuple[str, ...]] = ("k",)

    def index(self, chunks: Any) -> Any:
        return {"firsts": [chunk.start for chunk in chunks[: self.k]]}

    def search(self, index: Any, questions: Any, chunks: Any) -> Any:
        hits = [Hit(c, -float(c.start)) for c in chunks if c.start in index["firsts"]][: self.k]
        if self.wrong == "company":
            return [hits[: len(questions)] for _ in questions]
        return [hits[::-1] if self.wrong == "order" else hits for _ in questions]


@dataclass(frozen=True)
class Leaks(Lead):
    """Reader that answers every input with the question of the first one."""

    def read(self, inputs: Any) -> Any:
        return [Output(inputs[0].question) for _ in inputs]

    def count(self, texts: Any) -> Any:
        return [1 for _ in texts]


@dataclass(frozen=True)
class Remembers:
    """Combiner whose reads depend on the number of earlier calls."""

    def combine(self, example: Any, hits: Any) -> Any:
        [output] = yield [Read((), str(next(COUNT)))]
        return output.text


@dataclass(frozen=True)
class Careless:
    """Loader that fails on other encodings, and returns a part that ends beyond the text."""

    suffixes = (".txt",)

    def load(self, path: Any) -> Any:
        text = path.read_text("utf-8")
        return Document(path.name, text, parts=(Span(0, len(text) + 1),))


@dataclass(frozen=True)
class Scattered:
    """Task that returns to earlier documents, and whose fingerprint changes."""

    metrics = ("f1",)

    def examples(self) -> Iterator[Example]:
        yield from (Example(str(n), Document(str(n % 2), "a"), "?") for n in range(3))

    def fingerprint(self) -> str:
        return str(next(COUNT))


@dataclass(frozen=True)
class Sets:
    """Metric with statistics that cannot be stored as JSON."""

    def statistics(self, prediction: Any, example: Any) -> Any:
        return {"words": {prediction.prediction}}

    def aggregate(self, statistics: Any) -> float:
        return 1.0
