"""Classes of installed packages, by entry points; and what is told of names that lead nowhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from leporello.cli import app
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
    """Puts packages with entry points on the path, as an installer would."""

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
    """Calls the command line in this process; a user's mistake is the result's exception."""
    return CliRunner().invoke(app, [*map(str, words)])


def config(folder: Path, retriever: str) -> Path:
    """Returns a config with one pipeline."""
    file = folder / "mine.yaml"
    file.write_text(f"pipelines:\n  mine: {{retriever: {retriever}, reader: {{class: Lead}}}}\n")
    return file


def test_a_class_of_an_installed_package_is_named_like_a_built_in_one(
    install: Install, tmp_path: Path
) -> None:
    """It is checked, listed with its package and version, and not imported before it is named."""
    install("last_ones", retrievers="Last = last_ones:Last")
    [point] = load_config([config(tmp_path, "{class: Last, k: 2}")]).pipelines["mine"]
    assert point.build().retriever.k == 2
    assert point.resolved()["retriever"] == {"class": "Last", "k": 2}
    listed = leporello("list", "retrievers", "--json").output
    assert '"Last(k: int = 1)": "The last chunks. (from last_ones 1.2)"' in listed
    with pytest.raises(UserError, match="Last has no parameter 'kk'; did you mean 'k'"):
        load_config([config(tmp_path, "{class: Last, kk: 2}")])


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (("Last", "Last"), "one 1.2 and two 1.2 both have a retriever 'Last'; say"),
        (("TfIdf",), "Leporello itself and one 1.2 both have a retriever 'TfIdf'; say one.Last"),
    ],
)
def test_two_of_one_name_are_a_fault_that_names_both(
    install: Install, tmp_path: Path, names: tuple[str, ...], told: str
) -> None:
    """It is told when the name is used, and not before."""
    for package, name in zip(("one", "two"), names, strict=False):
        install(package, retrievers=f"{name} = {package}:Last")
    load_config([config(tmp_path, "{class: one.Last}")])
    with pytest.raises(UserError, match=told):
        load_config([config(tmp_path, f"{{class: {names[0]}}}")])


def test_a_package_that_cannot_be_imported_hinders_nothing_else(
    install: Install, tmp_path: Path
) -> None:
    """Its class is listed with the reason, and told with its own line when it is named."""
    module = install("broken", "x = 1\ny = x / 0\n", retrievers="Broken = broken:Broken")
    assert "division by zero" in leporello("list", "retrievers", "--json").output
    with pytest.raises(
        UserError, match=r"(?s)'Broken' of broken 1.2 failed.*>    2 | y = x / 0"
    ) as e:
        load_config([config(tmp_path, "{class: Broken}")])
    assert str(module) in str(e.value)


def test_a_bare_name_stands_for_a_class_without_parameters(tmp_path: Path) -> None:
    """Of stages, of those nested in them and in sweeps; `check` prints the long form."""
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
    shown = leporello("check", "--config", file, "base").output
    assert "retriever: {class: TfIdf, k: 10, sublinear: false, ngrams: 1}" in shown
