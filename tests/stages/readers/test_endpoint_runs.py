"""Runs with the reader Endpoint: usage, budgets, keys, and ZeroSCROLLS from file to submission."""

from __future__ import annotations

import csv
import gc
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from command_line import ROOT, leporello, read_lines
from endpoint_server import (
    SECRET,
    Request,
    endpoint,
    project,
    reads,
    reply,
    running,
)
from official_rows import zero_scrolls_row

from leporello.analysis.export.submission import leaderboard_named, submit
from leporello.api import run
from leporello.core.errors import UserError
from leporello.core.secrets import redact
from leporello.engine.results.serialization import calls_from_row
from leporello.readers import Endpoint
from leporello.readers.endpoint.responses import EndpointError

HERE = ("--workers", "0")  # starting processes takes longer than these runs


# Usage and budgets


@pytest.mark.parametrize(
    "usage", [..., None, [], {}, {"prompt_tokens": -1}, {"prompt_tokens": "9"}]
)
def test_usage_that_is_missing_is_counted_here(usage: object) -> None:
    """With the tokenizer, so that a budget holds also where the server tells nothing."""
    with running(lambda request: reply(request, "two words", usage=usage)) as server:
        reader = endpoint(server, budget_tokens=30)
        [output] = reader.read(reads("one two three four"))
        assert output.input_tokens == 6 + 32
        assert output.output_tokens == 3
        with pytest.raises(UserError, match="38 tokens to read and 3 to write"):
            reader.read(reads("more"))


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("LEPORELLO_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.usefixtures("own_cache")
def test_a_run_whose_budget_is_spent_goes_on(tmp_path: Path) -> None:
    """It stops with status 2 and says so; no answer is lost, and none is bought twice."""
    with running(reply) as server:
        config = project(tmp_path, server, "budget_tokens: 300", examples=40)
        arguments = (
            "run",
            "mine",
            "--config",
            config,
            "--out",
            tmp_path / "out",
            "--no-cache",
            *HERE,
        )
        stopped = leporello(*arguments, status=2)
        assert 25 <= len(server.requests) <= 32
        answers = len(server.requests)
        leporello(*arguments)
        assert set(server.prompts().values()) == {1}
        assert len(server.requests) == 40
    said = " ".join(stopped.stderr.split())
    assert "budget_tokens (300) is spent: " in said
    counts = re.search(r"is spent: (\d+) answers took (\d+) tokens to read", said)
    assert counts is not None
    assert 25 <= int(counts[1]) <= answers  # what was under way came back afterwards
    assert int(counts[2]) == 10 * int(counts[1])
    assert "the same command goes on" in said
    rows = read_lines(tmp_path / "out" / "mine" / "rows" / "predictions.jsonl")
    assert [row["prediction"] for row in rows] == [
        f"WHAT IS {number}? TEXT {number}" for number in range(40)
    ]


def test_the_points_of_a_sweep_share_a_budget() -> None:
    """As long as one of them lives; a run that is started again in one process begins anew."""
    with running(reply) as server:
        one, other = (
            endpoint(server, budget_tokens=12),
            endpoint(server, budget_tokens=12, sampling_seed=1),
        )
        one.read(reads("a"))
        with pytest.raises(UserError, match="is spent"):
            other.read(reads("b"))
        elsewhere = Endpoint(server.base_url, "other", prompt="{context}", budget_tokens=12)
        elsewhere.read(reads("b"))
        gc.disable()
        try:
            del one, other
            endpoint(server, budget_tokens=12, sampling_seed=1).read(reads("b"))
        finally:
            gc.enable()


@pytest.mark.usefixtures("own_cache")
def test_usage_is_recorded_with_each_example(tmp_path: Path) -> None:
    """In calls.jsonl, as the server counts, with its price; a run from the cache asks nothing."""
    with running(reply) as server:
        config = project(tmp_path, server, "input_price: 0.4\n      output_price: 1.6")
        for out in ("one", "two"):
            run(["mine"], config=[config], out=tmp_path / out, workers=0)
            rows = read_lines(tmp_path / out / "mine" / "rows" / "calls.jsonl")
            outputs = [calls_from_row(row["calls"])[0]["output"] for row in rows]
            assert {output["input_tokens"] for output in outputs} == {10}
            assert {output["output_tokens"] for output in outputs} == {2}
            assert {output["dollars"] for output in outputs} == {7.2e-06}
        assert len(server.requests) == 10


# Keys


def files_with_the_key(folder: Path) -> list[Path]:
    """Returns the files in a folder that hold the key."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if SECRET.encode() in path.read_bytes()]


@pytest.mark.usefixtures("own_cache")
def test_no_key_is_told_to_anyone_but_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in the run, the cache, the log or on the terminal, though the server repeats it."""
    monkeypatch.setenv("MY_KEY", SECRET)

    def loud(request: Request) -> None:
        key = request.headers["authorization"]
        if "What is 3?" in request.prompt:
            request.fail(400, {"message": f"not with {key} {json.dumps(key)} {key!r}"})
        elif "What is 4?" in request.prompt:
            request.send(f"<p>{key}</p>".encode(), kind="text/html")
        elif "What is 5?" in request.prompt:
            request.fail(500, {"message": f"{key} broke"})
        else:
            reply(request, f"it is {key}")

    with running(loud) as server:
        config = project(tmp_path, server, "api_key: $MY_KEY\n      retries: 0")
        out = tmp_path / "out"
        done = leporello("run", "mine", "--config", config, "--out", out, *HERE, status=1)
    results = out / "mine" / "rows"
    assert "it is Bearer $MY_KEY" in (results / "predictions.jsonl").read_text()
    failures = (results / "failures.jsonl").read_text()
    assert failures.count("Bearer $MY_KEY") == 5
    assert SECRET not in done.stdout + done.stderr
    assert files_with_the_key(tmp_path) == []
    assert any(path.is_file() for path in (tmp_path / "cache").rglob("*"))


def test_a_key_given_in_python_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its repr and what it complains of have a name for it; an exception holds no request."""
    monkeypatch.setattr("leporello.core.secrets._forms", {})
    with running(lambda request: request.fail(400, {"message": str(request.headers)})) as server:
        reader = endpoint(server, api_key=SECRET)
        assert SECRET not in repr(reader)
        with pytest.raises(EndpointError) as caught:
            reader.read(reads("a"))
        assert server.requests[0].headers["authorization"] == f"Bearer {SECRET}"
    assert "'authorization': 'Bearer $api_key'" in str(caught.value)
    assert caught.value.__context__ is caught.value.__cause__ is None
    assert redact(SECRET) == "$api_key"


def test_keys_that_cannot_be_are_the_users_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are not sent, and not repeated; white space around one is left out."""
    monkeypatch.setenv("MY_KEY", f" {SECRET}\n")
    with running(reply) as server:
        endpoint(server, api_key="$MY_KEY").read(reads("a"))
        assert server.requests[0].headers["authorization"] == f"Bearer {SECRET}"
        for wrong in (f"{SECRET}\nX-Evil: 1", "clé"):
            with pytest.raises(UserError, match="characters that no key has"):
                endpoint(server, api_key=wrong).read(reads("a"))
        with pytest.raises(UserError, match="UNSET_KEY is not set"):
            endpoint(server, api_key="$UNSET_KEY").read(reads("a"))
        assert len(server.requests) == 1


# ZeroSCROLLS, from file to submission

SUITE, BOARD = leaderboard_named("zero_scrolls")
SCORES = {task: SUITE.columns[task].score for task in BOARD.tasks}
SUMMARIES = ("gov_report", "summ_screen_fd", "qmsum", "squality")
SEPARATOR = "... [The rest of the text is omitted]\n\n"
STORY = "The miller had three sons, a mill, a donkey and a cat. "
ENDPOINT = ("run", "zero-scrolls-endpoint", "--task", "zero_scrolls/*", "--split", "test")


def official_row(name: str, sentences: int) -> dict[str, Any]:
    """Returns a row of the test split: no gold, and offsets of document and query."""
    before = f"Read about {name}.\n\nText:\n"
    inner = [len(before), len(before) + len(STORY)]
    return zero_scrolls_row(
        f"{name}-{sentences}", before=before, text=STORY * sentences, query="Who had the cat?",
        output=None, truncation_seperator=SEPARATOR, inner_docs_start_indices=inner,
    )  # fmt: skip


@pytest.fixture
def official(tmp_path: Path) -> Path:
    """A data directory with a zip a task, each with a short row and a long one."""
    folder = tmp_path / "data" / "zero_scrolls"
    folder.mkdir(parents=True)
    for name in SCORES:
        rows = [json.dumps(official_row(name, sentences)) + "\n" for sentences in (2, 100)]
        with zipfile.ZipFile(folder / f"{name}.zip", "w") as archive:
            archive.writestr(f"{name}/test.jsonl", "".join(rows))
    return folder.parent


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    """The file of docs/baselines.md that makes the tasks those for chat models."""
    guide = (ROOT / "docs" / "baselines.md").read_text(encoding="utf-8")
    [block] = re.findall(r"```yaml\n(# chat\.yaml\n.*?)```", guide, re.DOTALL)
    path = tmp_path / "chat.yaml"
    path.write_text(block, encoding="utf-8")
    return path


@pytest.mark.usefixtures("own_cache")
def test_zero_scrolls_goes_from_its_files_to_a_submission(
    official: Path, chat: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The named pipeline sends the authors' prompts for chat models, cut as they cut them."""
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    with running(lambda request: reply(request, "the youngest")) as server:
        settings = (f"reader.base_url={server.base_url}", "reader.max_input_tokens=400")
        flags = [flag for setting in settings for flag in ("--set", setting)]
        arguments = ("--config", chat, "--data", official, "--out", tmp_path / "out", *HERE)
        leporello(*ENDPOINT, *arguments, *flags)
        request = {one.prompt: one for one in server.requests}
    assert len(request) == len(server.requests) == 20
    assert {one.headers["authorization"] for one in server.requests} == {f"Bearer {SECRET}"}
    for name in SCORES:
        told = "" if name in SUMMARIES else " Do not provide any explanation."
        before, query = f"Read about {name}.{told}\n\nText:\n", "Question:\nWho had the cat?"
        assert f"{before}{STORY * 2}\n\n{query}" in request
        [cut] = [prompt for prompt in request if prompt.startswith(before) and SEPARATOR in prompt]
        document = cut.removeprefix(before).removesuffix(SEPARATOR + query)
        assert (STORY * 100).startswith(document)
        assert 15 * len(STORY) < len(document) < 25 * len(STORY)
    rows = read_lines(tmp_path / "out/zero-scrolls-endpoint/zero_scrolls/qasper/predictions.jsonl")
    assert [row["prediction"] for row in rows] == ["the youngest"] * 2
    monkeypatch.setenv("LEPORELLO_DATA", str(official))
    submit([tmp_path / "out"], "zero_scrolls", tmp_path / "submission.csv")
    with (tmp_path / "submission.csv").open(encoding="utf-8", newline="") as file:
        given = [(row["Task"], row["ID"], row["Prediction"]) for row in csv.DictReader(file)]
    assert list(dict.fromkeys(task for task, _, _ in given)) == list(SCORES)
    assert [row for row in given if row[0] == "qasper"] == [
        ("qasper", "qasper-2", "the youngest"),
        ("qasper", "qasper-100", "the youngest"),
    ]
    assert files_with_the_key(tmp_path) == []
