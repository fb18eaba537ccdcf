"""Tests that results derived from a document are cached, and recomputed only after a change."""

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from command_line import write_files

from leporello import Document, Example, Section, Span
from leporello.cache.store import Cache
from leporello.config import Pipeline
from leporello.config.classes import check_methods
from leporello.core.environment.classes import find_class
from leporello.core.protocols import KINDS
from leporello.core.records import CacheProtocol
from leporello.engine.selection import select
from leporello.retrievers import Fusion, Neighbours
from leporello.text.tokens import Words

TEXT = "The miller had three sons. The eldest got the mill. The second got only the donkey."
QUESTIONS = ("Who got the donkey?", "Who had sons?")

PLUG_IN = '''
"""Counts calls of its methods."""

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from leporello import Hit, Span
from leporello.text.tokens import Words

CALLS = Counter()


@dataclass(frozen=True)
class Cut:
    size: int = 4

    def chunk(self, document):
        CALLS["chunks"] += 1
        tokens = document.tokens(Words())
        for run in (tokens[i : i + self.size] for i in range(0, len(tokens), self.size)):
            yield Span(int(run[0, 0]), int(run[-1, 1]))


@dataclass(frozen=True)
class CutFor(Cut):
    def chunk(self, document, question):
        yield from super().chunk(document)


@dataclass(frozen=True)
class Find:
    search_only: ClassVar[tuple[str, ...]] = ("k",)

    k: int = 2
    power: float = 1.0

    def retrieve(self, questions, chunks):
        raise AssertionError("index and search are asked instead")

    def index(self, chunks):
        CALLS["index"] += 1
        import find_helper
        return {"weights": np.array([find_helper.weight(c.text) ** self.power for c in chunks])}

    def search(self, index, questions, chunks):
        CALLS["search"] += 1
        order = np.argsort(-index["weights"], kind="stable")[: self.k]
        return [[Hit(chunks[i], float(index["weights"][i])) for i in order] for _ in questions]


@dataclass(frozen=True)
class FindUncached(Find):
    """Its index cannot be stored in a file."""

    def index(self, chunks):
        return {"weights": super().index(chunks)["weights"], "chunks": tuple(chunks)}
'''
HELPER = "def weight(text):\n    return len(text)\n"
NOTHING: dict[str, int] = {}
ALL = {"tokens": 1, "chunks": 1, "index": 1}


class Workplace:
    """The plug-in's stages, and how often each was called."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.syspath_prepend(str(folder))
        monkeypatch.delitem(sys.modules, "find_helper", raising=False)
        self.folder = folder
        write_files(folder, {"counting.py": PLUG_IN, "find_helper.py": HELPER})
        self.calls: Counter[str] = sys.modules[self.stage("Cut").__module__].CALLS
        offsets = Words.offsets

        def counting(this: Words, text: str) -> Any:
            self.calls["tokens"] += 1
            return offsets(this, text)

        monkeypatch.setattr(Words, "offsets", counting)

    def stage(self, name: str) -> Any:
        return find_class(f"counting.py:{name}", KINDS["retriever"], self.folder)

    def pipeline(self, chunker: str = "Cut", retriever: str = "Find", **changed: Any) -> Pipeline:
        of_chunker = {n: v for n, v in changed.items() if n == "size"}
        of_retriever = {n: v for n, v in changed.items() if n != "size"}
        stages = self.stage(chunker)(**of_chunker), self.stage(retriever)(**of_retriever)
        return Pipeline(*stages, None, None)

    def calls_of(
        self,
        cache: CacheProtocol | None,
        stages: Pipeline,
        document: Document | None = None,
        questions: tuple[str, ...] = QUESTIONS,
    ) -> dict[str, int]:
        """Selects from a document, and returns the number of calls by kind of result."""
        self.calls.clear()
        document = document or Document("d", TEXT)
        if cache:
            document.use_cache(cache)
        select(stages, [Example(str(i), document, q) for i, q in enumerate(questions)])
        return {name: count for name, count in self.calls.items() if name != "search"}


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workplace:
    return Workplace(tmp_path / "plug-in", monkeypatch)


@pytest.fixture
def cache(tmp_path: Path, work: Workplace) -> Cache:
    """A cache with everything that the default pipeline derives from the default document."""
    filled = Cache(tmp_path / "cache")
    assert work.calls_of(filled, work.pipeline()) == ALL
    assert sorted(entry.kind for entry in filled.entries()) == ["chunks", "index", "tokens"]
    return filled


@pytest.mark.parametrize(
    ("changed", "again"),
    [
        ({"k": 1}, NOTHING),
        ({"power": 2.0}, {"index": 1}),
        ({"power": 1}, {"index": 1}),
        ({"size": 3}, {"chunks": 1, "index": 1}),
        ({"chunker": "CutFor"}, {"chunks": 2}),
        ({"retriever": "FindUncached"}, {"index": 1}),
    ],
    ids=repr,
)
def test_a_parameter_changes_what_depends_on_it(
    work: Workplace, cache: Cache, changed: dict[str, Any], again: dict[str, int]
) -> None:
    """`k` changes only the search; other parameters change their stage and all later ones."""
    assert work.calls_of(cache, work.pipeline(**changed)) == again


@pytest.mark.parametrize(
    ("document", "again"),
    [
        (Document("d", TEXT[:-1] + "!"), ALL),
        (Document("d", TEXT.replace("eldest", "eldesT")), ALL),
        (Document("e", TEXT), {"chunks": 1, "index": 1}),
        (Document("d", TEXT, "A title"), {"chunks": 1, "index": 1}),
        (Document("d", TEXT, "", (Section("s", 0, 9),)), {"chunks": 1, "index": 1}),
        (Document("d", TEXT, "", (), (Span(0, 9),)), {"chunks": 1, "index": 1}),
    ],
    ids=["last character", "a letter's case", "id", "title", "sections", "parts"],
)
def test_a_changed_document_is_processed_again(
    work: Workplace, cache: Cache, document: Document, again: dict[str, int]
) -> None:
    """Tokens depend only on the text; chunks and indexes on everything in the document."""
    assert work.calls_of(cache, work.pipeline(), document) == again
    assert work.calls_of(cache, work.pipeline()) == NOTHING


def test_chunks_for_a_question_are_cached_by_question(work: Workplace, cache: Cache) -> None:
    stages = work.pipeline("CutFor")
    assert work.calls_of(cache, stages)["chunks"] == 2
    assert work.calls_of(cache, stages) == NOTHING
    assert work.calls_of(cache, stages, None, ("Who?", QUESTIONS[0])) == {"chunks": 1}
    assert work.calls_of(cache, work.pipeline(), None, ("Who?",)) == NOTHING


@pytest.mark.parametrize("damage", ["torn", "flipped"])
@pytest.mark.parametrize("kind", ["tokens", "chunks", "index"])
def test_a_damaged_entry_is_computed_again(
    work: Workplace, cache: Cache, kind: str, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = next(entry.path for entry in cache.entries() if entry.kind == kind)
    if kind == "tokens":  # needed only without cached chunks
        next(entry.path for entry in cache.entries() if entry.kind == "chunks").unlink()
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content if damage == "flipped" else content[:-1])
    again = {"tokens": 1, "chunks": 1} if kind == "tokens" else {kind: 1}
    assert work.calls_of(cache, work.pipeline()) == again
    assert str(path) in caplog.text
    assert work.calls_of(cache, work.pipeline()) == NOTHING


def test_a_sweep_over_k_indexes_once(work: Workplace) -> None:
    """Retrievers that differ only in search parameters share an index, even without a cache."""
    document = Document("d", TEXT)
    calls = [work.calls_of(None, work.pipeline(k=k), document) for k in (1, 2, 3)]
    assert calls == [ALL, NOTHING, NOTHING]
    assert work.calls_of(None, work.pipeline(power=2.0), document) == {"index": 1}


def test_nested_retrievers_share_an_index_too(work: Workplace) -> None:
    find, document = work.stage("Find"), Document("d", TEXT)
    nested = Fusion((find(k=2), Neighbours(find(k=1))))  # type: ignore[arg-type]  # takes examples
    assert work.calls_of(None, Pipeline(work.stage("Cut")(), nested, None, None), document) == ALL


def test_an_index_that_cannot_be_stored_stays_in_memory(work: Workplace, tmp_path: Path) -> None:
    cache, document = Cache(tmp_path), Document("d", TEXT)
    stages = work.pipeline("Cut", "FindUncached")
    assert work.calls_of(cache, stages, document) == ALL
    assert work.calls_of(cache, stages, document) == NOTHING
    assert work.calls_of(cache, stages) == {"index": 1}
    assert [entry.kind for entry in cache.entries() if entry.kind == "index"] == []


def takes(*names: str, returns: str = "None") -> Any:
    return eval(f"lambda {', '.join(('self', *names))}: {returns}")  # noqa: S307 -- our own text


def retriever_class(**methods: Any) -> type:
    """Returns a retriever class with `retrieve` and these attributes."""

    def retrieve(self: Any, questions: Any, chunks: Any) -> Any:
        raise NotImplementedError

    return type("Mine", (), {"retrieve": retrieve, **methods})


INDEX, SEARCH = takes("chunks"), takes("index", "questions")


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        ({"index": INDEX}, "Mine has a method 'index' but no 'search'; a retriever with a"),
        ({"search": SEARCH}, "Mine has a method 'search' but no 'index'"),
        ({"index": takes("documents"), "search": SEARCH},
         "Mine.index takes (documents); it must take (chunks)"),
        ({"index": INDEX, "search": takes("index", "chunks")},
         "Mine.search takes (index, chunks); it must take (index, questions) or (index, ex"),
        ({"index": INDEX, "search": takes("made", "questions")},
         "Mine.search takes (made, questions); it must take (index, questions)"),
        ({"index": INDEX, "search": SEARCH, "search_only": "k"},
         "Mine.search_only is 'k'; it must be a tuple"),
        ({"__init__": takes("k"), "index": INDEX, "search": SEARCH, "search_only": ("kk",)},
         "Mine.search_only contains 'kk', which is not a parameter; did you mean 'k'"),
    ],
)  # fmt: skip
def test_a_retriever_with_half_an_index_is_a_fault(methods: dict[str, Any], message: str) -> None:
    fault = check_methods(retriever_class(**methods), KINDS["retriever"])
    assert fault is not None
    assert fault.startswith(message)
