"""The README and the guides cannot rot: what they show is run."""

from __future__ import annotations

import dataclasses
import importlib
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from command_line import HERE, ROOT, leporello

from leporello import Document, Example
from leporello.cli import application
from leporello.config import load_config
from leporello.config.metrics import metrics_of
from leporello.config.reference.catalogue import listing
from leporello.core.errors import ConfigError
from leporello.core.protocols import KINDS
from leporello.core.yaml.tree import parse
from leporello.engine.results.serialization import empty_prediction
from leporello.jobs.shards import TaskReader, cut, layout_of
from leporello.runs.ask import AskSettings, Session
from leporello.runs.run import run
from leporello.training import train

README = (ROOT / "README.md").read_text(encoding="utf-8")
PLUG_INS = (ROOT / "docs" / "plug-ins.md").read_text(encoding="utf-8")


def _blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def _pages() -> dict[str, str]:
    paths = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    return {path.name: path.read_text(encoding="utf-8") for path in paths}


def _options(name: str, group: Any) -> dict[str, set[str]]:
    """Returns the options of each verb of the command line, by its words."""
    found: dict[str, set[str]] = {}
    for verb, command in group.commands.items():
        if hasattr(command, "commands"):
            found |= _options(f"{name}{verb} ", command)
        else:
            names = (o for p in command.params for o in (*p.opts, *p.secondary_opts))
            found[f"{name}{verb}"] = {"--help", *names}
    return found


def test_every_command_that_is_shown_has_the_verb_and_the_options_that_it_names() -> None:
    """In all guides; and every verb has help."""
    options = _options("", typer.main.get_command(application()))
    wrong = []
    for page, text in _pages().items():
        shown = re.findall(
            r"^(?:\$ )?(?:python run_pipeline\.py|leporello) (.*)", text, re.MULTILINE
        )
        for line in shown:
            verb = next(
                (v for v in sorted(options, key=len)[::-1] if f"{line} ".startswith(f"{v} ")), ""
            )
            named = set(re.findall(r"(?<= )--[a-z-]+", line.partition(" #")[0]))
            if not verb or named - options[verb]:
                wrong.append(f"{page}: {line}")
    assert wrong == []
    assert all(
        command.callback and command.callback.__doc__
        for command in application().registered_commands
    )


@pytest.mark.integration
def test_the_tutorial_is_replayed_from_its_own_text(tmp_path: Path) -> None:
    """Its files are written, its commands run, and print what it shows; `…` stands for anything."""
    blocks = re.findall(
        r'(<!-- not replayed.*-->\n)?```(\w+)(?: title="(.*?)")?\n(.*?)```',
        (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8"),
        re.DOTALL,
    )
    for left_out, language, file, text in blocks:
        if file:
            (tmp_path / file).write_text(text, encoding="utf-8")
        elif language == "console" and not left_out:
            for shown in text.split("$ ")[1:]:
                _replay(shown, tmp_path)
    assert sum(1 for left_out, *_ in blocks if left_out) == 1
    left = {path.name for path in (tmp_path / "runs" / "two").rglob("*.*") if path.is_file()}
    told = _pages()["what-a-run-leaves.md"]
    assert [name for name in left if name not in told] == []


def _replay(shown: str, folder: Path) -> None:
    line, *expected = shown.splitlines()
    program, *arguments = shlex.split(line)
    if program == "leporello":
        in_process = HERE if arguments[0] == "run" and "--workers" not in arguments else ()
        printed = leporello(*arguments, *in_process, folder=folder).stdout
    else:
        printed = subprocess.run(
            [sys.executable, *arguments], cwd=folder, check=True, capture_output=True, text=True
        ).stdout
    printed = " ".join(printed.split())
    for text in filter(None, (" ".join(wanted.rstrip("…").split()) for wanted in expected)):
        before, found, printed = printed.partition(text)
        assert found == text, f"{line}: {text!r} is not printed after {before[-300:]!r}"


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


def test_the_gallery_shows_its_pipelines_as_they_are() -> None:
    """Whoever changes one runs `make gallery` again, which says what it scores then."""
    shown = _pages()["gallery.md"]
    text = (ROOT / "docs" / "gallery.yaml").read_text(encoding="utf-8")
    blocks = re.findall(r"^  (\S+):\n    description: (.*)\n((?:    .*\n)+)", text, re.MULTILINE)
    assert len(blocks) == 20
    for name, description, yaml in blocks:
        assert f"## {name}\n\n{description}\n\n```yaml\npipelines:\n  {name}:\n{yaml}```" in shown
    listed = listing([ROOT / "docs" / "gallery.yaml"], "pipelines")["pipelines"]
    assert all(listed[name].endswith("(runs offline)") for name, *_ in blocks)


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
    *stages, loader, _, _ = _blocks(PLUG_INS, "python")
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
    settings = AskSettings("guide", config=[config], loader=f"{{class: '{tmp_path}/own.py:Play'}}")
    answer = Session.open([play], settings).ask("Who?")
    assert [loss.characters for loss in answer.document.losses] == [9]
    assert answer.text == "ACT 1\nENTER A FOX.\n ACT 2\nEXIT THE FOX."
    assert len(answer.passages) == 2


def test_the_task_of_the_guide_is_read_in_shards(tmp_path: Path) -> None:
    """It finds its documents; the metric of the guide scores by its tolerance."""
    for name in "abc":
        (tmp_path / name).write_text(f"Dear {name}")
    named: dict[str, Any] = {}
    exec(_blocks(PLUG_INS, "python")[-2], named)  # noqa: S102 -- this project's own guide
    task = named["Letters"](tmp_path)
    shards = [*cut(layout_of(task, "letters"), 2)]
    groups = TaskReader(task, "letters").documents(shards[1])
    assert [example.document.text for group in groups for example in group] == ["Dear c"]
    assert task.fingerprint()
    (tmp_path / "my.py").write_text(_blocks(PLUG_INS, "python")[-1])
    [metric] = metrics_of([{"class": f"{tmp_path}/my.py:Numbers", "tolerance": 0.5}]).values()
    asked = Example("1", Document("d", "x"), "How many?", references=("7",))
    told = [dataclasses.replace(empty_prediction(asked), prediction=text) for text in ("7.5", "8")]
    found = [metric.statistics(one, asked) or {} for one in told]
    assert metric.aggregate(found) == {"numbers": 50.0}


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
    [block] = [block for block in _blocks(README, "python") if "Pipeline" in block]
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
