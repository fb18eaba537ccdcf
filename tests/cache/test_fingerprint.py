"""Tests of fingerprints: they cover everything that a stage's results depend on, and no more."""

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

from leporello.cache.dependencies import (
    _all_distributions,
    _content,
    dependencies,
    fingerprint,
    installed_version,
    library_versions,
    signature_of,
)
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
from leporello.cache.dependencies import fingerprint
print(json.dumps(fingerprint(find_class("mine.py:Mine", KINDS["chunker"], Path(sys.argv[1]))())))
"""


def plug_in(folder: Path) -> Path:
    """Writes a plug-in, and a module that it imports inside a method."""
    folder.mkdir()
    (folder / "mine.py").write_text(PLUG_IN)
    (folder / "far_helper.py").write_text("def cut(document): ...\n")
    return folder


def fingerprint_in_subprocess(folder: Path) -> dict[str, Any]:
    process = subprocess.run(
        [sys.executable, "-c", SHOW, str(folder)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    result: dict[str, Any] = json.loads(process.stdout)
    return result


def key_of(stage: object, *without: str) -> dict[str, Any]:
    result = fingerprint(stage, without)
    assert result is not None
    return {**result}


def test_a_plug_in_is_the_same_everywhere(tmp_path: Path) -> None:
    first = fingerprint_in_subprocess(plug_in(tmp_path / "plug-in"))
    cls = find_class("mine.py:Mine", KINDS["chunker"], plug_in(tmp_path / "two"))
    assert first == json.loads(json.dumps(key_of(cls())))
    assert first["class"] == "mine.py:Mine"
    assert first["python"] == f"{sys.version_info.major}.{sys.version_info.minor}"
    assert "plug-in" not in str([*first.values()])


def test_a_fingerprint_covers_the_parameters() -> None:
    parameters = {"k": 10, "ngrams": 1, "terms": "leporello"}
    assert key_of(TfIdf())["parameters"] == parameters
    assert key_of(TfIdf(k=3), "k") == key_of(TfIdf(k=4), "k") != key_of(TfIdf(ngrams=2), "k")
    nested = [Fusion((TfIdf(), BM25(b=b))) for b in (0.5, 0.6)]
    assert key_of(nested[0]) != key_of(nested[1])
    assert key_of(nested[0])["parameters"]["retrievers"][0] == key_of(TfIdf())


def test_equal_values_of_other_types_differ(tmp_path: Path) -> None:
    cls = find_class("mine.py:Mine", KINDS["chunker"], plug_in(tmp_path / "here"))
    stages = [cls(k=1), cls(k=1.0), cls(k=True)]
    assert stages[0] == stages[1] == stages[2]
    assert len({canonical(key_of(stage)) for stage in stages}) == 3
    assert len({memo_key(stage) for stage in stages}) == 3


def test_a_fingerprint_covers_the_content_of_files(tmp_path: Path) -> None:
    cls = find_class("mine.py:Mine", KINDS["chunker"], plug_in(tmp_path / "here"))
    stop = tmp_path / "stop.txt"
    stop.write_text("the")
    before = key_of(cls(stop=stop))
    stop.write_text("the a")
    assert key_of(cls(stop=stop))["files"] != before["files"]
    assert "files" not in key_of(cls())


def tokenizer_file(folder: Path, *words: str) -> Path:
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel

    folder.mkdir(exist_ok=True)
    vocabulary = {word: number for number, word in enumerate(["?", *words])}
    Tokenizer(WordLevel(vocabulary, unk_token="?")).save(str(folder / "tokenizer.json"))  # noqa: S106 -- a token of its vocabulary
    return folder


def test_models_count_by_their_content(tmp_path: Path) -> None:
    folder = tokenizer_file(tmp_path / "tokenizer", "one")
    before = (key_of(FixedTokens(tokenizer=str(folder))), key_of(HuggingFace(str(folder))))
    assert list(before[0]["models"]) == ["tokenizer"]
    tokenizer_file(folder, "one", "two")
    assert key_of(HuggingFace(str(folder))) == before[1]  # this process may have loaded it
    _content.cache_clear()
    after = (key_of(FixedTokens(tokenizer=str(folder))), key_of(HuggingFace(str(folder))))
    for old, new in zip(before, after, strict=True):
        assert old["models"] != new["models"]
        assert {**old, "models": {}} == {**new, "models": {}}
    assert key_of(FixedTokens())["models"] == {} == key_of(Words())["models"]


def test_a_missing_model_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no such file or folder"):
        fingerprint(FixedTokens(tokenizer=str(tmp_path / "none")))


def versions(monkeypatch: pytest.MonkeyPatch, **changed: str) -> None:
    real = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: changed.get(name, real(name)))
    installed_version.cache_clear()
    library_versions.cache_clear()


@pytest.mark.parametrize(
    ("stage", "matters", "does_not"),
    [
        (FixedTokens, "regex", "transformers"),
        (FixedTokens, "numpy", "torch"),
        (Recursive, "langchain-text-splitters", "pydantic"),
        (TfIdf, "scikit-learn", "torch"),
        (BM25, "regex", "scikit-learn"),
        (Words, "regex", "tokenizers"),
    ],
)
def test_only_libraries_that_affect_results_count(
    monkeypatch: pytest.MonkeyPatch, stage: type, matters: str, does_not: str
) -> None:
    """A new NumPy version changes the fingerprint; a new torch matters only with a model."""
    before = key_of(stage())
    versions(monkeypatch, **{does_not: "99"})
    assert key_of(stage()) == before
    versions(monkeypatch, **{matters: "99"})
    assert key_of(stage()) == {**before, "libraries": {**before["libraries"], matters: "99"}}
    installed_version.cache_clear()
    library_versions.cache_clear()


def test_only_fingerprints_with_a_model_cover_the_hardware_and_no_signatures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outputs of a GPU or of another build of torch are not reused; runs continue anywhere."""
    model = str(tokenizer_file(tmp_path / "tokenizer", "one"))
    keys, lexical, signatures = [], [], []
    for torch, machine in (("2.13+cpu", "here"), ("2.13+cu130", "there")):
        versions(monkeypatch, torch=torch)
        monkeypatch.setattr("leporello.cache.dependencies._machine", lambda name=machine: name)
        keys.append(key_of(Dense(model=model)))
        lexical.append(key_of(TfIdf()))
        signatures.append(signature_of([("Dense", dependencies(Dense, {"model": model}))]))
    library_versions.cache_clear()
    assert [*differences(keys[0], keys[1])] == [
        "libraries.torch: '2.13+cpu' -> '2.13+cu130'",
        "machine: 'here' -> 'there'",
    ]
    assert lexical[0] == lexical[1]
    assert signatures[0] == signatures[1]


def test_a_class_whose_parameters_are_unknown_has_a_signature() -> None:
    """The config provides the parameters, so that a changed run is refused like any other."""
    signature = signature_of([("Plain", dependencies(Plain, {"k": 1}))])
    assert fingerprint(Plain()) is None
    assert signature["sources"] == {"Plain": source_hash(Plain)}


def test_every_library_of_a_plug_in_counts(tmp_path: Path) -> None:
    """Any library may affect results, except those imported only for type checkers."""
    cls = find_class("mine.py:Mine", KINDS["chunker"], plug_in(tmp_path / "here"))
    assert key_of(cls())["libraries"] == {"idna": metadata.version("idna")}


def test_a_fingerprint_contains_no_secrets(tmp_path: Path) -> None:
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
    result = key_of(remote("x", "hush-2", "hush-3", ("hush-4",), inner))
    assert "hush" not in canonical(result)
    assert result == key_of(remote("x", "hush-5", inner=inner))
    assert "hush" not in repr(memo_key(remote("x", "hush-2")))


class Plain:
    """A class without fields."""

    def __init__(self, k: int = 1) -> None:
        self.k = k


@dataclass
class Changeable:
    """A class whose parameters can change after construction."""

    k: int = 1


@dataclass(frozen=True)
class Holds:
    """A class that accepts any value."""

    thing: Any = None


@dataclass(frozen=True, init=False)
class OtherConstructor:
    """A class whose constructor does not take its fields."""

    k: int

    def __init__(self, text: str) -> None:
        object.__setattr__(self, "k", len(text))


@dataclass(frozen=True)
class Misspelt:
    """A class with an annotation that cannot be resolved."""

    key: "Sceret" = ""  # type: ignore[name-defined]  # noqa: F821 -- that is the fault


def inside(number: int) -> Any:
    """Returns an instance of a class whose results depend on a variable outside it."""

    @dataclass(frozen=True)
    class Inside:
        def chunk(self) -> int:
            return number

    return Inside()


@pytest.mark.parametrize(
    "stage",
    [
        Plain(), Changeable(), OtherConstructor("x"), Misspelt(), inside(1),
        Holds(object()), Holds(b"x"), Holds({1: 2}), Holds((Plain(),)), Holds(Holds(Plain())),
    ],
    ids=lambda stage: type(stage).__name__,  # the repr may contain an address
)  # fmt: skip
def test_a_stage_with_unknown_parameters_has_no_fingerprint(stage: Any) -> None:
    """Without known parameters, a stage equals only itself."""
    assert fingerprint(stage) is None
    assert memo_key(stage) == memo_key(stage)
    if not isinstance(stage, Holds):
        assert memo_key(inside(1)) != memo_key(stage)


def test_stages_are_equal_by_class_and_parameters() -> None:
    missing_model = "/no/such/model"
    assert memo_key(Dense(model=missing_model)) == memo_key(Dense(model=missing_model))
    assert memo_key(TfIdf(k=1)) != memo_key(TfIdf(k=2))
    assert memo_key(TfIdf(k=1), ("k",)) == memo_key(TfIdf(k=2), ("k",))
    assert memo_key(TfIdf(), ("k",)) != memo_key(BM25(), ("k",))
    first, second, lexical = (memo_key(Fusion((s,))) for s in (TfIdf(), TfIdf(), BM25()))
    assert first == second != lexical


def test_distributions_of_built_in_classes_are_found_without_reading_all_file_lists(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Reading them would cost every run most of a second."""

    def refuse() -> dict[str, list[str]]:
        raise AssertionError("a package's distribution is not in the table")

    monkeypatch.setattr(metadata, "packages_distributions", refuse)
    _all_distributions.cache_clear()
    for kind in ALL_KINDS:
        for cls in built_ins(kind).values():
            library_versions.__wrapped__(cls, has_model=True)  # bypasses its cache


def test_a_plug_in_edited_twice_in_a_second_is_the_newer_one(tmp_path: Path) -> None:
    """Bytecode is not cached: it would be validated only by seconds and size of the source."""
    plug_in, helper = tmp_path / "mine.py", tmp_path / "beside_mine.py"
    plug_in.write_text("import beside_mine\nclass Mine:\n    word = beside_mine.WORD\n")
    outputs = []
    for word in ("one", "two"):
        helper.write_text(f"WORD = {word!r}\n")
        os.utime(helper, (1, 1))
        code = "import sys; from pathlib import Path\n"
        code += "from leporello.core.environment.classes import load_file\n"
        code += f"print(load_file(Path({str(plug_in)!r})).Mine.word)"
        outputs.append(subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True))
    assert outputs == ["one\n", "two\n"]
