"""What is derived from a document is made once, and made again exactly where something changed."""

from __future__ import annotations

import logging
import pickle
import sys
from collections import Counter
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from leporello import Document, Example, Hit, Section, Span
from leporello.cache import fingerprint as fingerprints
from leporello.cache.dependencies import _version, library_versions
from leporello.cache.fingerprint import fingerprint
from leporello.cache.store import Cache
from leporello.chunkers import FixedTokens
from leporello.config import Pipeline
from leporello.config.classes import check_methods
from leporello.core.calls.contracts import index_methods, indexers
from leporello.core.calls.derived import cached_chunks, chunks_key, index_key
from leporello.core.calls.stage_calls import retrieve
from leporello.core.environment.classes import find_class
from leporello.core.protocols import KINDS
from leporello.core.records import CacheProtocol
from leporello.engine.selection import Selection, select, select_apart
from leporello.retrievers import All, Fusion, Neighbours, TfIdf
from leporello.text.tokens import HuggingFace, Words, tokenizer

TEXT = "The miller had three sons. The eldest got the mill. The second got only the donkey."
QUESTIONS = ("Who got the donkey?", "Who had sons?")

PLUG_IN = '''
"""Counts what it is asked for."""

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

import idna
import numpy as np

from leporello import Hit, Span
from leporello.core.protocols import ModelSource
from leporello.text.tokens import tokenizer

CALLS = Counter()


@dataclass(frozen=True)
class Cut:
    size: int = 4
    tokenizer: ModelSource = "words"

    def chunk(self, document):
        CALLS["chunks"] += 1
        tokens = document.tokens(tokenizer(self.tokenizer))
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
class FindOtherwise(Find):
    """What it indexes no file can hold."""

    def index(self, chunks):
        return {"weights": super().index(chunks)["weights"], "chunks": tuple(chunks)}
'''
HELPER = "def weight(text):\n    return len(text)\n"
NOTHING: dict[str, int] = {}
ALL = {"tokens": 1, "chunks": 1, "index": 1}


def plug_in(folder: Path, source: str = PLUG_IN, helper: str = HELPER) -> Path:
    """Writes the plug-in and a module that it imports."""
    folder.mkdir(exist_ok=True)
    (folder / "counting.py").write_text(source)
    (folder / "find_helper.py").write_text(helper)
    return folder


class Workplace:
    """The plug-in's stages, and how often each was asked to work."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.syspath_prepend(str(folder))
        monkeypatch.delitem(sys.modules, "find_helper", raising=False)
        self.folder = plug_in(folder)
        self.calls: Counter[str] = self._module().CALLS
        self._count(Words, monkeypatch)
        self._count(HuggingFace, monkeypatch)

    def _module(self) -> ModuleType:
        return sys.modules[self.stage("Cut").__module__]

    def _count(self, tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        offsets = tokenizer.offsets

        def counted(this: Any, text: str) -> Any:
            self.calls["tokens"] += 1
            return offsets(this, text)

        monkeypatch.setattr(tokenizer, "offsets", counted)

    def stage(self, name: str) -> Any:
        """Returns a class of the plug-in."""
        return find_class(f"counting.py:{name}", KINDS["retriever"], self.folder)

    def pipeline(self, chunker: str = "Cut", retriever: str = "Find", **changed: Any) -> Pipeline:
        """Returns new stages."""
        of_chunker = {n: v for n, v in changed.items() if n in ("size", "tokenizer")}
        others = {n: v for n, v in changed.items() if n not in of_chunker}
        made = self.stage(chunker)(**of_chunker), self.stage(retriever)(**others)
        return Pipeline(*made, None, None)

    def asked(
        self,
        shelf: CacheProtocol | None,
        stages: Pipeline,
        document: Document | None = None,
        questions: tuple[str, ...] = QUESTIONS,
    ) -> dict[str, int]:
        """Selects from a document, and returns what was worked out for it."""
        self.calls.clear()
        document = document or Document("d", TEXT)
        if shelf:
            document.use_cache(shelf)
        select(stages, [Example(str(i), document, q) for i, q in enumerate(questions)])
        return {name: count for name, count in self.calls.items() if name != "search"}


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workplace:
    """A plug-in that counts."""
    return Workplace(tmp_path / "plug-in", monkeypatch)


@pytest.fixture
def cache(tmp_path: Path, work: Workplace) -> Cache:
    """A cache that holds what the plain pipeline derives from the plain document."""
    filled = Cache(tmp_path / "cache")
    assert work.asked(filled, work.pipeline()) == ALL
    assert sorted(entry.kind for entry in filled.entries()) == ["chunks", "index", "tokens"]
    return filled


# -- one thing changes ---------------------------------------------------------------------------


def test_a_second_run_works_nothing_out(work: Workplace, cache: Cache) -> None:
    """New stages and a new document that are the same find everything."""
    assert work.asked(cache, work.pipeline()) == NOTHING
    assert work.calls["search"] == 1


@pytest.mark.parametrize(
    ("changed", "again"),
    [
        ({"k": 1}, NOTHING),
        ({"power": 2.0}, {"index": 1}),
        ({"power": 1}, {"index": 1}),
        ({"size": 3}, {"chunks": 1, "index": 1}),
        ({"chunker": "CutFor"}, {"chunks": 2}),
        ({"retriever": "FindOtherwise"}, {"index": 1}),
    ],
    ids=repr,
)
def test_a_parameter_changes_what_depends_on_it(
    work: Workplace, cache: Cache, changed: dict[str, Any], again: dict[str, int]
) -> None:
    """`k` changes nothing but the search; others their stage's work, and what is made of it."""
    assert work.asked(cache, work.pipeline(**changed)) == again


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
def test_a_document_changes_what_is_made_of_it(
    work: Workplace, cache: Cache, document: Document, again: dict[str, int]
) -> None:
    """Tokens depend on the text alone; chunks and indexes on everything in the document."""
    assert work.asked(cache, work.pipeline(), document) == again
    assert work.asked(cache, work.pipeline()) == NOTHING


def test_a_question_changes_what_was_made_for_it(work: Workplace, cache: Cache) -> None:
    """A chunker that asks for the question divides once a question; any other once a document."""
    stages = work.pipeline("CutFor")
    assert work.asked(cache, stages)["chunks"] == 2
    assert work.asked(cache, stages) == NOTHING
    assert work.asked(cache, stages, None, ("Who?", QUESTIONS[0])) == {"chunks": 1}
    assert work.asked(cache, work.pipeline(), None, ("Who?",)) == NOTHING


def word_level(folder: Path, *words: str) -> str:
    """Writes a tokenizer that splits at blanks."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    folder.mkdir(exist_ok=True)
    numbers = {word: number for number, word in enumerate(["?", *words])}
    made: Any = Tokenizer(WordLevel(numbers, unk_token="?"))  # noqa: S106 -- a token of its vocabulary
    made.pre_tokenizer = Whitespace()
    made.save(str(folder / "tokenizer.json"))
    return str(folder)


def test_a_tokenizer_changes_everything(work: Workplace, cache: Cache, tmp_path: Path) -> None:
    """Another tokenizer, or another content of the same files, makes other tokens."""
    name = word_level(tmp_path / "model", "one")
    assert work.asked(cache, work.pipeline(tokenizer=name)) == ALL
    assert work.asked(cache, work.pipeline(tokenizer=name)) == NOTHING
    word_level(tmp_path / "model", "one", "two")
    assert work.asked(cache, work.pipeline(tokenizer=name)) == NOTHING  # the old one is loaded
    fingerprints._content.cache_clear()
    tokenizer.cache_clear()
    # The chunks come out the same; an index depends on where they stand, not on who made them.
    assert work.asked(cache, work.pipeline(tokenizer=name)) == {"tokens": 1, "chunks": 1}


def test_library_versions_change_what_depends_on_them(
    work: Workplace, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library that the plug-in imports counts, one that nothing of it imports does not."""
    real = metadata.version
    for library, again in (
        ("rich", NOTHING),
        ("torch", NOTHING),
        ("idna", {"chunks": 1, "index": 1}),
    ):
        monkeypatch.setattr(metadata, "version", lambda n, x=library: "99" if n == x else real(n))
        _version.cache_clear()
        library_versions.cache_clear()
        assert work.asked(cache, work.pipeline()) == again
    _version.cache_clear()
    library_versions.cache_clear()


# -- the same results, wherever they come from -----------------------------------------------------


@pytest.mark.parametrize("text", [TEXT, "", "\ud800 one two", "磨坊主 one"])
def test_tokens_come_back_as_they_were(tmp_path: Path, text: str) -> None:
    """Offsets have the same values, type and shape when they were kept."""
    cache = Cache(tmp_path / "cache")
    for counts in (Words(), HuggingFace(word_level(tmp_path / "model", "one"))):
        found = []
        for _ in range(2):
            document = Document("d", text)
            document.use_cache(cache)
            found.append(document.tokens(counts))
        assert found[0].dtype == found[1].dtype == np.int64
        assert found[0].shape == found[1].shape == (len(found[0]), 2)
        assert np.array_equal(found[0], found[1])


@pytest.mark.parametrize("damage", ["torn", "flipped"])
@pytest.mark.parametrize("kind", ["tokens", "chunks", "index"])
def test_what_is_damaged_is_made_again(
    work: Workplace, cache: Cache, kind: str, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A damaged entry is told and made again, and costs nothing else."""
    path = next(entry.path for entry in cache.entries() if entry.kind == kind)
    if kind == "tokens":  # they are asked for only where there are no chunks
        next(entry.path for entry in cache.entries() if entry.kind == "chunks").unlink()
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content if damage == "flipped" else content[:-1])
    again = {"tokens": 1, "chunks": 1} if kind == "tokens" else {kind: 1}
    assert work.asked(cache, work.pipeline()) == again
    assert str(path) in caplog.text
    assert work.asked(cache, work.pipeline()) == NOTHING


# -- in memory -------------------------------------------------------------------------------------


def test_a_sweep_over_k_indexes_once(work: Workplace) -> None:
    """Retrievers that differ in nothing but the search share one index, also without a cache."""
    document = Document("d", TEXT)
    worked = [work.asked(None, work.pipeline(k=k), document) for k in (1, 2, 3)]
    assert worked == [ALL, NOTHING, NOTHING]
    assert work.asked(None, work.pipeline(power=2.0), document) == {"index": 1}
    assert work.asked(None, work.pipeline(power=1), document) == {"index": 1}
    assert work.asked(None, work.pipeline(size=3), document) == {"chunks": 1, "index": 1}


def test_nested_retrievers_share_an_index_too(work: Workplace) -> None:
    """Inside of others a retriever is asked by its index all the same."""
    find, document = work.stage("Find"), Document("d", TEXT)
    nested = Fusion((find(k=2), Neighbours(find(k=1))))  # type: ignore[arg-type]  # takes examples
    assert work.asked(None, Pipeline(work.stage("Cut")(), nested, None, None), document) == ALL
    assert list(indexers(nested)) == [find(k=2), find(k=1)]
    assert list(indexers(All())) == []


def test_what_no_file_can_hold_stays_in_memory(work: Workplace, tmp_path: Path) -> None:
    """Such an index is made once a document, and again in the next run."""
    cache, stages, document = (
        Cache(tmp_path),
        work.pipeline("Cut", "FindOtherwise"),
        Document("d", TEXT),
    )
    assert work.asked(cache, stages, document) == ALL
    assert work.asked(cache, stages, document) == NOTHING
    assert work.asked(cache, stages) == {"index": 1}
    assert [entry.kind for entry in cache.entries() if entry.kind == "index"] == []


class Plain:
    """A retriever whose parameters nobody knows."""

    made = 0

    def retrieve(self, questions: Any, chunks: Any) -> Any:
        raise NotImplementedError

    def index(self, chunks: Any) -> Any:
        type(self).made += 1
        return object()

    def search(self, index: object, examples: Any) -> Any:
        return [[] for _ in examples]


def test_stages_that_cannot_be_told_are_kept_in_memory_only(tmp_path: Path) -> None:
    """Their index is shared by no other instance, and never written."""
    cache, document = Cache(tmp_path), Document("d", TEXT)
    document.use_cache(cache)
    one, other = (Pipeline(FixedTokens(), Plain(), None, None) for _ in range(2))
    for stages in (one, other, one, other):
        assert select(stages, [Example("0", document)]) == [Selection([], 0)]
    assert Plain.made == 2
    assert index_key(document, one.retriever, (), fingerprint) is None
    assert "index" not in {entry.kind for entry in cache.entries()}


def test_an_index_cannot_be_written_to(work: Workplace) -> None:
    """A search that changes the index would change the next one: it fails, cached or not."""

    @dataclass(frozen=True)
    class Spoils:
        def retrieve(self, questions: Any, chunks: Any) -> Any:
            raise NotImplementedError

        def index(self, chunks: Any) -> Any:
            return {"x": np.zeros(3)}

        def search(self, index: Any, questions: Any) -> Any:
            index["x"] += 1

    stages = Pipeline(work.stage("Cut")(), Spoils(), None, None)
    [error] = select_apart(stages, [Example("0", Document("d", TEXT))])
    assert "read-only" in str(error)


def test_a_pickle_of_a_document_leaves_behind_what_was_derived(tmp_path: Path) -> None:
    """A document that goes to another process is its content alone."""
    document = Document("d", TEXT, "t", (Section("s", 0, 3),), (Span(0, 3),))
    document.use_cache(Cache(tmp_path))
    size = len(pickle.dumps(document))
    document.tokens(Words())
    assert len(pickle.dumps(document)) == size
    copy = pickle.loads(pickle.dumps(document))  # noqa: S301 -- our own object
    names = ("id", "text", "title", "sections", "parts")
    assert [getattr(copy, n) for n in names] == [getattr(document, n) for n in names]
    assert copy.cache is None
    assert document.cache == Cache(tmp_path)
    assert replace(document, id="e").cache is None


# -- looking without working -----------------------------------------------------------------------


def test_recipes_tell_what_is_kept_without_working(work: Workplace, cache: Cache) -> None:
    """What a run would find can be looked up before it, chunk by chunk and index by index."""
    work.calls.clear()
    stages, document = work.pipeline(), Document("d", TEXT)
    recipe = chunks_key(document, stages.chunker, None, fingerprint)
    assert recipe
    assert cache.holds("chunks", recipe)
    assert cached_chunks(document, stages.chunker, None) is None
    document.use_cache(cache)
    chunks = cached_chunks(document, stages.chunker, None)
    assert chunks
    assert chunks[0].document is document
    recipe = index_key(document, stages.retriever, chunks, fingerprint)
    assert recipe
    assert cache.holds("index", recipe)
    other = index_key(document, stages.retriever, chunks[1:], fingerprint)
    assert other
    assert not cache.holds("index", other)
    assert cached_chunks(document, work.pipeline(size=9).chunker, None) is None
    assert work.calls == Counter()


# -- what a retriever with an index must be --------------------------------------------------------


class Post(TfIdf):
    """Changes what it inherits in `retrieve` alone."""

    def retrieve(self, questions: Any, chunks: Any) -> list[list[Hit]]:
        return [hits[:1] for hits in super().retrieve(questions, chunks)]


class Deeper(Post):
    """Changes `search`, which is then asked."""

    def search(self, index: Any, questions: Any, chunks: Any) -> list[list[Hit]]:
        return [[] for _ in questions]


def test_a_retriever_that_overrides_retrieve_is_asked_by_it() -> None:
    """What a subclass does in `retrieve` is not passed by."""
    document = Document("d", TEXT)
    chunks, example = (
        (document.chunk(0, 26), document.chunk(27, 51)),
        Example("0", document, "mill"),
    )
    assert len(retrieve(TfIdf(), [example], chunks)[0]) == 2
    assert len(retrieve(Post(), [example], chunks)[0]) == 1
    assert retrieve(Deeper(), [example], chunks) == [[]]
    assert list(indexers(Post())) == []


def takes(*names: str, returns: str = "None") -> Any:
    """Returns a method with these parameters."""
    return eval(f"lambda {', '.join(('self', *names))}: {returns}")  # noqa: S307 -- our own text


def made(**methods: Any) -> type:
    """Returns a retriever class with these attributes besides `retrieve`."""

    def retrieve(self: Any, questions: Any, chunks: Any) -> Any:
        raise NotImplementedError

    return type("Mine", (), {"retrieve": retrieve, **methods})


INDEX, SEARCH = takes("chunks"), takes("index", "questions")


@pytest.mark.parametrize(
    ("methods", "told"),
    [
        ({"index": INDEX}, "Mine has a method 'index' and no 'search'; a retriever whose index"),
        ({"search": SEARCH}, "Mine has a method 'search' and no 'index'"),
        (
            {"index": takes("documents"), "search": SEARCH},
            "Mine.index takes (documents); it must take (chunks)",
        ),
        (
            {"index": INDEX, "search": takes("index", "chunks")},
            "Mine.search takes (index, chunks); it must take (index, questions) or (index, ex",
        ),
        (
            {"index": INDEX, "search": takes("made", "questions")},
            "Mine.search takes (made, questions); it must take (index, questions)",
        ),
        (
            {"index": INDEX, "search": SEARCH, "search_only": "k"},
            "Mine.search_only is 'k'; it must be a tuple",
        ),
        (
            {"__init__": takes("k"), "index": INDEX, "search": SEARCH, "search_only": ("kk",)},
            "Mine.search_only names 'kk', which is no parameter; did you mean 'k'",
        ),
    ],
)  # fmt: skip
def test_a_retriever_with_half_an_index_is_a_fault(methods: dict[str, Any], told: str) -> None:
    """Before any work it is told what `index`, `search` and `search_only` must be."""
    fault = check_methods(made(**methods), KINDS["retriever"])
    assert fault is not None
    assert fault.startswith(told)


def test_a_retriever_with_a_whole_index_is_none() -> None:
    """`search` may take whole examples, and the chunks; a tuple's `index` is none of ours."""
    whole = made(index=INDEX, search=takes("index", "examples", "chunks"))
    assert check_methods(whole, KINDS["retriever"]) is None

    class Pair(tuple[int, int]):
        """Has a method `index` of another kind."""

        __slots__ = ()

        def retrieve(self, questions: Any, chunks: Any) -> Any:
            raise NotImplementedError

    assert check_methods(Pair, KINDS["retriever"]) is None
    assert index_methods(Pair) == ()


def test_a_run_with_a_broken_cache_goes_on(
    work: Workplace, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What cannot be kept is worked out again, with one warning."""
    (tmp_path / "file").write_text("")
    cache = Cache(tmp_path / "file")
    assert work.asked(cache, work.pipeline()) == ALL
    assert work.asked(cache, work.pipeline()) == ALL
    warnings = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) == 1
