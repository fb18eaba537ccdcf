"""Runs that are killed, interrupted, crowded or out of room: nothing is lost, nothing doubled."""

from __future__ import annotations

import random
import resource
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
from command_line import command, leporello, read_lines
from lamps import ARGUMENTS, journal, project, same_bytes


def _start(config: Path, out: Path, *options: str) -> subprocess.Popen[str]:
    line = command(*ARGUMENTS, config, "--out", out, *options)
    return subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def _kill_until_done(config: Path, out: Path, moments: random.Random, options: list[str]) -> int:
    """Kills the run at random moments until it is complete; returns how often."""
    kills = 0
    while True:
        process = _start(config, out, *options)
        before = _size(journal(out))
        if moments.random() < 0.7:  # while it reads; else while it starts, too
            while _size(journal(out)) == before and process.poll() is None:
                time.sleep(0.005)
        try:
            process.wait(timeout=moments.uniform(0.0, 0.7))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            kills += 1
            process.communicate()
            if (out / "mine" / "lamps" / ".told").exists():  # it had done all; only its end was cut
                return kills
            continue
        assert process.returncode == 1, process.communicate()[1]  # some reads fail, always
        return kills


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _killed(folder: Path, kills: int, seed: int) -> None:
    config = project(folder, examples=600, seconds=0.01)
    whole = folder / "whole"
    leporello(*ARGUMENTS, config, "--out", whole, "--no-cache", status=1)
    moments = random.Random(seed)
    done = run = 0
    while done < kills:
        out = folder / f"killed{run}"
        workers = ["--workers", str(run % 3)]
        cache = [] if run % 2 else ["--no-cache"]
        done += _kill_until_done(config, out, moments, [*workers, *cache])
        same_bytes(out, whole)
        run += 1


def test_a_run_killed_at_fifteen_random_moments_ends_with_thesame_bytes(tmp_path: Path) -> None:
    """SIGKILL again and again: every derived file is that of an uninterrupted run."""
    _killed(tmp_path, kills=15, seed=random.SystemRandom().randrange(10**6))


@pytest.mark.slow
def test_a_run_killed_at_a_hundred_random_moments_ends_with_thesame_bytes(tmp_path: Path) -> None:
    """The same, oftener."""
    _killed(tmp_path, kills=100, seed=random.SystemRandom().randrange(10**6))


def test_nothing_finished_is_read_again(tmp_path: Path) -> None:
    """After a kill only the window that was in flight is read twice."""
    log = tmp_path / "log.txt"
    config = project(tmp_path, examples=200, seconds=0.03, log=log)
    whole = tmp_path / "whole"
    leporello(*ARGUMENTS, config, "--out", whole, "--no-cache", status=1)
    wanted = Counter(log.read_text().splitlines())
    log.unlink()
    out = tmp_path / "out"
    process = _start(config, out, "--no-cache")
    while not journal(out).exists() or journal(out).stat().st_size < 60_000:
        time.sleep(0.01)
    process.kill()
    process.communicate()
    leporello(*ARGUMENTS, config, "--out", out, "--no-cache", status=1)
    read = Counter(log.read_text().splitlines())
    assert not wanted - read
    assert (read - wanted).total() <= 32
    same_bytes(out, whole)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_cleanly_and_says_how_to_go_on(
    tmp_path: Path, number: signal.Signals
) -> None:
    """Status 130; what was being read is finished and kept; the same command goes on."""
    config = project(tmp_path, examples=60, seconds=0.15)
    leporello(*ARGUMENTS, config, "--out", tmp_path / "whole", "--no-cache", status=1)
    out = tmp_path / "out"
    process = _start(config, out, "--no-cache")
    while not journal(out).exists():
        time.sleep(0.02)
    process.send_signal(number)
    _, told = process.communicate()
    assert process.returncode == 130
    assert "ending after what is being read; once more ends at once" in told
    assert "ended early: interrupted; the same command goes on from here" in told
    assert journal(out).read_bytes().endswith(b"\n")
    assert (out / "mine" / "lamps" / "predictions.jsonl").exists()
    kept = journal(out).read_bytes()
    leporello(*ARGUMENTS, config, "--out", out, "--no-cache", status=1)
    assert journal(out).read_bytes().startswith(kept)
    same_bytes(out, tmp_path / "whole")


def test_a_second_ctrl_c_ends_the_run_at_once(tmp_path: Path) -> None:
    """It does not wait for what is being read."""
    config = project(tmp_path, examples=300, seconds=60)
    process = _start(config, tmp_path / "out")
    while not (tmp_path / "out" / "manifest.json").exists():
        time.sleep(0.02)
    time.sleep(1)
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted; the same command goes on from here" in told


def test_a_second_process_on_one_run_says_who_holds_it(tmp_path: Path) -> None:
    """It stops with the first one's process id, host and time."""
    config = project(tmp_path, examples=40, seconds=3)
    out = tmp_path / "out"
    with _start(config, out) as first:
        while not (out / "run.yaml").exists():
            time.sleep(0.05)
        done = leporello(*ARGUMENTS, config, "--out", out, status=2)
        assert f"process {first.pid} on " in done.stderr
        assert "is running there; wait for it, or give another --out" in done.stderr
        first.kill()


def test_a_full_disk_stops_the_run_with_a_message_and_nothing_is_lost(tmp_path: Path) -> None:
    """No file may grow beyond a limit: the run stops, and with room goes on to the same bytes."""
    config = project(tmp_path, examples=200, seconds=0.0)
    whole, out = tmp_path / "whole", tmp_path / "out"
    leporello(*ARGUMENTS, config, "--out", whole, status=1)
    room = journal(whole).stat().st_size * 2 // 3
    done = subprocess.run(
        command(*ARGUMENTS, config, "--out", out, "--no-cache"), check=False,
        capture_output=True, text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)),
    )  # fmt: skip
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "cannot be written to: File too large; what is finished is kept" in done.stderr
    kept = journal(out).read_bytes()
    assert kept.endswith(b"\n")
    assert len(read_lines(journal(out))) > 10
    leporello(*ARGUMENTS, config, "--out", out, status=1)
    assert journal(out).read_bytes().startswith(kept)
    same_bytes(out, whole)


def test_two_runs_share_one_cache_at_the_same_time(tmp_path: Path) -> None:
    """Both end as if they were alone."""
    config = project(tmp_path, examples=200, seconds=0.0)
    leporello(*ARGUMENTS, config, "--out", tmp_path / "whole", "--no-cache", status=1)
    runs = [tmp_path / name for name in ("one", "other")]
    for process in [_start(config, out) for out in runs]:
        process.communicate()
        assert process.returncode == 1
    for out in runs:
        same_bytes(out, tmp_path / "whole")
