"""What a stage's results depend on, and what they do not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from command_line import ROOT

from leporello.cache import fingerprint as fingerprints
from leporello.cache.dependencies import (
    _all_distributions,
    _version,
    dependencies,
    library_versions,
    signature_of,
)
from leporello.cache.fingerprint import fingerprint
from leporello.cache.source_code import source_hash
from leporello.chunkers import FixedTokens, Recursive
from leporello.core.calls.memory import canonical, memo_key
from leporello.core.environment.classes import built_ins, find_class
from leporello.core.errors import UserError
from leporello.core.hashing import differences
from leporello.core.protocols import ALL_KINDS, KINDS
from leporello.retrievers import BM25, Dense, Fusion, TfIdf
from leporello.text.tokens import HuggingFace, Words

PLUG_IN = """
from __future__ import annotations
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import idna

if TYPE_CHECKING:
    import rich

@dataclass(frozen=True)
class Mine:
    k: float = 5
    words: tuple[str, ...] = ()
    stop: Path = Path("none")

    def chunk(self, document):
        import far_helper
        return far_helper.cut(document)
"""
SHOW = """
import json, sys
from pathlib import Path
from leporello.core.environment.classes import built_ins, find_class
from leporello.core.protocols import KINDS
from leporello.config.parameters import parameters
from leporello.cache.fingerprint import fingerprint
print(json.dumps(fingerprint(find_class("mine.py:Mine", KINDS["chunker"], Path(sys.argv[1]))())))
"""


def plug_in(folder: Path, source: str = PLUG_IN, helper: str = "def cut(document): ...\n") -> Path:
    """Writes a plug-in, and a module that it imports only when it works."""
    folder.mkdir()
    (folder / "mine.py").write_text(source)
    (folder / "far_helper.py").write_text(helper)
    return folder


def elsewhere(folder: Path) -> dict[str, Any]:
    """Returns the plug-in's identity in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", SHOW, str(folder)],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def known(stage: object, *without: str) -> dict[str, Any]:
    """Returns an identity that there is."""
    found = fingerprint(stage, without)
    assert found is not None
    return {**found}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The plug-in's identity in a folder and a process."""
    return elsewhere(plug_in(tmp_path_factory.mktemp("first") / "plug-in"))


def test_a_plug_in_is_the_same_in_every_process_and_folder(
    first: dict[str, Any], tmp_path: Path
) -> None:
    """Neither the folder of its file nor the process is in a plug-in's identity."""
    assert first == elsewhere(plug_in(tmp_path / "two"))
    assert first["class"] == "mine.py:Mine"
    assert first["python"] == f"{sys.version_info.major}.{sys.version_info.minor}"
    assert "plug-in" not in str([*first.values()])


@pytest.mark.parametrize(
    "change",
    [
        {"source": PLUG_IN + "# more\n"},
        {"helper": "def cut(document): return ()\n"},
        {"source": PLUG_IN.replace("k: float = 5", "k: float = 6")},
    ],
)
def test_source_is_part_of_it(
    first: dict[str, Any], tmp_path: Path, change: dict[str, str]
) -> None:
    """A stage's own file counts, and each local module that it imports, late imports too."""
    after = elsewhere(plug_in(tmp_path / "after", **change))
    assert first["sources"] != after["sources"]


def test_parameters_are_part_of_it() -> None:
    """Each parameter counts, unless it is left out; nested stages count by their identity."""
    parameters = {"k": 10, "sublinear": False, "ngrams": 1, "terms": "leporello"}
    assert known(TfIdf())["parameters"] == parameters
    assert known(TfIdf(k=3), "k") == known(TfIdf(k=4), "k") != known(TfIdf(ngrams=2), "k")
    nested = [Fusion((TfIdf(), BM25(b=b))) for b in (0.5, 0.6)]
    assert known(nested[0]) != known(nested[1])
    assert known(nested[0])["parameters"]["retrievers"][0] == known(TfIdf())


def test_equal_values_of_other_types_differ(tmp_path: Path) -> None:
    """1, 1.0 and True are equal to Python, and are three values here."""
    mine = find_class("mine.py:Mine", KINDS["chunker"], plug_in(tmp_path / "here"))
    stages = [mine(k=1), mine(k=1.0), mine(k=True)]
    assert stages[0] == stages[1] == stages[2]
    assert len({canonical(known(stage)) for stage in stages}) == 3
    assert len({memo_key(stage) for stage in stages}) == 3


def test_what_a_file_holds_is_part_of_it(tmp_path: Path) -> None:
    """A parameter that names a file counts with its content."""
    mine = find_class("mine.py:Mine", KINDS["chunker"], plug_in(tmp_path / "here"))
    stop = tmp_path / "stop.txt"
    stop.write_text("the")
    before = known(mine(stop=stop))
    stop.write_text("the a")
    assert known(mine(stop=stop))["files"] != before["files"]
    assert "files" not in known(mine())


def tokenizer_file(folder: Path, *words: str) -> Path:
    """Writes a tokenizer of these words."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel

    folder.mkdir(exist_ok=True)
    vocabulary = {word: number for number, word in enumerate(["?", *words])}
    Tokenizer(WordLevel(vocabulary, unk_token="?")).save(str(folder / "tokenizer.json"))  # noqa: S106 -- a token of its vocabulary
    return folder


def test_models_count_by_their_content(tmp_path: Path) -> None:
    """A model's files are part of what depends on it; `words` is no model."""
    folder = tokenizer_file(tmp_path / "tokenizer", "one")
    before = known(FixedTokens(tokenizer=str(folder))), known(HuggingFace(str(folder)))
    assert list(before[0]["models"]) == ["tokenizer"]
    tokenizer_file(folder, "one", "two")
    assert known(HuggingFace(str(folder))) == before[1]  # in this process it may be loaded
    fingerprints._content.cache_clear()
    after = known(FixedTokens(tokenizer=str(folder))), known(HuggingFace(str(folder)))
    for old, new in zip(before, after, strict=True):
        assert old["models"] != new["models"]
        assert {**old, "models": {}} == {**new, "models": {}}
    assert known(FixedTokens())["models"] == {} == known(Words())["models"]


def test_what_a_model_runs_on_is_part_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outputs of a GPU are not taken for those of a CPU; without a model it makes no difference."""
    (tmp_path / "config.json").write_text("{}")

    def both() -> list[Any]:
        return [fingerprint(Dense(model=str(tmp_path))), fingerprint(TfIdf())]

    here = both()
    monkeypatch.setattr("leporello.cache.dependencies._machine", lambda: "elsewhere")
    dense, lexical = both()
    assert dense["machine"] == "elsewhere" != here[0]["machine"]
    assert lexical == here[1]


def test_a_model_that_is_not_there_is_told(tmp_path: Path) -> None:
    """A missing model is the user's mistake, not an unknown identity."""
    with pytest.raises(UserError, match="there is no such file or folder"):
        fingerprint(FixedTokens(tokenizer=str(tmp_path / "none")))


def versions(monkeypatch: pytest.MonkeyPatch, **changed: str) -> None:
    """Gives distributions other versions."""
    real = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: changed.get(name, real(name)))
    _version.cache_clear()
    library_versions.cache_clear()


@pytest.mark.parametrize(
    ("stage", "matters", "does_not"),
    [
        (FixedTokens, "regex", "transformers"),
        (FixedTokens, "numpy", "torch"),
        (Recursive, "langchain-text-splitters", "pydantic"),
        (TfIdf, "numpy", "scikit-learn"),
        (BM25, "regex", "scikit-learn"),
        (Words, "regex", "tokenizers"),
    ],
)
def test_libraries_count_as_far_as_results_depend_on_them(
    monkeypatch: pytest.MonkeyPatch, stage: type, matters: str, does_not: str
) -> None:
    """Another NumPy makes another index; another torch makes none without a model."""
    before = known(stage())
    versions(monkeypatch, **{does_not: "99"})
    assert known(stage()) == before
    versions(monkeypatch, **{matters: "99"})
    assert known(stage()) == {**before, "libraries": {**before["libraries"], matters: "99"}}
    _version.cache_clear()
    library_versions.cache_clear()


def test_a_signature_is_the_same_on_every_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a cluster's machines differ in, a GPU and its build of torch, is in cache keys alone."""
    given = {"model": str(tokenizer_file(tmp_path / "tokenizer", "one"))}
    keys, told = [], []
    for torch, machine in (("2.13+cpu", "here"), ("2.13+cu130", "there")):
        versions(monkeypatch, torch=torch)
        monkeypatch.setattr("leporello.cache.dependencies._machine", lambda name=machine: name)
        found = dependencies(Dense, given)
        keys.append(found.key())
        told.append(signature_of([("Dense", found)]))
    library_versions.cache_clear()
    assert [*differences(keys[0], keys[1])] == [
        "libraries.torch: '2.13+cpu' -> '2.13+cu130'",
        "machine: 'here' -> 'there'",
    ]
    assert told[0] == told[1]


def test_a_class_whose_parameters_are_unknown_has_a_signature() -> None:
    """A config says what they are; a run of it is refused as any other."""
    told = signature_of([("Plain", dependencies(Plain, {"k": 1}))])
    assert fingerprint(Plain()) is None
    assert told["sources"] == {"Plain": source_hash(Plain)}


def test_every_library_of_a_plug_in_counts(tmp_path: Path) -> None:
    """We cannot know which do not; what only a type checker imports is never run."""
    mine = find_class("mine.py:Mine", KINDS["chunker"], plug_in(tmp_path / "here"))
    assert known(mine())["libraries"] == {"idna": metadata.version("idna")}


def test_secrets_never_enter_it(tmp_path: Path) -> None:
    """A key is in no identity, wherever its annotation says so, and is no difference either."""
    source = (
        "from dataclasses import dataclass\n"
        "from leporello.core.protocols import Retriever, Secret\n"
        "@dataclass(frozen=True)\n"
        "class Remote:\n"
        "    name: str\n    key: Secret\n    other: Secret | None = None\n"
        "    more: tuple[Secret, ...] = ()\n    inner: Retriever | None = None\n"
    )
    (tmp_path / "remote.py").write_text(source)
    remote = find_class("remote.py:Remote", KINDS["retriever"], tmp_path)
    inner = remote("x", "hush-1")
    found = known(remote("x", "hush-2", "hush-3", ("hush-4",), inner))
    assert "hush" not in canonical(found)
    assert found == known(remote("x", "hush-5", inner=inner))
    assert "hush" not in repr(memo_key(remote("x", "hush-2")))


class Plain:
    """A class without fields."""

    def __init__(self, k: int = 1) -> None:
        self.k = k


@dataclass
class Changeable:
    """Its parameters can change after it was made."""

    k: int = 1


@dataclass(frozen=True)
class Holds:
    """Takes anything."""

    thing: Any = None


@dataclass(frozen=True, init=False)
class MadeOtherwise:
    """Its constructor takes something else than its fields."""

    k: int

    def __init__(self, text: str) -> None:
        object.__setattr__(self, "k", len(text))


@dataclass(frozen=True)
class Misspelt:
    """An annotation that names nothing."""

    key: "Sceret" = ""  # type: ignore[name-defined]  # noqa: F821, UP037 -- that is the fault


def inside(number: int) -> Any:
    """Returns an instance of a class that depends on more than its parameters."""

    @dataclass(frozen=True)
    class Inside:
        def chunk(self) -> int:
            return number

    return Inside()


@pytest.mark.parametrize(
    "stage",
    [
        Plain(), Changeable(), MadeOtherwise("x"), Misspelt(), inside(1),
        Holds(object()), Holds(b"x"), Holds({1: 2}), Holds((Plain(),)), Holds(Holds(Plain())),
    ],
    ids=lambda stage: type(stage).__name__,  # whose repr may tell an address
)  # fmt: skip
def test_what_cannot_be_told_is_not_guessed(stage: Any) -> None:
    """Without known parameters there is no identity, and likeness is sameness."""
    assert fingerprint(stage) is None
    assert memo_key(stage) == memo_key(stage)
    if not isinstance(stage, Holds):
        assert memo_key(inside(1)) != memo_key(stage)


def test_likeness_is_of_class_and_parameters() -> None:
    """Equal stages are alike, also without a model that is there; others are not."""
    there_is_none = "/no/such/model"
    assert memo_key(Dense(model=there_is_none)) == memo_key(Dense(model=there_is_none))
    assert memo_key(TfIdf(k=1)) != memo_key(TfIdf(k=2))
    assert memo_key(TfIdf(k=1), ("k",)) == memo_key(TfIdf(k=2), ("k",))
    assert memo_key(TfIdf(), ("k",)) != memo_key(BM25(), ("k",))
    assert (
        memo_key(Fusion((TfIdf(),))) == memo_key(Fusion((TfIdf(),))) != memo_key(Fusion((BM25(),)))
    )


def test_distributions_of_built_in_classes_are_known_without_reading_what_every_one_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would cost every run most of a second."""

    def refuse() -> dict[str, list[str]]:
        raise AssertionError("a package's distribution is not in the table")

    monkeypatch.setattr(metadata, "packages_distributions", refuse)
    _all_distributions.cache_clear()
    for kind in ALL_KINDS:
        for cls in built_ins(kind).values():
            library_versions.__wrapped__(cls, has_model=True)  # past its cache


def test_a_plug_in_edited_twice_in_a_second_is_the_newer_one(tmp_path: Path) -> None:
    """Its bytecode is not kept, which would be told from another's by seconds and size alone."""
    plug_in, beside = tmp_path / "mine.py", tmp_path / "beside_mine.py"
    plug_in.write_text("import beside_mine\nclass Mine:\n    word = beside_mine.WORD\n")
    found = []
    for word in ("one", "two"):
        beside.write_text(f"WORD = {word!r}\n")
        os.utime(beside, (1, 1))
        code = "import sys; from pathlib import Path\n"
        code += "from leporello.core.environment.classes import load_file\n"
        code += f"print(load_file(Path({str(plug_in)!r})).Mine.word)"
        found.append(subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True))
    assert found == ["one\n", "two\n"]
