"""Tests that killed or interrupted runs, or runs on a full disk, lose and repeat no results."""

import os
import random
import resource
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from command_line import HERE, command, leporello, until
from lamps import ARGUMENTS, PIPELINES, began, project, same_bytes, stored


def _start(line: list[str], seconds: float) -> subprocess.Popen[str]:
    """Starts a run whose batches take some seconds each."""
    return subprocess.Popen(
        line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"LAMP_SECONDS": str(seconds)},
    )  # fmt: skip


def _workers(process: subprocess.Popen[str]) -> list[int]:
    try:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
        return [*map(int, children.split())]
    except (FileNotFoundError, ProcessLookupError):  # it has ended
        return []


def _finish_killed(line: list[str], out: Path, stride: int, moments: random.Random) -> int:
    """Runs a command and kills it until it is complete; returns the number of kills.

    At most `stride` batches and examples are stored between kills. `moments` chooses the time of a
    kill, and whether to kill the run or a worker.
    """
    kills, spare = 0, 2  # a third crash of a worker would count as the plug-in's fault
    while True:
        with _start(line, 0.003) as process:
            while process.poll() is None:
                goal = stored(out) + moments.randrange(stride)
                if moments.random() < 0.8:  # kill during work; otherwise at any time
                    until(lambda goal=goal: stored(out) > goal, process)  # type: ignore[misc]
                with suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=moments.uniform(0.0, 0.1))
                    break
                workers = _workers(process)
                kills += 1
                if workers and spare and moments.random() < 0.4:
                    spare -= 1
                    with suppress(ProcessLookupError):
                        os.kill(moments.choice(workers), signal.SIGKILL)
                else:
                    process.kill()
                    process.wait()
            _, errors = process.communicate()
        finished, expected = (
            # The last file that a run writes, after the metrics.
            len([*run.glob("*/lamps/.merged.json")])
            for run in (out, out.with_name("expected"))
        )
        if finished == expected:
            return kills  # complete: the same command would only run failed examples again
        if process.returncode != -signal.SIGKILL:
            assert process.returncode == 1, errors  # some reads always fail
            return kills


@pytest.mark.parametrize(
    ("pipelines", "kills", "per_run", "examples"),
    [(("mine", "cast"), 2, 2, 40), pytest.param(PIPELINES, 50, 10, 300, marks=pytest.mark.slow)],
)
def test_runs_killed_at_random_moments_end_with_the_same_bytes(
    tmp_path: Path, pipelines: tuple[str, ...], kills: int, per_run: int, examples: int
) -> None:
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")  # noqa: T201 -- shown with a failure
    config, expected = project(tmp_path, examples=examples), tmp_path / "expected"
    sizes = ("--shard-examples", str(examples // 2))
    arguments = ("run", *pipelines, "--config", str(config), *sizes)
    leporello(*arguments, "--out", expected, "--no-cache", *HERE, status=1)
    moments, stride = random.Random(seed), 2 * stored(expected) // per_run
    count = run = 0
    while count < kills or run < 2:
        out = tmp_path / f"killed{run}"
        options = ["--workers", str(run % 3), *(["--no-cache"] if run % 2 else [])]
        count += _finish_killed(command(*arguments, "--out", out, *options), out, stride, moments)
        same_bytes(out, expected, *pipelines)
        run += 1


@pytest.mark.parametrize(
    ("number", "workers"),
    [
        (signal.SIGINT, 1),
        pytest.param(signal.SIGTERM, 0, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, 1, marks=pytest.mark.slow),
    ],
)
def test_a_signal_ends_the_run_cleanly_and_shows_how_to_resume(
    tmp_path: Path, number: signal.Signals, workers: int
) -> None:
    config = project(tmp_path, examples=24, documents=24)
    line, out = (*ARGUMENTS, config, "--no-cache", "--out"), tmp_path / "out"
    leporello(*line, tmp_path / "expected", *HERE, status=1)
    process = _start(command(*line, out, "--workers", str(workers)), 0.15)
    until(lambda: stored(out) > 0)
    process.send_signal(number)
    _, output = process.communicate()
    assert process.returncode == 128 + number
    assert "stopping after the current read; interrupt again to stop at once" in output
    assert "ended early: interrupted; run the same command again to resume" in output
    assert stored(out)
    assert (out / "mine" / "lamps" / "predictions.jsonl").exists()
    leporello(*line, out, *HERE, status=1)
    same_bytes(out, tmp_path / "expected")


def test_a_second_ctrl_c_ends_the_run_at_once(tmp_path: Path) -> None:
    config = project(tmp_path, examples=40)
    process = _start(command(*ARGUMENTS, config, "--out", tmp_path / "out"), 600)
    until(began(tmp_path).exists)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    while "interrupt again to stop at once" not in process.stderr.readline():
        pass
    process.send_signal(signal.SIGINT)
    _, output = process.communicate()
    assert process.returncode == 130
    assert "interrupted; run the same command again to resume" in output


def test_a_second_process_on_one_run_names_the_first(tmp_path: Path) -> None:
    line = (*ARGUMENTS, project(tmp_path, examples=40), "--out", tmp_path / "out")
    with _start(command(*line), 600) as first:
        until((tmp_path / "out" / "run.yaml").exists)
        second = leporello(*line, status=2)
        first.kill()
    assert f"process {first.pid} on " in second.stderr
    assert "is running there; wait for it, or use another --out" in second.stderr


def test_results_that_do_not_fit_on_the_disk_are_written_later(tmp_path: Path) -> None:
    """Full stores are in tests/engine/test_store.py."""
    config = project(tmp_path, examples=120)
    expected, out = tmp_path / "expected", tmp_path / "out"
    arguments = (*ARGUMENTS, config, "--shard-examples", "10", *HERE)
    leporello(*arguments, "--out", expected, status=1)
    predictions = (expected / "mine" / "lamps" / "predictions.jsonl").stat().st_size
    size = predictions - 1024  # enough for each store
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        process = leporello(*arguments, "--out", out, "--no-cache", status=2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    message = "results cannot be written: File too large; the stores contain all"
    assert message in process.stderr
    leporello(*arguments, "--out", out, status=1)
    same_bytes(out, expected)
