"""The README and the guides cannot rot: what they show is run."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from command_line import ROOT

from leporello.cli import app
from leporello.config import load_config
from leporello.config.tree import parse
from leporello.core.errors import ConfigError
from leporello.core.protocols import KINDS
from leporello.jobs.shards import TaskReader, cut, layout_of
from leporello.runs.ask import AskSettings, Session
from leporello.runs.run import run
from leporello.training import train

README = (ROOT / "README.md").read_text(encoding="utf-8")
PLUG_INS = (ROOT / "docs" / "plug-ins.md").read_text(encoding="utf-8")


def _blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def _commands() -> set[str]:
    groups = {group.name for group in app.registered_groups if group.name}
    commands = app.registered_commands
    return groups | {command.name or command.callback.__name__ for command in commands}  # type: ignore[union-attr]  # all have one


def test_every_verb_that_the_readme_shows_exists_and_every_verb_has_help() -> None:
    """No command is shown that is not there."""
    runs = (ROOT / "docs" / "runs.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"run_pipeline\.py (\w+)", README + runs))
    assert shown
    assert shown <= _commands()
    assert all(command.callback and command.callback.__doc__ for command in app.registered_commands)


def test_the_yaml_of_the_readme_loads(tmp_path: Path) -> None:
    """Each block that declares pipelines is a config without faults."""
    [retriever] = [block for block in _blocks(README, "python") if "class Longest" in block]
    (tmp_path / "my_retriever.py").write_text(retriever, encoding="utf-8")
    blocks = [block for block in _blocks(README, "yaml") if "pipelines:" in block]
    for number, block in enumerate(blocks):
        path = tmp_path / f"{number}.yaml"
        path.write_text(block, encoding="utf-8")
        config = load_config([path])
        own = parse(block, None).items["pipelines"].items
        assert all(config.pipelines[name] for name in own)
    assert len(blocks) == 2


def test_the_yaml_of_the_guide_loads(tmp_path: Path) -> None:
    """The examples of docs/files.md have the points that they say."""
    paths: list[Path] = []
    for block in _blocks((ROOT / "docs" / "files.md").read_text(encoding="utf-8"), "yaml"):
        paths.append(tmp_path / f"{len(paths)}.yaml")
        paths[-1].write_text(block, encoding="utf-8")
    names = [point.name for point in load_config(paths).pipelines["swept"]]
    assert names[0] == "swept@retriever=TfIdf,retriever.k=5"


def test_the_faults_that_the_readme_shows_are_the_faults_that_are_told(tmp_path: Path) -> None:
    """Word for word."""
    path = tmp_path / "mine.yaml"
    path.write_text(
        "pipelines:\n  mine:\n    reader: {class: Lead}\n    retriever:\n      class: TfIdf\n"
        "      kk: 3\n    combiner:\n      order: scor\n      class: Stuff\n",
        encoding="utf-8",
    )
    with pytest.raises(ConfigError) as caught:
        load_config([path])
    told = str(caught.value).replace(f"{tmp_path}/", "")
    assert f"```text\n{told}\n```" in README


def test_the_plug_ins_of_the_guide_work_together(tmp_path: Path) -> None:
    """Loader and stages of docs/plug-ins.md answer a question."""
    lines = ["pipelines:", "  guide:"]
    *stages, loader, _ = _blocks(PLUG_INS, "python")
    (tmp_path / "own.py").write_text(loader, encoding="utf-8")
    for block in stages:
        [name] = re.findall(r"^class (\w+)", block, re.MULTILINE)
        methods = set(re.findall(r"def (\w+)", block))
        key = next(key for key, kind in KINDS.items() if methods & set(kind.methods))
        (tmp_path / f"{name}.py").write_text(block, encoding="utf-8")
        lines.append(f'    {key}: {{class: "./{name}.py:{name}"}}')
    config = tmp_path / "guide.yaml"
    config.write_text("\n".join(lines), encoding="utf-8")
    play = tmp_path / "a.play"
    play.write_text("ACT 1\nEnter a fox.\n# lights\nACT 2\nExit the fox.\n", encoding="utf-8")
    settings = AskSettings("guide", [config], loader=f"{{class: '{tmp_path}/own.py:Play'}}")
    answer = Session.open([play], settings).ask("Who?")
    assert [loss.characters for loss in answer.document.losses] == [9]
    assert answer.text == "ACT 1\nENTER A FOX.\n ACT 2\nEXIT THE FOX."
    assert len(answer.passages) == 2


def test_the_task_of_the_guide_is_read_in_shards(tmp_path: Path) -> None:
    """The last class of docs/plug-ins.md finds its documents."""
    for name in "abc":
        (tmp_path / name).write_text(f"Dear {name}")
    found: dict[str, Any] = {}
    exec(_blocks(PLUG_INS, "python")[-1], found)  # noqa: S102 -- this project's own guide
    task = found["Letters"](tmp_path)
    shards = [*cut(layout_of(task, "letters"), 2)]
    groups = TaskReader(task, "letters").documents(shards[1])
    assert [example.document.text for group in groups for example in group] == ["Dear c"]
    assert task.fingerprint()


def test_what_the_guide_trains_is_trained(tmp_path: Path) -> None:
    """Reader and combiner of docs/training.md learn and answer."""
    lines = ["pipelines:", "  guide:"]
    blocks = _blocks((ROOT / "docs" / "training.md").read_text(encoding="utf-8"), "python")
    for key, block in zip(("reader", "combiner"), blocks, strict=True):
        [name] = re.findall(r"^class (\w+)", block, re.MULTILINE)
        (tmp_path / f"{name}.py").write_text(block, encoding="utf-8")
        lines.append(f'    {key}: {{class: "./{name}.py:{name}"}}')
    rows = [{"id": str(n), "document": "x", "references": [said]} for n, said in enumerate("aba")]
    data = "".join(f"{json.dumps(row)}\n" for row in rows)
    (tmp_path / "rows.jsonl").write_text(data, encoding="utf-8")
    task = "tasks:\n  rows: {class: JsonLines, path: rows.jsonl, metrics: [exact_match]}\n"
    config = tmp_path / "guide.yaml"
    config.write_text("\n".join(lines) + f"\n{task}", encoding="utf-8")
    made = train("guide", "rows", config=[config], out=tmp_path / "model")
    done = run(
        [made.pipeline], ["rows"], config=[config, made.config], out=tmp_path / "run", workers=0
    )
    assert done.results[0].scores["exact_match"] == pytest.approx(200 / 3, abs=0.01)


def test_the_python_of_the_readme_imports_what_exists() -> None:
    """Every name that it imports is there."""
    [block] = [block for block in _blocks(README, "python") if "leporello.api" in block]
    for module, names in re.findall(r"^from ([\w.]+) import (.+)$", block, re.MULTILINE):
        for name in names.split(", "):
            assert hasattr(importlib.import_module(module), name)


def test_the_changelog_names_every_exported_stage() -> None:
    """A stage that users may name is announced to them."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for kind in KINDS.values():
        for name in importlib.import_module(kind.package).__all__:
            assert f"`{name}`" in changelog, name


def test_the_guide_of_files_names_every_field_of_a_row() -> None:
    """No field is undocumented."""
    from leporello.tasks.jsonl.schema import Row

    guide = (ROOT / "docs" / "files.md").read_text(encoding="utf-8")
    assert all(f"`{field}`" in guide for field in Row.model_fields)
