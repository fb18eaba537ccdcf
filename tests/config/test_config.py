"""Tests of configs: accepted forms, and messages about faults."""

import os
import textwrap
from pathlib import Path

import pytest

from leporello.config import Config, PipelineSpec, load_config
from leporello.core.errors import ConfigError, UserError
from leporello.core.yaml.scalars import write_yaml
from leporello.jobs.jobs import prepare
from leporello.jobs.options import JobOptions


def _write(folder: Path, text: str, name: str = "mine.yaml") -> Path:
    path = folder / name
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path


def _load(folder: Path, text: str, *overrides: str, names: tuple[str, ...] = ()) -> Config:
    return load_config([_write(folder, text)], overrides, names)


def _faults(folder: Path, text: str, *overrides: str, names: tuple[str, ...] = ()) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        _load(folder, text, *overrides, names=names)
    return [str(fault).replace(f"{folder}{os.sep}", "") for fault in caught.value.faults]


def _one(config: Config, name: str) -> PipelineSpec:
    [point] = config.select([name])
    return point


def test_a_stage_left_out_has_a_default_but_the_reader() -> None:
    stages = _one(load_config(), "lead").stages
    names = {key: spec.name for key, spec in stages.items()}
    assert names == {"chunker": "Whole", "retriever": "All", "reader": "Lead", "combiner": "Stuff"}


def test_a_stage_that_names_a_class_replaces_the_parents(tmp_path: Path) -> None:
    parent = "chunker: {class: FixedTokens, size: 50, overlap: 5}, retriever: {class: BM25, k: 3}"
    child = "extends: parent, chunker: {size: 70}, retriever: {class: TfIdf}"
    text = f"pipelines: {{parent: {{{parent}, reader: Lead}}, child: {{{child}}}}}"
    resolved = _one(_load(tmp_path, text), "child").resolved()
    assert resolved["chunker"] == {
        "class": "FixedTokens", "size": 70, "overlap": 5, "tokenizer": "words",
    }  # fmt: skip
    assert isinstance(resolved["retriever"], dict)
    assert resolved["retriever"]["k"] == 10


def test_a_list_sweeps_where_the_parameter_takes_no_list(tmp_path: Path) -> None:
    chunker = '{class: Recursive, size: [50, 100], separators: ["\\n", " "]}'
    stages = f"chunker: {chunker}, retriever: {{class: BM25, k: [1, 2]}}, reader: Lead"
    points = _load(tmp_path, f"pipelines: {{mine: {{{stages}}}}}").pipelines["mine"]
    assert [point.name for point in points] == [
        f"mine@chunker.size={size},retriever.k={k}" for size in (50, 100) for k in (1, 2)
    ]
    assert points[2].build().chunker.separators == ("\n", " ")


@pytest.mark.parametrize(
    ("retriever", "names"),
    [
        ("{sweep: [{class: TfIdf}, {class: BM25, k: [2, 3]}]}",
         ["=TfIdf", "=BM25,retriever.k=2", "=BM25,retriever.k=3"]),
        ("{class: Fusion, retrievers: [{class: BM25, k: [4, 5]}, {class: TfIdf}]}",
         [".retrievers.0.k=4", ".retrievers.0.k=5"]),
        ("{class: Neighbours, retriever: [{class: First}, {class: Random}]}",
         [".retriever=First", ".retriever=Random"]),
    ],
)  # fmt: skip
def test_whole_and_nested_stages_sweep(tmp_path: Path, retriever: str, names: list[str]) -> None:
    config = _load(tmp_path, f"pipelines: {{m: {{retriever: {retriever}, reader: Lead}}}}")
    assert [p.name for p in config.pipelines["m"]] == [f"m@retriever{name}" for name in names]


PLUG_IN = """
from __future__ import annotations
from dataclasses import dataclass

@dataclass(frozen=True)
class Mine:
    MORE

    def retrieve(self, questions, chunks):
        return [[] for _ in questions]
"""


def test_a_bare_list_for_an_open_parameter_asks_for_sweep(tmp_path: Path) -> None:
    source = PLUG_IN.replace("MORE", "weight: float | tuple[float, ...] = 1.0")
    _write(tmp_path, source, "mine.py")
    text = (
        "pipelines:\n  mine: {retriever: {class: ./mine.py:Mine, weight: [0.5, 1.0]}, reader: Lead}"
    )
    [fault] = _faults(tmp_path, text)
    assert fault == (
        "mine.yaml:2: mine.retriever.weight: takes a list or a single value, so a list is"
        " ambiguous; write {sweep: [0.5, 1.0]} to sweep"
    )


def test_set_changes_and_sweeps_only_the_selected_pipelines(tmp_path: Path) -> None:
    retriever = "{class: Fusion, retrievers: [{class: BM25, k: 4}, {class: TfIdf}]}"
    text = f"pipelines: {{one: {{retriever: {retriever}, reader: Lead}}, two: {{extends: one}}}}"
    overrides = ("retriever.retrievers.0.k=7", "reader.words=3,4", "combiner.class=ReadEach")
    config = _load(tmp_path, text, *overrides, names=("two",))
    points = config.select(["two"])
    assert [point.name for point in points] == ["two@reader.words=3", "two@reader.words=4"]
    assert points[0].build().retriever.retrievers[0].k == 7
    assert points[0].stages["combiner"].name == "ReadEach"
    assert _one(config, "one").build().retriever.retrievers[0].k == 4


def test_all_faults_are_reported_at_once_with_their_lines(tmp_path: Path) -> None:
    faults = _faults(
        tmp_path,
        """\
        pipelines:
          a: {chunkr: {class: Whole}, reader: Lead}
          b:
            retriever: {class: TfIDF}
            reader: {class: Lead, wrds: 3}
          c:
            retriever: {class: BM25, k: -1}
            reader: {class: Lead, words: many}
            combiner: {class: Stuff, order: scor}
          d: {chunker: {class: Lead}, reader: Lead}
          e: {chunker: 7, reader: Lead}
          f: {retriever: {class: Fusion, retrievers: {class: BM25}}, reader: Lead}
          g: {chunker: {class: FixedTokens, size: 10, overlap: 20}, reader: Lead}
          h: {extends: lead, reader: {words: [3, 3]}}
        taks: {}
        """,
    )
    expected = [
        "mine.yaml:2: a: unknown key 'chunkr'; did you mean 'chunker'; allowed: abstain, budget,",
        "mine.yaml:4: b.retriever.class: retrievers has no class 'TfIDF'; did you mean 'TfIdf'",
        "mine.yaml:5: b.reader.wrds: Lead has no parameter 'wrds'; did you mean 'words'",
        "mine.yaml:7: c.retriever.k: must be greater than 0, got -1 (wanted: int > 0)",
        "mine.yaml:8: c.reader.words: must be a valid integer, got 'many'",
        "mine.yaml:9: c.combiner.order: 'scor' is not allowed; did you mean 'score'",
        "mine.yaml:10: d.chunker.class: chunkers has no class 'Lead'",
        "mine.yaml:11: e.chunker: a stage is a NAME, or a mapping such as {class: NAME}, got 7",
        "mine.yaml:12: f.retriever.retrievers: needs a list of retrievers, got",
        "mine.yaml:13: g.chunker: FixedTokens rejects this:",
        "mine.yaml:14: h: two pipelines are named 'h@reader.words=3'",
        "mine.yaml:15: unknown key 'taks'; did you mean 'tasks'",
    ]
    assert len(faults) == len(expected), "\n".join(faults)
    for fault, beginning in zip(faults, expected, strict=True):
        assert fault.startswith(beginning), f"{fault}\n{beginning}"


def test_a_file_that_cannot_be_read_is_an_error_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no such file"):
        load_config([tmp_path / "absent.yaml"])
    with pytest.raises(UserError, match="is a folder; name one file"):
        load_config([tmp_path])


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import nothing_of_that_name\n", "failed: ModuleNotFoundError: No module named"),
        ("def f(:\n", "failed: SyntaxError: invalid syntax (plug.py, line 1)"),
        ("raise SystemExit(3)\n", "failed: SystemExit"),
        ("class Mine:\n    pass\n", "Mine is not a valid retriever: it has no method 'retrieve'"),
        ("class Mine:\n    def retrieve(self, query, chunks):\n        return []\n",
         "it must take (questions, chunks) or (examples, chunks)"),
        ("class Mine:\n    def __init__(self):\n        raise KeyError('k')\n"
         "    def retrieve(self, questions, chunks):\n        return []\n",
         "Mine rejects this: KeyError"),
    ],
)  # fmt: skip
def test_a_plug_in_that_cannot_be_loaded_is_a_fault_with_its_reason(
    tmp_path: Path, source: str, message: str
) -> None:
    _write(tmp_path, source, "plug.py")
    text = "pipelines:\n  mine: {retriever: ./plug.py:Mine, reader: Lead}"
    [fault] = _faults(tmp_path, text)
    assert fault.startswith("mine.yaml:2: mine.retriever")
    assert message in fault


def test_a_plug_in_may_import_its_neighbour_and_be_named_by_dots(tmp_path: Path) -> None:
    _write(tmp_path, "WORDS = 4\n", "neighbour_of_plug.py")
    source = PLUG_IN.replace("MORE", "k: int = WORDS")
    source = source.replace("@", "from neighbour_of_plug import WORDS\n\n@", 1)
    _write(tmp_path, source, "dotted_plug.py")
    text = "pipelines: {mine: {retriever: dotted_plug.Mine, reader: Lead}}"
    assert _one(_load(tmp_path, text), "mine").build().retriever.k == 4


def test_a_plug_in_may_inherit_a_built_in_class(tmp_path: Path) -> None:
    source = """
        from __future__ import annotations

        from dataclasses import dataclass
        from typing import Annotated

        from pydantic import Field
        from leporello.retrievers import TfIdf

        Small = Annotated[float, Field(le=2)]

        @dataclass(frozen=True)
        class Mine(TfIdf):
            boost: Small = 1.0
        """
    _write(tmp_path, source, "heir.py")
    parameters = "k: 3, ngrams: 2, boost: BOOST"
    text = f"pipelines: {{m: {{retriever: {{class: ./heir.py:Mine, {parameters}}}, reader: Lead}}}}"
    built = _one(_load(tmp_path, text.replace("BOOST", "1.5")), "m").build().retriever
    assert (built.k, built.ngrams, built.boost) == (3, 2, 1.5)
    wrong = text.replace("BOOST", "3.0").replace("k: 3", "k: 0")
    message = _faults(tmp_path, wrong)
    assert "m.retriever.k: must be greater than 0" in message[0]
    assert "m.retriever.boost: must be less than or equal to 2" in message[1]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("retriever.k", "must be PATH=VALUE"),
        ("retrievr.k=3", "must be PATH=VALUE"),
        ("retriever.k=", "the value is missing"),
        ("retriever.k=[1", "not valid YAML"),
        ("retriever.kk=3", "BM25 has no parameter 'kk'; did you mean 'k'"),
        ("retriever.k=x", "must be a valid integer"),
        ("retriever.k.l=3", "retriever.k is 3, which has no 'l'"),
    ],
)
def test_a_faulty_set_is_reported_as_of_the_command_line(override: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config([], [override], ["ask-smollm2"])
    assert str(caught.value).startswith("command line: ")
    assert message in str(caught.value)


def test_a_set_of_a_stage_that_a_pipeline_does_not_have_names_its_stages(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("pipelines: {bare: {reader: {class: Lead}}}")
    message = "--set for bare: it has no retriever .only reader.: add `--set retriever.class=NAME`"
    with pytest.raises(ConfigError, match=message):
        load_config([tmp_path / "c.yaml"], ["retriever.k=5"], ["bare"])
    overrides = ["retriever.class=BM25", "retriever.k=5"]
    config = load_config([tmp_path / "c.yaml"], overrides, ["bare"])
    assert _one(config, "bare").stages["retriever"].params == {"k": 5}


def test_pipelines_are_selected_by_name_point_or_pattern(tmp_path: Path) -> None:
    config = _load(tmp_path, "pipelines:\n  m: {extends: lead, reader: {words: [3, 4]}}\n")
    assert len(config.select(["m"])) == 2
    assert len(config.select(["m@reader.words=3"])) == 1
    assert len(config.select(["m@*", "m"])) == 2


def test_a_resolved_pipeline_loads_again_as_itself(tmp_path: Path) -> None:
    point = _one(load_config(), "ask-fused")
    path = tmp_path / "run.yaml"
    write_yaml(path, {"pipelines": {"again": point.resolved()}})
    assert _one(load_config([path]), "again").resolved() == point.resolved()


def test_values_that_differ_in_blanks_are_different_points(tmp_path: Path) -> None:
    stops = '{sweep: [["a b"], ["ab"]]}'
    config = _load(tmp_path, f"pipelines: {{m: {{reader: {{class: CausalLM, stop: {stops}}}}}}}\n")
    names = [point.name for point in config.select(["m"])]
    assert names == ['m@reader.stop=["a b"]', 'm@reader.stop=["ab"]']
    assert len(config.select(['m@reader.stop=["ab"]'])) == 1


def test_set_sweeps_classes_and_reaches_into_swept_stages(tmp_path: Path) -> None:
    config = load_config([], ["retriever.class=BM25,TfIdf"], ["lead"])
    names = [point.name for point in config.select(["lead"])]
    assert names == ["lead@retriever=BM25", "lead@retriever=TfIdf"]
    parent = "parent: {retriever: {sweep: [{class: BM25}, {class: TfIdf}]}, reader: Lead}"
    child = "child: {extends: parent, retriever: {k: 3}}"
    config = _load(tmp_path, f"pipelines: {{{parent}, {child}}}")
    assert [point.build().retriever.k for point in config.select(["child"])] == [3, 3]


def test_a_task_may_have_its_own_default_pipeline(tmp_path: Path) -> None:
    """Settings need the name of a pipeline then, or they might change one that does not run."""
    default = "default: {pipeline: lead, task: sample, pipelines: {sample: best-sentence}}\n"
    config = _load(tmp_path, default)
    assert [(p.name, t.name) for p, t in config.jobs([], ["sample"])] == [
        ("best-sentence", "sample")
    ]
    assert [(p.name, t.name) for p, t in config.jobs(["lead"], ["sample"])] == [("lead", "sample")]
    with pytest.raises(ConfigError, match=r"there is no task 'sampel'; did you mean 'sample'"):
        _load(tmp_path, default.replace("{sample:", "{sampel:"))
    with pytest.raises(ConfigError, match=r"there is no pipeline 'best'"):
        _load(tmp_path, default.replace("best-sentence", "best"))
    file = _write(tmp_path, default)
    with pytest.raises(UserError, match="run best-sentence --task sample --set"):
        prepare(JobOptions([], ["sample"], config=[file], overrides=["reader.words=3"]))
