"""Where a run's work happens: said by the pipeline or by flags, and no part of what it is."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from command_line import leporello

from leporello.config import load_config
from leporello.config.placement import Placement
from leporello.core.errors import ConfigError, UserError
from leporello.jobs.jobs import Job, job_directory, prepare
from leporello.jobs.options import RunOptions
from leporello.runs.run import run


def write(folder: Path, text: str) -> Path:
    """Writes a config beside a task of six questions on three documents."""
    rows = [
        {"id": f"{document}{n}", "document": f"fox {document}. owl {n}. hen.", "question": "owl?"}
        for document in "abc"
        for n in range(2)
    ]
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    (folder / "rows.jsonl").write_text(lines, encoding="utf-8")
    path = folder / "mine.yaml"
    task = "tasks:\n  rows: {class: JsonLines, path: rows.jsonl, metrics: [exact_match]}\n"
    path.write_text(textwrap.dedent(text) + task, encoding="utf-8")
    return path


def mine(folder: Path, placement: str) -> Path:
    """Writes a pipeline `mine` with this placement."""
    return write(
        folder,
        f"""
        pipelines:
          mine:
            chunker: {{class: Sentences, size: 2}}
            retriever: {{class: TfIdf, k: 2}}
            reader: {{class: BestSentence}}
            tasks: [rows]
            placement: {placement}
        """,
    )


def placed(config: Path, *names: str, **given: Any) -> list[Job]:
    """Returns the jobs of pipelines."""
    return prepare(RunOptions(pipelines=names or ["mine"], config=[config], **given))


def faults(config: Path, *overrides: str) -> list[str]:
    """Returns what is wrong with a config."""
    with pytest.raises(ConfigError) as caught:
        load_config([config], overrides, ["mine"])
    return [str(fault).replace(f"{config.parent}{os.sep}", "") for fault in caught.value.faults]


def test_a_pipeline_says_where_it_runs(tmp_path: Path) -> None:
    """What it leaves out has its default; a host without a port gets Ray's."""
    config = mine(tmp_path, "{executor: ray, address: head, workers: 4, worker_memory: 4GiB}")
    [job] = placed(config)
    expected = Placement("ray", address="head:6379", workers=4, worker_memory="4GiB")
    assert job.placement == expected
    assert (job.placement.worker_bytes, job.placement.selectors) == (4 * 2**30, 0)


def test_every_fault_of_a_placement_is_told_with_its_line(tmp_path: Path) -> None:
    """Settings that there are not, values that are none, lists, and what contradicts the rest."""
    config = write(
        tmp_path,
        """
        pipelines:
          one:
            extends: lead
            placement:
              executor: rey
              worker: 3
              workers: [1, 2]
              selectors: -1
              worker_gpus: .inf
          two:
            extends: lead
            placement:
              executor: ray
              workers: 0
              worker_memory: much
              worker_gpus: 1.5
          three: {extends: lead, placement: 4}
          four: {extends: lead, placement: {address: auto}}
          five: {extends: lead, placement: {worker_gpus: 1}}
          six: {extends: lead, placement: {workers: 0, selectors: 1}}
          seven: {extends: lead, placement: {reader_replicas: 2}}
        """,
    )
    told = faults(config)
    wanted = [
        "mine.yaml:6: one.placement.executor: 'rey' is not allowed; did you mean 'ray'",
        "mine.yaml:7: one.placement.worker: there is no such setting; did you mean 'workers'",
        "mine.yaml:8: one.placement.workers: takes one value",
        "mine.yaml:9: one.placement.selectors: input should be greater than or equal to 0",
        "mine.yaml:10: one.placement.worker_gpus: input should be a finite number",
        "mine.yaml:15: two.placement.workers: 0 works in this process, which is not on Ray",
        "mine.yaml:16: two.placement.worker_memory: must be a size, as 4GiB",
        "mine.yaml:17: two.placement.worker_gpus: above 1, Ray gives whole GPUs only",
        "mine.yaml:18: three.placement: must be a mapping of settings, got 4",
        "mine.yaml:19: four.placement.address: is Ray's alone; say `executor: ray`",
        "mine.yaml:20: five.placement.worker_gpus: is Ray's alone: here each of several",
        "mine.yaml:21: six.placement.selectors: are kept by workers, and 0 workers are none",
        "mine.yaml:22: seven.placement.reader_replicas: there is no such setting",
    ]
    assert [line[: len(want)] for line, want in zip(told, wanted, strict=True)] == wanted


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("ray://head:10001", "submit it with `ray job submit`"),
        ("local", "leave it out to start a Ray on this machine"),
        ("head:port", "must be `auto`, HOST or HOST:PORT"),
        ("head:70000", "must be `auto`, HOST or HOST:PORT"),
        ("::1", "must be `auto`, HOST or HOST:PORT"),
    ],
)
def test_what_is_no_address_of_a_cluster_is_refused(address: str, told: str) -> None:
    """With what to do instead."""
    with pytest.raises(ValueError, match=r"^address: ") as caught:
        Placement("ray", address=address)
    assert told in str(caught.value)


FAMILY = """
pipelines:
  parent:
    extends: lead
    placement: {executor: ray, address: "head:7000", workers: 4, selectors: 2}
  more: {extends: parent, placement: {workers: 8}}
  here: {extends: more, placement: {executor: local}}
"""


def test_a_placement_is_inherited_key_by_key(tmp_path: Path) -> None:
    """What Ray alone knows is left behind by one that runs here."""
    config = write(tmp_path, FAMILY)
    more, here = placed(config, "more", "here", tasks=["rows"])
    assert more.placement == Placement("ray", "head:7000", 8, selectors=2)
    assert here.placement == Placement("local", workers=8, selectors=2)


def test_set_changes_a_placement_and_sweeps_none(tmp_path: Path) -> None:
    """As in a pipeline that extends this one."""
    config = mine(tmp_path, "{executor: ray, address: auto, workers: 4}")
    [job] = placed(config, overrides=["placement.executor=local", "placement.workers=2"])
    assert job.placement == Placement(workers=2)
    [told] = faults(config, "placement.workers=1,2")
    assert told.startswith("command line: mine.placement.workers: takes one value")


def test_flags_are_laid_over_every_pipelines_placement(tmp_path: Path) -> None:
    """What they leave out stays as the pipeline has it."""
    config = write(tmp_path, FAMILY)
    given: dict[str, Any] = {"executor": "local", "workers": "auto", "worker_gpus": None}
    for job in placed(config, "parent", "more", "here", tasks=["rows"], **given):
        assert job.placement == Placement(workers="auto", selectors=2)


def test_the_command_line_has_the_flags(tmp_path: Path) -> None:
    """They are checked as the YAML's settings are."""
    config = mine(tmp_path, "{workers: 0}")
    given: list[str | Path] = ["--config", config, "--out", tmp_path / "out"]
    ray = ["--executor", "ray", "--address", "head", "--selectors", "2", "--worker-gpus", "1.5"]
    done = leporello("run", "mine", *given, *ray, "--workers", "auto", status=2)
    assert "worker_gpus: above 1, Ray gives whole GPUs only, got 1.5" in done.stderr
    assert "Ray's alone" not in done.stderr
    done = leporello("run", "mine", *given, "--workers", "many", status=2)
    assert "--workers takes a number or 'auto', got 'many'" in done.stderr


def test_where_a_run_works_is_no_part_of_what_it_is(tmp_path: Path) -> None:
    """Begun in this process, it is finished with two others, to the same bytes."""
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    config = mine(tmp_path, "{workers: 0}")
    [before] = placed(config)
    run(config=[config], pipelines=["mine"], out=whole)
    run(config=[config], pipelines=["mine"], out=parts, limit=3)
    begun = (parts / "run.yaml").read_bytes()
    config = mine(tmp_path, "{workers: 2}")
    [after] = placed(config)
    assert (after.placement.workers, after.signature) == (2, before.signature)
    assert job_directory([after], None) == job_directory([before], None)
    assert run(config=[config], pipelines=["mine"], out=parts).results[0].examples == 6
    assert (parts / "run.yaml").read_bytes() == begun
    one, two = (folder / "mine/rows/predictions.jsonl" for folder in (whole, parts))
    assert one.read_bytes() == two.read_bytes()


def test_ray_without_its_extra_is_told_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the command that installs it."""
    config = mine(tmp_path, "{executor: ray}")
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r"pip install 'leporello\[ray\]'"):
        run(["mine"], config=[config], out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_auto_is_one_a_gpu_or_as_many_as_cores_and_memory_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A worker has its threads' cores, and memory for half as much again as its model."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 2, 5, 6, 7}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 5)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,3")
    assert Placement(workers="auto").count(10**15) == 2
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert Placement(workers="auto").count() == 5
    assert Placement(workers="auto", threads=2).count() == 2
    assert Placement(workers="auto").count(10**15) == 1
    monkeypatch.setattr("leporello.config.placement.memory_free", lambda: 10**9)
    assert Placement(workers="auto").count(2 * 10**8) == 3
    assert Placement(workers=7).count(10**15) == 7


def test_plan_tells_where_each_pipeline_would_run(tmp_path: Path) -> None:
    """In one line, where that is one place."""
    config = write(tmp_path, FAMILY)
    given: list[str | Path] = ["--config", config, "--task", "rows", "--out", tmp_path / "out"]
    done = leporello("plan", "more", "here", *given)
    assert "more would run on Ray at head:7000, workers: 8, selectors: 2 a worker\n" in done.stdout
    assert "here would run on this machine, workers: 8, selectors: 2 a worker\n" in done.stdout
