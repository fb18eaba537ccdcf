"""Tests of runs with the reader Endpoint: usage, budgets, keys, and a ZeroSCROLLS submission."""

import gc
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from command_line import HERE, leporello, read_lines
from endpoint_server import SECRET, Request, endpoint, project, reads, reply, running
from official_rows import zero_scrolls_row

from leporello.analysis.export.submission import leaderboard_named, submit
from leporello.api import load_pipelines, run
from leporello.core.errors import UserError
from leporello.core.secrets import redact
from leporello.jobs.directory import RunDirectory
from leporello.jobs.files import JobFiles
from leporello.readers import Endpoint
from leporello.readers.endpoint.responses import EndpointError


@pytest.mark.parametrize(
    "usage", [..., None, [], {}, {"prompt_tokens": -1}, {"prompt_tokens": "9"}]
)
def test_missing_usage_is_estimated(usage: object) -> None:
    """Therefore a budget also works with servers that return no usage."""
    with running(lambda request: reply(request, "two words", usage=usage)) as server:
        reader = endpoint(server, budget_tokens=30)
        [output] = reader.read(reads("one two three four"))
        assert output.input_tokens == 6 + 32
        assert output.output_tokens == 3
        with pytest.raises(UserError, match="38 input tokens and 3 output tokens"):
            reader.read(reads("more"))


@pytest.mark.usefixtures("own_cache")
def test_a_run_stops_when_its_budget_is_spent_and_can_be_resumed(tmp_path: Path) -> None:
    with running(reply) as server:
        config = project(tmp_path, server, "budget_tokens: 300", examples=40)
        files = ("--config", config, "--out", tmp_path / "out")
        arguments = ("run", "mine", *files, "--no-cache", *HERE)
        stopped = leporello(*arguments, status=2)
        assert 25 <= len(server.requests) <= 32
        answers = len(server.requests)
        leporello(*arguments)
        assert set(server.prompts.values()) == {1}
        assert len(server.requests) == 40
    message = " ".join(stopped.stderr.split())
    assert "budget_tokens (300) is spent: " in message
    counts = re.search(r"is spent: (\d+) answers took (\d+) input tokens", message)
    assert counts is not None
    assert 25 <= int(counts[1]) <= answers  # requests under way were answered later
    assert int(counts[2]) == 10 * int(counts[1])
    assert "run the same command again to resume" in message
    rows = read_lines(tmp_path / "out" / "mine" / "rows" / "predictions.jsonl")
    assert [row["prediction"] for row in rows] == [f"WHAT IS {n}? TEXT {n}" for n in range(40)]


def test_the_points_of_a_sweep_share_a_budget() -> None:
    """The budget ends with the last reader, so that a later run in this process has a new one."""
    with running(reply) as server:
        first = endpoint(server, budget_tokens=12)
        second = endpoint(server, budget_tokens=12, options={"seed": 1})
        first.read(reads("a"))
        with pytest.raises(UserError, match="is spent"):
            second.read(reads("b"))
        elsewhere = Endpoint(server.base_url, "other", prompt="{context}", budget_tokens=12)
        elsewhere.read(reads("b"))
        gc.disable()
        try:
            del first, second
            endpoint(server, budget_tokens=12, options={"seed": 1}).read(reads("b"))
        finally:
            gc.enable()


@pytest.mark.usefixtures("own_cache")
def test_calls_contain_usage_and_price(tmp_path: Path) -> None:
    with running(reply) as server:
        config = project(tmp_path, server, "input_price: 0.4\n      output_price: 1.6")
        for out in ("one", "two"):
            run(["mine"], config=[config], out=tmp_path / out, workers=0)
            for row in JobFiles(RunDirectory(tmp_path / out), "mine", "rows").examples():
                output = row.calls[0]["output"]
                assert (output["input_tokens"], output["output_tokens"]) == (10, 2)
                assert output["dollars"] == 7.2e-06
        assert len(server.requests) == 10


def files_with_the_key(folder: Path) -> list[Path]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if SECRET.encode() in path.read_bytes()]


@pytest.mark.usefixtures("own_cache")
def test_only_the_server_receives_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
        process = leporello("run", "mine", "--config", config, "--out", out, *HERE, status=1)
    results = out / "mine" / "rows"
    assert "it is Bearer $MY_KEY" in (results / "predictions.jsonl").read_text()
    failures = (results / "failures.jsonl").read_text()
    assert failures.count("Bearer $MY_KEY") == 5
    assert SECRET not in process.stdout + process.stderr
    assert files_with_the_key(tmp_path) == []
    assert any(path.is_file() for path in (tmp_path / "cache").rglob("*"))


def test_a_key_from_python_is_redacted(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_invalid_keys_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", f" {SECRET}\n")
    with running(reply) as server:
        endpoint(server, api_key="$MY_KEY").read(reads("a"))
        assert server.requests[0].headers["authorization"] == f"Bearer {SECRET}"
        for invalid in (f"{SECRET}\nX-Evil: 1", "clé"):
            with pytest.raises(UserError, match="the key has invalid characters"):
                endpoint(server, api_key=invalid).read(reads("a"))
        with pytest.raises(UserError, match="UNSET_KEY is not set"):
            endpoint(server, api_key="$UNSET_KEY").read(reads("a"))
        assert len(server.requests) == 1


SUITE, BOARD = leaderboard_named("zero_scrolls")
SCORES = {task: SUITE.columns[task].score for task in BOARD.tasks}
SUMMARIES = ("gov_report", "summ_screen_fd", "qmsum", "squality")
SEPARATOR = "... [The rest of the text is omitted]\n\n"
STORY = "The miller had three sons, a mill, a donkey and a cat. "
# Room for the answers in the authors' `experiments/api/api.py`.
RESERVES = {
    "gov_report": 1024, "summ_screen_fd": 512, "qmsum": 512, "squality": 512, "qasper": 128,
    "narrative_qa": 64, "quality": 10, "musique": 32, "space_digest": 36, "book_sum_sort": 256,
}  # fmt: skip
BUDGETS = {"davinci": 4096, "chatgpt": 4096, "gpt-4": 8192, "claude": 8000, "claude-4096": 4096}


def official_row(name: str, sentences: int) -> dict[str, Any]:
    """Returns a row of the test split, which has no reference."""
    before = f"Read about {name}.\n\nText:\n"
    inner = [len(before), len(before) + len(STORY)]
    return zero_scrolls_row(
        f"{name}-{sentences}", before=before, text=STORY * sentences, query="Who had the cat?",
        output=None, truncation_seperator=SEPARATOR, inner_docs_start_indices=inner,
    )  # fmt: skip


@pytest.fixture
def official(tmp_path: Path) -> Path:
    """Data directory with one ZIP file per task, which contains a short and a long row."""
    folder = tmp_path / "data" / "zero_scrolls"
    folder.mkdir(parents=True)
    for name in SCORES:
        rows = [json.dumps(official_row(name, sentences)) + "\n" for sentences in (2, 100)]
        with zipfile.ZipFile(folder / f"{name}.zip", "w") as archive:
            archive.writestr(f"{name}/test.jsonl", "".join(rows))
    return folder.parent


@pytest.mark.usefixtures("own_cache")
def test_zero_scrolls_runs_from_its_files_to_a_submission(
    official: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row ChatGPT sends the authors' prompts for chat models, cut in the same way."""
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    with running(lambda request: reply(request, "the youngest")) as server:
        settings = (f"reader.base_url={server.base_url}", "reader.max_input_tokens=400")
        flags = [flag for setting in settings for flag in ("--set", setting)]
        row = ("run", "--suite", "zero_scrolls", "chatgpt", "--data", official)
        leporello(*row, "--out", tmp_path / "out", *HERE, *flags)
        prompts = {request.prompt: request.body for request in server.requests}
    assert len(prompts) == len(server.requests) == 20
    assert {r.headers["authorization"] for r in server.requests} == {f"Bearer {SECRET}"}
    for name in SCORES:
        suffix = "" if name in SUMMARIES else " Do not provide any explanation."
        before, query = f"Read about {name}.{suffix}\n\nText:\n", "Question:\nWho had the cat?"
        complete = prompts[f"{before}{STORY * 2}\n\n{query}"]
        assert (complete["max_tokens"], complete["model"]) == (RESERVES[name], "gpt-3.5-turbo")
        [cut] = [prompt for prompt in prompts if prompt.startswith(before) and SEPARATOR in prompt]
        document = cut.removeprefix(before).removesuffix(SEPARATOR + query)
        assert (STORY * 100).startswith(document)
        assert 15 * len(STORY) < len(document) < 25 * len(STORY)
    monkeypatch.setenv("LEPORELLO_DATA", str(official))
    submit([tmp_path / "out"], "zero_scrolls", tmp_path / "submission.csv")
    lines = (tmp_path / "submission.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 1 + 20
    assert [line for line in lines if line.startswith("qasper,")] == [
        "qasper,qasper-2,the youngest", "qasper,qasper-100,the youngest",
    ]  # fmt: skip
    assert files_with_the_key(tmp_path) == []


def test_models_behind_an_api_leave_the_authors_room_for_answers() -> None:
    """Prompt and answer together have the tokens of the paper, and the tasks are its variants."""
    config = load_pipelines([])
    for row, budget in BUDGETS.items():
        assert SUITE.rows[row].published
        for task, pipeline in SUITE.pipelines(row).items():
            [point] = config.pipelines[pipeline]
            reader = point.stages["reader"].params
            assert reader["max_new_tokens"] == RESERVES[task]
            assert reader["max_input_tokens"] + reader["max_new_tokens"] == budget
            assert point.tasks == (f"zero_scrolls/{task}",)
    chat, claude = "chat=true", "chat=claude"
    assert [SUITE.rows[row].settings for row in BUDGETS] == ["", chat, chat, claude, claude]
