"""Every row of the papers' tables runs: official files, and tiny models of the same families."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from command_line import HERE, leporello, read_lines
from endpoint_server import reply, running
from paper_world import learned_rows, write_files, write_pipelines

from leporello.config.suite_files import suite_named
from leporello.suites import suite_tables

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with the official files in `data`."""
    folder = tmp_path_factory.mktemp("papers")
    write_files(folder / "data")
    return folder


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Runs a server that answers every prompt, and yields its address."""
    with running(lambda request: reply(request, "boots")) as server:
        yield server.base_url


@pytest.mark.parametrize(
    ("name", "official"),
    [
        ("muld", False),
        ("scrolls", True),
        ("zero_scrolls", True),
        ("shuffle_test", True),
        pytest.param("muld", True, marks=pytest.mark.slow),
    ],
)
def test_rows_run_on_each_column(name: str, world: Path, server: str, *, official: bool) -> None:
    suite, folder = suite_named(name), world / f"{name}-{official}"
    folder.mkdir()
    configs = [write_pipelines(folder, suite, server, official=official)]
    options = ("--data", world / "data", "--config", configs[0])
    rows = [*suite.rows]
    for row in learned_rows(suite):
        trained = leporello("train", row, "--suite", name, *options, "--out", folder / row)
        words = trained.stdout.split()  # the command that runs the row
        configs += [Path(b) for a, b in pairwise(words) if a == "--config" and b != str(configs[0])]
        rows[rows.index(row)] = f"{row}-trained"
    suite, out = suite_named(name, configs), folder / "run"
    more = [word for config in configs[1:] for word in ("--config", config)]
    leporello("run", "--suite", name, *rows, *HERE, *options, *more, "--out", out)
    table, *_ = suite_tables(suite, [out], files=configs)
    entries = {row.name: row.parts for row in table.rows if row.ours}
    for row in rows:
        for column, pipeline in suite.pipelines(row).items():
            task = suite.columns[column].task
            file, *_ = sorted(out.glob(f"{pipeline}/{task}*/predictions.jsonl"))
            answers = read_lines(file)
            assert answers, (pipeline, task)
            assert not [answer for answer in answers if "error" in answer], (pipeline, task)
            if official and column in entries[row]:  # other tables have the other columns
                assert None not in entries[row][column].numbers, (row, column)
    assert entries.keys() == {*rows}
