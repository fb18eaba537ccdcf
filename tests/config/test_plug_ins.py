"""Tests of entry points of installed packages, and of messages about unknown classes."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from leporello.cache.dependencies import dependencies
from leporello.cli import application
from leporello.config import load_config
from leporello.core.environment.classes import plug_ins
from leporello.core.errors import UserError

LAST = """
from dataclasses import dataclass

from leporello import Hit


@dataclass(frozen=True)
class Last:
    '''The last chunks.'''

    k: int = 1

    def retrieve(self, questions, chunks):
        return [[Hit(chunk, 1.0) for chunk in chunks[-self.k :]] for _ in questions]
"""
Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    def make(name: str, source: str = LAST, version: str = "1.2", **points: str) -> Path:
        module = tmp_path / "site" / f"{name}.py"
        about = tmp_path / "site" / f"{name}-{version}.dist-info"
        about.mkdir(parents=True)
        module.write_text(source)
        (about / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        groups = [f"[leporello.{group}]\n{point}\n" for group, point in points.items()]
        (about / "entry_points.txt").write_text("".join(groups))
        monkeypatch.syspath_prepend(str(tmp_path / "site"))
        plug_ins.cache_clear()
        return module

    yield make
    plug_ins.cache_clear()


def leporello(*words: object) -> Result:
    return CliRunner().invoke(application(), [*map(str, words)])


def config(folder: Path, retriever: str) -> Path:
    file = folder / "mine.yaml"
    file.write_text(f"pipelines:\n  mine: {{retriever: {retriever}, reader: {{class: Lead}}}}\n")
    return file


def test_a_package_class_is_named_like_a_built_in_one(install: Install, tmp_path: Path) -> None:
    install("last_ones", retrievers="Last = last_ones:Last")
    [point] = load_config([config(tmp_path, "{class: Last, k: 2}")]).pipelines["mine"]
    assert point.build().retriever.k == 2
    assert point.resolved()["retriever"] == {"class": "Last", "k": 2}
    listed = leporello("list", "retrievers", "--json").output
    assert '"Last(k: int = 1)": "The last chunks. (from last_ones 1.2)"' in listed
    with pytest.raises(UserError, match="Last has no parameter 'kk'; did you mean 'k'"):
        load_config([config(tmp_path, "{class: Last, kk: 2}")])


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("Last", "Last"), "one 1.2 and two 1.2 both have a retriever 'Last'; write"),
        (("TfIdf",), "Leporello itself and one 1.2 both have a retriever 'TfIdf'; write one.Last"),
    ],
)
def test_two_classes_with_the_same_name_are_a_fault_that_names_both(
    install: Install, tmp_path: Path, names: tuple[str, ...], message: str
) -> None:
    for package, name in zip(("one", "two"), names, strict=False):
        install(package, retrievers=f"{name} = {package}:Last")
    load_config([config(tmp_path, "{class: one.Last}")])
    with pytest.raises(UserError, match=message):
        load_config([config(tmp_path, f"{{class: {names[0]}}}")])


def test_a_broken_package_does_not_affect_others(install: Install, tmp_path: Path) -> None:
    module = install("broken", "x = 1\ny = x / 0\n", retrievers="Broken = broken:Broken")
    assert "division by zero" in leporello("list", "retrievers", "--json").output
    with pytest.raises(
        UserError, match=r"(?s)'Broken' of broken 1.2 failed.*>    2 | y = x / 0"
    ) as e:
        load_config([config(tmp_path, "{class: Broken}")])
    assert str(module) in str(e.value)


def test_a_name_is_short_for_a_class_without_parameters(tmp_path: Path) -> None:
    file = tmp_path / "short.yaml"
    file.write_text(
        "pipelines:\n  base: {retriever: TfIdf, reader: Lead}\n"
        "  mine: {extends: base, retriever: {k: 3}, combiner: {class: Refine}}\n"
        "  both: {retriever: {class: Fusion, retrievers: [BM25, {class: First, k: 2}]},"
        " reader: {sweep: [Lead, BestSentence]}}\n"
    )
    loaded = load_config([file], ["retriever.retrievers.0.k=7"], ["both"])
    assert loaded.pipelines["mine"][0].build().retriever.k == 3
    first, second = loaded.pipelines["both"]
    assert (first.name, second.name) == ("both@reader=Lead", "both@reader=BestSentence")
    assert first.build().retriever.retrievers[0].k == 7
    shown = " ".join(leporello("check", "--config", file, "base").output.split())
    parameters = "k: 10, ngrams: 1, terms: leporello"
    assert f"retriever: {{class: TfIdf, {parameters}}}" in shown


BOOM = "import os\n\n\ndef half(x):\n    return x / 0\n\n\nhalf(1)\n"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("TfIDF", "retrievers has no class 'TfIDF'; did you mean 'TfIdf'"),
        ("nowhere.deep.Mine", "no module 'nowhere' in .* or among the installed packages$"),
        ("bom.Mine", "no module 'bom' in .*; did you mean 'boom'"),
        ("./bom.py:Mine", "there is no file .*bom.py; did you mean 'boom.py'"),
        ("parts.Mine", "parts, a folder without __init__.py, has no class"),
        ("json.not_there.Mine", "there is no module 'json.not_there'"),
        ("leporello.readers.deep.Mine", "there is no module 'leporello.readers.deep'"),
        ("./boom.py:Mine", r"(?s)ZeroDivisionError: division by zero \(.*boom.py, line 5\)\n"
                           r"  +2 .*> +5 \|     return x / 0.* 8 \| half\(1\)$"),
        ("./plain.py:half", "'half' of .*plain.py is not a class; its type is function"),
        ("./plain.py:Mine", "plain.py has no class 'Mine'; allowed: Whole"),
        ("./:Mine", "is not a Python file"),
        ('"./a\\0b.py:Mine"', "is not a valid class name; name your own class as"),
        ('"a\\0b"', "is not a valid class name"),
        (f"{'9' * 9_000}.X", r"'9{40}…' is not a valid class name"),
        (f"./{'a' * 900}.py:X", "there is no file"),
        ("a..b", "is not a valid module name"),
        ("'.'", "is not a valid module name"),
        ("'~nobody/x.py:X'", "there is no file|is not a valid path"),
        ("'9'", "retrievers has no class '9'"),
        ("9" * 9_000, "a number of 9,000 letters is too long"),
    ],
)  # fmt: skip
def test_an_unknown_class_is_a_fault(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "parts/deep").mkdir(parents=True)
    (tmp_path / "boom.py").write_text(BOOM)
    (tmp_path / "plain.py").write_text("def half(x):\n    return x\n\n\nclass Whole:\n    pass\n")
    with pytest.raises(UserError, match=message):
        load_config([config(tmp_path, f"{{class: {name}}}")])


OTHERS = """
class Echo:
    '''Returns no answers.'''

    def check(self, model, dtype, decoding):
        if dtype != "float32":
            raise ValueError("Echo supports only float32")

    def load(self, model, dtype, device):
        return model

    def write(self, model, tokens, decoding, prompts):
        return []
"""


def test_a_users_backend_enters_signatures(tmp_path: Path) -> None:
    (tmp_path / "others.py").write_text(OTHERS)
    reader = "{class: CausalLM, model: smollm2-135m-instruct, backend: ./others.py:Echo%s}"
    file = tmp_path / "mine.yaml"
    file.write_text(f"pipelines:\n  mine: {{reader: {reader % ''}}}\n")
    [point] = load_config([file]).pipelines["mine"]
    spec = point.stages["reader"]
    assert spec.params["backend"] == f"{tmp_path}/others.py:Echo"
    plain = {**spec.arguments(), "backend": "transformers"}
    assert dependencies(spec.cls, plain).source in dependencies(spec.cls, spec.arguments()).source
    assert dependencies(spec.cls, plain) != dependencies(spec.cls, spec.arguments())
    file.write_text(f"pipelines:\n  mine: {{reader: {reader % ', dtype: bfloat16'}}}\n")
    with pytest.raises(UserError, match="Echo supports only float32"):
        load_config([file])
    file.write_text("pipelines:\n  mine: {reader: {class: Seq2Seq, model: ./m, backend: vllm}}\n")
    with pytest.raises(UserError, match="'vllm' does not run such models; allowed: transformers"):
        load_config([file])
