"""Tests of placements, which pipelines or flags set, and on which no result depends."""

import os
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from command_line import leporello
from row_files import write_rows

from leporello.config import load_config
from leporello.config.placement import Placement
from leporello.core.errors import ConfigError, UserError
from leporello.jobs.jobs import Job, job_directory, prepare
from leporello.jobs.options import RunOptions
from leporello.runs.run import run


def write(folder: Path, text: str) -> Path:
    rows = (
        {"id": f"{document}{n}", "document": f"fox {document}. owl {n}. hen.", "question": "owl?"}
        for document in "abc"
        for n in range(2)
    )
    write_rows(folder / "rows.jsonl", *rows)
    path = folder / "mine.yaml"
    task = "tasks:\n  rows: {class: JsonLines, path: rows.jsonl, metrics: [exact_match]}\n"
    path.write_text(textwrap.dedent(text) + task, encoding="utf-8")
    return path


def mine(folder: Path, placement: str) -> Path:
    stages = "chunker: {class: Sentences, size: 2}, retriever: {class: TfIdf, k: 2}"
    more = f"reader: BestSentence, tasks: [rows], placement: {placement}"
    return write(folder, f"pipelines: {{mine: {{{stages}, {more}}}}}\n")


def prepared_jobs(config: Path, *names: str, **options: Any) -> list[Job]:
    return prepare(RunOptions(pipelines=names or ["mine"], config=[config], **options))


def faults(config: Path, *overrides: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_config([config], overrides, ["mine"])
    return [str(fault).replace(f"{config.parent}{os.sep}", "") for fault in caught.value.faults]


def test_a_pipeline_sets_its_placement(tmp_path: Path) -> None:
    config = mine(tmp_path, "{executor: ray, address: head, workers: 4}")
    [job] = prepared_jobs(config)
    expected = Placement("ray", address="head:6379", workers=4)
    assert job.placement == expected
    assert job.placement.selectors == 0


def test_faults_of_a_placement_are_reported_with_their_lines(tmp_path: Path) -> None:
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
              worker_gpus: 1.5
          three: {extends: lead, placement: 4}
          four: {extends: lead, placement: {address: auto}}
          five: {extends: lead, placement: {worker_gpus: 1}}
          six: {extends: lead, placement: {workers: 0, selectors: 1}}
          seven: {extends: lead, placement: {reader_replicas: 2}}
        """,
    )
    lines = faults(config)
    wanted = [
        "mine.yaml:6: one.placement.executor: 'rey' is not allowed; did you mean 'ray'",
        "mine.yaml:7: one.placement.worker: unknown setting; did you mean 'workers'",
        "mine.yaml:8: one.placement.workers: takes one value",
        "mine.yaml:9: one.placement.selectors: must be greater than or equal to 0",
        "mine.yaml:10: one.placement.worker_gpus: must be a finite number",
        "mine.yaml:15: two.placement.workers: 0 means this process, which is not on Ray",
        "mine.yaml:16: two.placement.worker_gpus: must be a whole number if above 1",
        "mine.yaml:17: three.placement: must be a mapping of settings, got 4",
        "mine.yaml:18: four.placement.address: applies only to Ray; add `executor: ray`",
        "mine.yaml:19: five.placement.worker_gpus: applies only to Ray: on this machine each of",
        "mine.yaml:20: six.placement.selectors: need a worker, and there are 0",
        "mine.yaml:21: seven.placement.reader_replicas: unknown setting",
    ]
    assert [line[: len(want)] for line, want in zip(lines, wanted, strict=True)] == wanted


@pytest.mark.parametrize("address", ["ray://head:10001", "head:port", "head:70000", "::1"])
def test_an_invalid_address_of_a_cluster_is_refused(tmp_path: Path, address: str) -> None:
    [fault] = faults(mine(tmp_path, f"{{executor: ray, address: '{address}'}}"))
    assert "mine.placement.address: must be `auto`, HOST or HOST:PORT" in fault


FAMILY = """
pipelines:
  parent:
    extends: lead
    placement: {executor: ray, address: "head:7000", workers: 4, selectors: 2}
  more: {extends: parent, placement: {workers: 8}}
  here: {extends: more, placement: {executor: local}}
"""


def test_a_placement_is_inherited_key_by_key(tmp_path: Path) -> None:
    """A child that runs locally does not inherit the settings of Ray."""
    config = write(tmp_path, FAMILY)
    more, here = prepared_jobs(config, "more", "here", tasks=["rows"])
    assert more.placement == Placement("ray", "head:7000", 8, selectors=2)
    assert here.placement == Placement("local", workers=8, selectors=2)


def test_set_changes_a_placement_but_cannot_sweep_it(tmp_path: Path) -> None:
    config = mine(tmp_path, "{executor: ray, address: auto, workers: 4}")
    [job] = prepared_jobs(config, overrides=["placement.executor=local", "placement.workers=2"])
    assert job.placement == Placement(workers=2)
    [fault] = faults(config, "placement.workers=1,2")
    assert fault.startswith("command line: mine.placement.workers: takes one value")


def test_flags_override_the_placement_of_every_pipeline(tmp_path: Path) -> None:
    config = write(tmp_path, FAMILY)
    flags: dict[str, Any] = {"executor": "local", "workers": "auto", "worker_gpus": None}
    for job in prepared_jobs(config, "parent", "more", "here", tasks=["rows"], **flags):
        assert job.placement == Placement(workers="auto", selectors=2)
    local, overrides = mine(tmp_path, "{workers: 2}"), ["placement.worker_cpus=2"]
    [job] = prepared_jobs(local, overrides=overrides, executor="ray")
    assert job.placement == Placement("ray", workers=2, worker_cpus=2)
    with pytest.raises(UserError, match="worker_cpus: applies only to Ray"):
        prepared_jobs(local, overrides=overrides)


def test_the_command_line_has_the_flags(tmp_path: Path) -> None:
    config = mine(tmp_path, "{workers: 0}")
    options: list[str | Path] = ["--config", config, "--out", tmp_path / "out"]
    ray = ["--executor", "ray", "--address", "head", "--selectors", "2", "--worker-gpus", "1.5"]
    result = leporello("run", "mine", *options, *ray, "--workers", "auto", status=2)
    assert "worker_gpus: must be a whole number if above 1, got 1.5" in result.stderr
    assert "applies only to Ray" not in result.stderr
    result = leporello("run", "mine", *options, "--workers", "many", status=2)
    assert "--workers many: must be a number from 0, or auto" in result.stderr


def test_a_placement_does_not_change_the_identity_of_a_run(tmp_path: Path) -> None:
    """A run continues with another placement; tests/jobs/test_shard_runs.py compares bytes."""
    [before] = prepared_jobs(mine(tmp_path, "{workers: 0}"))
    [after] = prepared_jobs(mine(tmp_path, "{workers: 2}"))
    assert (after.placement.workers, after.signature) == (2, before.signature)
    assert job_directory([after], None) == job_directory([before], None)
    assert after.pipeline.resolved() == before.pipeline.resolved()


def test_ray_without_its_extra_is_an_error_before_the_run_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = mine(tmp_path, "{executor: ray}")
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r"pip install 'leporello\[ray\]'"):
        run(["mine"], config=[config], out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_auto_is_limited_by_gpus_cores_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker needs a core per thread, and 1.5 times the memory of its model."""
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


def test_plan_shows_the_placement_of_each_pipeline(tmp_path: Path) -> None:
    config = write(tmp_path, FAMILY)
    options: list[str | Path] = ["--config", config, "--task", "rows", "--out", tmp_path / "out"]
    result = leporello("plan", "more", "here", *options)
    assert (
        "more would run on Ray at head:7000, workers: 8, selectors: 2 per worker\n" in result.stdout
    )
    assert "here would run on this machine, workers: 8, selectors: 2 per worker\n" in result.stdout
