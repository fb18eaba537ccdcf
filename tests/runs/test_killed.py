"""Runs that are killed, interrupted, crowded or out of room: nothing is lost, nothing doubled."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from command_line import command, leporello, until
from lamps import ARGUMENTS, PIPELINES, began, project, same_bytes, stored


def _start(config: Path, out: Path, *options: str, seconds: float = 0) -> subprocess.Popen[str]:
    """Starts a run of `mine`."""
    return _started(command(*ARGUMENTS, config, "--out", out, *options), seconds)


def _started(line: list[str], seconds: float) -> subprocess.Popen[str]:
    """Starts a run whose windows take some seconds each."""
    return subprocess.Popen(
        line,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env=os.environ | ({"LAMP_SECONDS": str(seconds)} if seconds else {}),
    )  # fmt: skip


def _workers(process: subprocess.Popen[str]) -> list[int]:
    """Returns the processes that a run has started."""
    try:
        return [
            *map(int, Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split())
        ]
    except (FileNotFoundError, ProcessLookupError):  # it has ended
        return []


def _finish_killed(line: list[str], out: Path, stride: int, moments: random.Random) -> int:
    """Runs a command and kills it again and again, until it is complete; returns how often.

    Args:
        line: Command.
        out: Its directory.
        stride: Batches and examples that are stored between kills, at most.
        moments: Chooses when, and whether the run or a worker.
    """
    kills, spare = 0, 2  # a third death of a worker would count as the plug-in's fault
    while True:
        with _started(line, seconds=0.003) as process:
            while process.poll() is None:
                goal = stored(out) + moments.randrange(stride)
                if moments.random() < 0.8:  # while it works; else while it starts, or whenever
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
            _, told = process.communicate()
        if all((out / name / "lamps" / "metrics.json").exists() for name in PIPELINES):
            return kills  # it had done all, and the same command would try again what failed
        if process.returncode != -signal.SIGKILL:
            assert process.returncode == 1, told  # some reads fail, always
            return kills


@pytest.mark.parametrize(
    ("kills", "per_run", "examples", "runs"),
    [(3, 3, 100, 2), pytest.param(50, 10, 300, 3, marks=pytest.mark.slow)],
)
def test_runs_killed_at_random_moments_end_with_the_same_bytes(
    tmp_path: Path, kills: int, per_run: int, examples: int, runs: int
) -> None:
    """SIGKILL of runs with 0, 1 and 2 workers: results are those of an uninterrupted run."""
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")  # noqa: T201 -- shown with a failure
    config, whole = project(tmp_path, examples=examples), tmp_path / "whole"
    arguments = ("run", *PIPELINES, "--config", config, "--shard-examples", "50")
    leporello(*arguments, "--out", whole, "--no-cache", status=1)
    moments, stride = random.Random(seed), 2 * stored(whole) // per_run
    done = run = 0
    while done < kills or run < runs:
        out = tmp_path / f"killed{run}"
        options = ["--workers", str(run % 3), *(["--no-cache"] if run % 2 else [])]
        done += _finish_killed(command(*arguments, "--out", out, *options), out, stride, moments)
        same_bytes(out, whole, *PIPELINES)
        run += 1


@pytest.mark.slow
def test_nothing_finished_is_read_again(tmp_path: Path) -> None:
    """After a kill only the window that was in flight is read twice."""
    log = tmp_path / "log.txt"
    config = project(tmp_path, examples=200, log=log)
    whole = tmp_path / "whole"
    leporello(*ARGUMENTS, config, "--out", whole, "--no-cache", status=1)
    wanted = Counter(log.read_text().splitlines())
    log.unlink()
    out = tmp_path / "out"
    with _start(config, out, "--no-cache", seconds=0.03) as process:
        until(lambda: stored(out) > 60)
        process.kill()
    leporello(*ARGUMENTS, config, "--out", out, "--no-cache", status=1)
    read = Counter(log.read_text().splitlines())
    assert not wanted - read
    assert (read - wanted).total() <= 32
    same_bytes(out, whole)


@pytest.mark.parametrize(
    ("number", "workers"),
    [
        (signal.SIGINT, 1),
        pytest.param(signal.SIGTERM, 0, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, 1, marks=pytest.mark.slow),
    ],
)
def test_a_signal_ends_the_run_cleanly_and_says_how_to_go_on(
    tmp_path: Path, number: signal.Signals, workers: int
) -> None:
    """Status 130, 143, 129; what was being read is kept; the same command goes on."""
    config = project(tmp_path, examples=60)
    leporello(*ARGUMENTS, config, "--out", tmp_path / "whole", "--no-cache", status=1)
    out = tmp_path / "out"
    process = _start(config, out, "--no-cache", "--workers", str(workers), seconds=0.15)
    until(lambda: stored(out) > 0)
    process.send_signal(number)
    _, told = process.communicate()
    assert process.returncode == 128 + number
    assert "ending after what is being read; once more ends at once" in told
    assert "ended early: interrupted; run the same command again to resume" in told
    assert stored(out)
    assert (out / "mine" / "lamps" / "predictions.jsonl").exists()
    leporello(*ARGUMENTS, config, "--out", out, "--no-cache", status=1)
    same_bytes(out, tmp_path / "whole")


def test_a_second_ctrl_c_ends_the_run_at_once(tmp_path: Path) -> None:
    """It does not wait for what is being read."""
    config = project(tmp_path, examples=40)
    process = _start(config, tmp_path / "out", seconds=600)
    until(began(tmp_path).exists)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    while "once more ends at once" not in process.stderr.readline():
        pass
    process.send_signal(signal.SIGINT)
    _, told = process.communicate()
    assert process.returncode == 130
    assert "interrupted; run the same command again to resume" in told


def test_a_second_process_on_one_run_says_who_holds_it(tmp_path: Path) -> None:
    """It stops with the first one's process id, host and time."""
    config = project(tmp_path, examples=40)
    out = tmp_path / "out"
    with _start(config, out, seconds=600) as first:
        until((out / "run.yaml").exists)
        done = leporello(*ARGUMENTS, config, "--out", out, status=2)
        assert f"process {first.pid} on " in done.stderr
        assert "is running there; wait for it, or give another --out" in done.stderr
        first.kill()


def _with_room(room: int, *line: object) -> str:
    """Runs a command none of whose files may grow beyond so many bytes; returns what it tells."""
    done = subprocess.run(
        command(*map(str, line)), check=False, capture_output=True, text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)),
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.parametrize("workers", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_full_disk_stops_the_run_with_a_message_and_nothing_is_lost(
    tmp_path: Path, workers: int
) -> None:
    """Whether stores or results find no room: with room it goes on to the same bytes."""
    config = project(tmp_path, examples=200)
    whole, out = tmp_path / "whole", tmp_path / "out"
    given = (*ARGUMENTS, config, "--shard-examples", "10")
    leporello(*given, "--out", whole, status=1)
    sizes = [path.stat().st_size for path in (whole / "journal").rglob("*.sqlite")]
    calls = (whole / "mine" / "lamps" / "calls.jsonl").stat().st_size
    assert len(sizes) > 1
    # The time of a commit decides whether a store takes a page more or less.
    assert max(sizes) + 8192 < calls - 1024
    line = (*given, "--out", out, "--no-cache", "--workers", workers)
    told = _with_room(min(sizes) - 8192, *line)
    assert (
        ".sqlite: cannot be written to: disk I/O error; what is finished is kept: make room" in told
    )
    assert stored(out) > 0
    told = _with_room(calls - 1024, *line)  # enough for each store
    assert "results cannot be written: File too large; the stores hold all" in told
    leporello(*given, "--out", out, status=1)
    same_bytes(out, whole)
