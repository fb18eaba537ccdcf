"""Tests that run the examples of the README and the guides."""

import dataclasses
import importlib
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import HERE, ROOT, leporello, options_of, verbs, write_files

from benchmarks.page import replaced
from leporello import Document, Example
from leporello.config import load_config
from leporello.config.metrics import metrics_of
from leporello.config.reference.catalogue import listing
from leporello.core.errors import ConfigError, UserError
from leporello.core.protocols import KINDS
from leporello.core.yaml.tree import parse
from leporello.engine.results.finished import empty_prediction
from leporello.jobs.shards import TaskReader, cut, layout_of
from leporello.runs.ask import AskSettings, Session
from leporello.runs.run import run
from leporello.tasks.jsonl.schema import Row
from leporello.training import train

README = (ROOT / "README.md").read_text(encoding="utf-8")
PLUG_INS = (ROOT / "docs" / "plug-ins.md").read_text(encoding="utf-8")


def _blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def _pages() -> dict[str, str]:
    paths = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    return {path.name: path.read_text(encoding="utf-8") for path in paths}


def test_commands_in_the_guides_use_existing_verbs_and_options() -> None:
    options = {name: {"--help", *options_of(verb)} for name, verb in verbs()}
    wrong = []
    longest_first = sorted(options, key=len, reverse=True)
    for page, text in _pages().items():
        pattern = r"^(?:\$ )?(?:python run_pipeline\.py|leporello) (.*)"
        for line in re.findall(pattern, text, re.MULTILINE):
            verb = next((v for v in longest_first if f"{line} ".startswith(f"{v} ")), "")
            used = set(re.findall(r"(?<= )--[a-z-]+", line.partition(" #")[0]))
            if not verb or used - options[verb]:
                wrong.append(f"{page}: {line}")
    assert wrong == []
    assert [name for name, verb in verbs() if not verb.help] == []


@pytest.mark.integration
def test_the_tutorial_prints_the_output_that_it_shows(tmp_path: Path) -> None:
    blocks = re.findall(
        r'(<!-- not replayed.*-->\n)?```(\w+)(?: title="(.*?)")?\n(.*?)```',
        (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8"),
        re.DOTALL,
    )
    for is_skipped, language, file, text in blocks:
        if file:
            (tmp_path / file).write_text(text, encoding="utf-8")
        elif language == "console" and not is_skipped:
            for shown in text.split("$ ")[1:]:
                _replay(shown, tmp_path)
    assert sum(1 for is_skipped, *_ in blocks if is_skipped) == 1
    names = {path.name for path in (tmp_path / "runs" / "two").rglob("*.*") if path.is_file()}
    page = _pages()["what-a-run-leaves.md"]
    assert [name for name in names if name not in page] == []


def _replay(command: str, folder: Path) -> None:
    line, *expected = command.splitlines()
    program, *arguments = shlex.split(line)
    if program == "leporello":
        in_process = HERE if arguments[0] == "run" and "--workers" not in arguments else ()
        printed = leporello(*arguments, *in_process, folder=folder).stdout
    else:
        printed = subprocess.run(
            [sys.executable, *arguments], cwd=folder, check=True, capture_output=True, text=True
        ).stdout
    printed = " ".join(printed.split())
    for text in filter(None, (" ".join(pattern.rstrip("…").split()) for pattern in expected)):
        before, match, printed = printed.partition(text)
        assert match == text, f"{line}: {text!r} is not printed after {before[-300:]!r}"


def test_the_configs_of_the_readme_load(tmp_path: Path) -> None:
    [retriever] = [block for block in _blocks(README, "python") if "class Longest" in block]
    (tmp_path / "my_retriever.py").write_text(retriever, encoding="utf-8")
    blocks = [block for block in _blocks(README, "yaml") if "pipelines:" in block]
    for number, block in enumerate(blocks):
        path = tmp_path / f"{number}.yaml"
        path.write_text(block, encoding="utf-8")
        config = load_config([path])
        names = parse(block, None).items["pipelines"].items
        assert all(config.pipelines[name] for name in names)
    assert len(blocks) == 2


def test_the_sweep_of_the_guide_to_files_has_the_points_that_it_names(tmp_path: Path) -> None:
    paths: list[Path] = []
    for block in _blocks((ROOT / "docs" / "files.md").read_text(encoding="utf-8"), "yaml"):
        paths.append(tmp_path / f"{len(paths)}.yaml")
        paths[-1].write_text(block, encoding="utf-8")
    names = [point.name for point in load_config(paths).pipelines["swept"]]
    assert names[0] == "swept@retriever=TfIdf,retriever.k=5"


def test_the_gallery_shows_the_current_pipelines_of_its_config() -> None:
    """After a change of a pipeline, `make gallery` updates the page and its scores."""
    page = _pages()["gallery.md"]
    text = (ROOT / "docs" / "gallery.yaml").read_text(encoding="utf-8")
    blocks = re.findall(r"^  (\S+):\n    description: (.*)\n((?:    .*\n)+)", text, re.MULTILINE)
    assert len(blocks) == 20
    for name, description, yaml in blocks:
        assert f"## {name}\n\n{description}\n\n```yaml\npipelines:\n  {name}:\n{yaml}```" in page
    summaries = listing([ROOT / "docs" / "gallery.yaml"], "pipelines")["pipelines"]
    assert all(summaries[name].endswith("(offline)") for name, *_ in blocks)


def test_the_readme_shows_the_faults_of_a_config_word_for_word(tmp_path: Path) -> None:
    """The config above has two mistakes; only its folder is left out of the message."""
    path = tmp_path / "mine.yaml"
    config = next(block for block in _blocks(README, "yaml") if "mine.yaml" in block)
    wrong = config.replace("{class: TfIdf, k:", "{class: TfIdf, kk:").replace("score}", "scor}")
    path.write_text(wrong, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_config([path])
    faults = str(caught.value).replace(f"{tmp_path}/", "")
    assert f"```text\n{faults}\n```" in README


def _stage(folder: Path, key: str, block: str) -> str:
    """Writes the class of a guide to a file; returns its line in a pipeline."""
    [name] = re.findall(r"^class (\w+)", block, re.MULTILINE)
    write_files(folder, {f"{name}.py": block})
    return f'    {key}: {{class: "./{name}.py:{name}"}}'


def test_the_plug_ins_of_the_guide_work_together(tmp_path: Path) -> None:
    *stages, loader, _, _ = _blocks(PLUG_INS, "python")
    play = "ACT 1\nEnter a fox.\n# lights\nACT 2\nExit the fox.\n"
    write_files(tmp_path, {"own.py": loader, "a.play": play})
    lines = ["pipelines:", "  guide:"]
    for block in stages:
        methods = set(re.findall(r"def (\w+)", block))
        key = next(key for key, kind in KINDS.items() if methods & set(kind.methods))
        lines.append(_stage(tmp_path, key, block))
    write_files(tmp_path, {"guide.yaml": "\n".join(lines)})
    config, reference = tmp_path / "guide.yaml", f"{{class: '{tmp_path}/own.py:Play'}}"
    settings = AskSettings("guide", config=[config], loader=reference)
    answer = Session.open([tmp_path / "a.play"], settings).ask("Who?")
    assert [loss.characters for loss in answer.document.losses] == [9]
    assert answer.text == "ACT 1\nENTER A FOX.\n ACT 2\nEXIT THE FOX."
    assert len(answer.passages) == 2


def test_the_task_and_the_metric_of_the_guide_work(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_text(f"Dear {name}")
    names: dict[str, Any] = {}
    exec(_blocks(PLUG_INS, "python")[-2], names)  # noqa: S102 -- this project's own guide
    task = names["Letters"](tmp_path)
    shards = [*cut(layout_of(task, "letters"), 2)]
    groups = TaskReader(task, "letters").documents(shards[1])
    assert [example.document.text for group in groups for example in group] == ["Dear c"]
    assert task.fingerprint()
    (tmp_path / "my.py").write_text(_blocks(PLUG_INS, "python")[-1])
    [metric] = metrics_of([{"class": f"{tmp_path}/my.py:Numbers", "tolerance": 0.5}]).values()
    example = Example("1", Document("d", "x"), "How many?", references=("7",))
    empty = empty_prediction(example)
    predictions = [dataclasses.replace(empty, prediction=text) for text in ("7.5", "8")]
    statistics = [metric.statistics(prediction, example) or {} for prediction in predictions]
    assert metric.aggregate(statistics) == {"numbers": 50.0}


def test_the_reader_and_the_combiner_of_the_guide_to_training_learn(tmp_path: Path) -> None:
    lines = ["pipelines:", "  guide:"]
    blocks = _blocks((ROOT / "docs" / "training.md").read_text(encoding="utf-8"), "python")
    pairs = zip(("reader", "combiner"), blocks, strict=True)
    lines += [_stage(tmp_path, key, block) for key, block in pairs]
    rows = ({"id": str(n), "document": "x", "references": [r]} for n, r in enumerate("aba"))
    task = "tasks:\n  rows: {class: JsonLines, path: rows.jsonl, metrics: [exact_match]}\n"
    write_files(tmp_path, {"rows.jsonl": rows, "guide.yaml": "\n".join(lines) + f"\n{task}"})
    config = tmp_path / "guide.yaml"
    trained = train("guide", "rows", config=[config], out=tmp_path / "model")
    summary = run(
        [trained.pipeline], ["rows"], config=[config, trained.config], out=tmp_path / "run",
        workers=0,
    )  # fmt: skip
    assert summary.results[0].scores["exact_match"] == pytest.approx(200 / 3, abs=0.01)


def test_names_in_the_docs_exist_and_none_is_missing() -> None:
    [block] = [block for block in _blocks(README, "python") if "Pipeline" in block]
    for module, names in re.findall(r"^from ([\w.]+) import (.+)$", block, re.MULTILINE):
        for name in names.split(", "):
            assert hasattr(importlib.import_module(module), name)
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for kind in KINDS.values():
        for name in importlib.import_module(kind.package).__all__:
            assert f"`{name}`" in changelog, name
    guide = (ROOT / "docs" / "files.md").read_text(encoding="utf-8")
    assert [field for field in Row.model_fields if f"`{field}`" not in guide] == []


def test_measuring_writes_tables_into_the_places_of_pages() -> None:
    """Every place that the Makefile names is in its page, and only its tables change."""
    places = re.findall(r"benchmarks\.page (\S+) (\S+)", (ROOT / "Makefile").read_text("utf-8"))
    assert len(places) == 3
    for path, name in places:
        page = (ROOT / path).read_text("utf-8")
        before, _, rest = page.partition(f"<!-- {name} -->")
        after = rest.partition("<!-- end -->")[2]
        changed = replaced(page, name, "| new |")
        assert changed == f"{before}<!-- {name} -->\n\n| new |\n\n<!-- end -->{after}"
    with pytest.raises(UserError, match="printed no table"):
        replaced(page, name, "Traceback")
    with pytest.raises(UserError, match="no `<!-- other -->`"):
        replaced(page, "other", "| new |")
