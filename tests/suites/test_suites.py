"""Tests of suites: papers' tables with rows of small, real runs."""

import csv
import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from command_line import HERE, leporello
from row_files import reseal, write_rows

from leporello.api import load_pipelines, run
from leporello.config import Config
from leporello.config.built_in import built_in_names
from leporello.config.metrics import metrics_of
from leporello.config.suite_files import suite_named
from leporello.config.suites import Suite
from leporello.core.errors import ConfigError, UserError
from leporello.core.table import csv_of, html, latex, markdown
from leporello.core.yaml.tree import read_tree
from leporello.suites import check_published, published_of, suite_tables
from leporello.suites.layout import records, text_tables
from leporello.suites.rows import TableRow
from leporello.suites.tables import SuiteTable

PAPER = """\
paper: Author 2020, A benchmark
source: https://example.org/paper
tables:
  results:
    title: Table 2, test set
    columns: {short: [F1], long: [R1, R2, RL], average: [Avg]}
    rows:
      - name: Naive
        numbers: {short: [10.0], long: [8.0, 1.0, 1.0], average: [6.0]}
        quote: "Naive 10.0 8.0/1.0/1.0 6.0"
      - name: Big
        numbers: {short: [50.0]}
        quote: "Big 50.0 -"
  lengths:
    title: Table 3, lengths
    columns: {words: [mean]}
    rows: [{name: short, numbers: {words: [17]}, quote: "short 17"}]
"""
CONFIG = """\
pipelines:
  first: {extends: lead}
  rewritten: {extends: lead}
tasks:
  tiny/short: {class: JsonLines, path: "short.{split}.jsonl", split: validation, metrics: [f1]}
  tiny/long:
    {class: JsonLines, path: "long.{split}.jsonl", split: validation, metrics: [rouge_scrolls]}
suites:
  tiny:
    published: ./paper.yaml
    average: mean
    columns:
      short: {score: f1, examples: 4}
      long: {score: rouge_scrolls, shown: [rouge1, rouge2, rougeL], examples: 4}
    rows:
      naive: {published: Naive, pipelines: {short: first, long: lead}}
"""

# Further scores of metrics.
PARTS = {
    "rouge_scrolls": ("rouge1", "rouge2", "rougeL"),
    "longbench_v2": ("easy", "hard", "short", "medium", "long"),
    "loogle": ("loogle_bleu1", "loogle_bleu4", "loogle_rouge1"),
    "bleu_coco": ("bleu_1", "bleu_2", "bleu_3", "bleu_4"),
    "shuffle_accuracy": ("accuracy",),
    "loogle_cloze": ("loogle_cloze_partial",),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with four examples per task and split, and runs for the suite's row."""
    folder = tmp_path_factory.mktemp("suite")
    (folder / "paper.yaml").write_text(PAPER, encoding="utf-8")
    (folder / "own.yaml").write_text(CONFIG, encoding="utf-8")
    for task in ("short", "long"):
        for split in ("test", "validation"):
            rows = [
                {"id": f"{n}", "document": f"one two {n} four five", "references": [f"two {n}"],
                 "question": "?"}
                for n in range(4)
            ]  # fmt: skip
            write_rows(folder / f"{task}.{split}.jsonl", *rows)
    config = [folder / "own.yaml"]
    run([], config=config, suite="tiny", out=folder / "runs" / "whole", workers=0)
    short, out = ["tiny/short"], folder / "runs" / "lead"
    run(["lead"], short, config=config, suite="tiny", out=out, workers=0)
    return folder


def here(*words: str | Path) -> str:
    return leporello(*words).stdout


def tiny(folder: Path) -> Suite:
    return suite_named("tiny", [folder / "own.yaml"])


def rows_of(table: SuiteTable) -> dict[str, TableRow]:
    return {row.name: row for row in table.rows}


def average_of(row: TableRow) -> float | None:
    """Returns the average that was computed, or that the paper states."""
    entry = row.entries.get("average")
    if entry and entry.entering is None and len(entry.numbers) == 1:
        return entry.numbers[0]
    return entry.entering if entry else None


def tables_of(folder: Path, runs: Sequence[Path]) -> list[SuiteTable]:
    return suite_tables(tiny(folder), runs, files=[folder / "own.yaml"])


def test_our_rows_follow_published_ones(home: Path) -> None:
    [table] = tables_of(home, [home / "runs" / "whole"])
    assert [(row.name, row.ours) for row in table.rows] == [
        ("Naive", False), ("naive", True), ("Big", False),
    ]  # fmt: skip
    our_row = rows_of(table)["naive"]
    short, long = our_row.entries["short"], our_row.entries["long"]
    assert {cell.job.pipeline for cell in short.cells if cell} == {"first"}
    assert all(e.whole and e.cells[0] and e.cells[0].job.split == "test" for e in (short, long))
    assert len(long.numbers) == 3
    assert average_of(our_row) == pytest.approx(((short.entering or 0) + (long.entering or 0)) / 2)
    metrics = json.loads((home / "runs/whole/lead/tiny/long/metrics.json").read_text())
    assert long.entering == metrics["scores"]["rouge_scrolls"]
    assert table.notes == ()
    main, cells = text_tables(table)
    assert main.headers == ("row", "from", "short F1", "long R1/R2/RL", "average")
    assert main.rows[0] == ("Naive", "paper", "10.0", "8.0/1.0/1.0", "6.0")
    assert main.rows[2][1:] == ("published only", "50.0", "–", "–")
    [published, *_] = tables_of(home, [])
    assert [row[:2] for row in text_tables(published)[0].rows] == [
        ("Naive", "naive"), ("Big", "published only"),
    ]  # fmt: skip
    assert cells.rows[0][:6] == ("naive", "Lead", "short", "4", "4", "test")
    assert re.fullmatch(r"f1 \d+\.\d\d \[\d+\.\d, \d+\.\d\]", cells.rows[0][6])


@pytest.mark.parametrize(
    ("setting", "name", "reader"),
    [
        ("reader.words=1", "naive [changed: reader.words=1]", "Lead"),
        ("combiner={class: Stuff, order: document}", "naive [changed: combiner.order=document]",
         "Lead"),
        ("reader.class=BestSentence", "naive [BestSentence]", "BestSentence"),
    ],
)  # fmt: skip
def test_a_changed_pipeline_does_not_keep_the_name_of_a_row(
    home: Path, tmp_path: Path, setting: str, name: str, reader: str
) -> None:
    out = tmp_path / "changed"
    words = ("--suite", "tiny", "--task", "tiny/short", "--set", setting, *HERE)
    printed = leporello("run", "first", "--config", home / "own.yaml", "--out", out, *words)
    assert f" {reader} " in printed.stdout
    [table] = tables_of(home, [home / "runs" / "whole", out])
    assert [row.name for row in table.rows] == ["Naive", "naive", name, "Big"]
    [record] = [r for r in records([table]) if r["row"] == name and r["column"] == "short"]
    assert record["reader"] == reader
    assert f" {reader} " in here("compare", out, "--format", "markdown")


def test_a_mean_with_a_missing_column_is_not_computed(home: Path) -> None:
    third = "      third: {score: f1, task: tiny/short}\n"
    config = CONFIG.replace("    rows:\n", f"{third}    rows:\n")
    paper = PAPER.replace("columns: {short", "columns: {third: [F1], short")
    paper = paper.replace("{short: [10.0]", "{third: [3.0], short: [10.0]")
    (home / "less.yaml").write_text(config.replace("./paper", "./less-paper"), encoding="utf-8")
    (home / "less-paper.yaml").write_text(paper, encoding="utf-8")
    suite = suite_named("tiny", [home / "less.yaml"])
    [table] = suite_tables(suite, [home / "runs" / "whole"], files=[home / "less.yaml"])
    rows = rows_of(table)
    assert average_of(rows["naive"]) is None
    assert average_of(rows["Naive"]) == 6
    assert "naive: no average: third missing" in table.notes


def test_other_splits_limits_and_rewritten_answers_are_named(home: Path, tmp_path: Path) -> None:
    config = [home / "own.yaml"]
    options: dict[str, Any] = {"config": config, "suite": "tiny", "workers": 0}
    run(["rewritten"], ["tiny/short"], split="validation", out=tmp_path / "a", **options)
    run(["rewritten"], ["tiny/long"], limit=2, out=tmp_path / "b", **options)
    path = tmp_path / "b" / "rewritten" / "tiny" / "long" / "metrics.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"normalised": True}))
    reseal(path.parent)
    [table] = tables_of(home, [tmp_path])
    row = rows_of(table)["rewritten"]
    assert average_of(row) is None
    assert not row.entries["short"].whole
    assert not row.entries["long"].whole
    assert "rewritten: no average: splits differ or are incomplete" in table.notes
    assert "rewritten: scores are unofficial: answers were normalised" in table.notes
    assert text_tables(table)[0].rows[-1][2].endswith("*")
    assert {cells[3] for cells in text_tables(table)[1].rows} == {"4*", "2*"}


@pytest.mark.parametrize(
    ("old", "new", "limit", "whole"),
    [
        ("examples: 4}", "examples: 5}", None, False),
        (", examples: 4}", "}", None, True),
        (", examples: 4}", "}", 9, True),
        (", examples: 4}", "}", 2, False),
    ],
)
def test_a_complete_run_of_the_published_files_is_complete(
    home: Path, tmp_path: Path, *, old: str, new: str, limit: int | None, whole: bool
) -> None:
    for file in home.glob("*.jsonl"):
        shutil.copy(file, tmp_path)
    config = [tmp_path / "own.yaml"]
    config[0].write_text(CONFIG.replace(old, new, 1), encoding="utf-8")
    (tmp_path / "paper.yaml").write_text(PAPER, encoding="utf-8")
    task, out = ["tiny/short"], tmp_path / "run"
    run(["naive"], task, config=config, suite="tiny", out=out, workers=0, limit=limit)
    [table] = suite_tables(suite_named("tiny", config), [out], files=config)
    assert rows_of(table)["naive"].entries["short"].whole == whole


def test_examples_without_a_reference_are_in_no_mean(home: Path, tmp_path: Path) -> None:
    config = [home / "own.yaml"]
    run(["naive"], ["tiny/short"], config=config, suite="tiny", out=tmp_path / "run", workers=0)
    path = tmp_path / "run" / "first" / "tiny" / "short" / "statistics.jsonl"
    first, *others = path.read_text(encoding="utf-8").splitlines(keepends=True)
    row = json.loads(first)
    row["statistics"] = dict.fromkeys(row["statistics"])
    path.write_text(json.dumps(row) + "\n" + "".join(others), encoding="utf-8")
    reseal(path.parent)
    [table] = tables_of(home, [tmp_path])
    assert not rows_of(table)["naive"].entries["short"].whole
    [note] = [note for note in table.notes if "1 of 4 examples have no usable reference" in note]
    assert str(tmp_path) in note


def test_two_runs_for_one_cell_are_refused(home: Path, tmp_path: Path) -> None:
    shutil.copytree(home / "runs" / "lead", tmp_path / "copy")
    with pytest.raises(UserError, match=r"the same cell.*\n.*runs/lead\n.*copy"):
        tables_of(home, [home / "runs", tmp_path])
    [table] = tables_of(home, [home / "runs", home / "runs" / "lead"])
    assert [row.name for row in table.rows if row.ours] == ["naive", "lead"]
    with pytest.raises(UserError, match=r"has no finished examples of scrolls/gov_report, "):
        suite_tables(suite_named("scrolls"), [home / "runs"])
    with pytest.raises(UserError, match="is not a run"):
        tables_of(home, [tmp_path / "none"])


def test_jobs_that_other_runs_finished_are_not_run_again(
    home: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.copytree(home / "runs", tmp_path / "runs")
    config, out = [home / "own.yaml"], tmp_path / "runs" / "more"
    with caplog.at_level("INFO", logger="leporello"):
        ran = run(["lead"], config=config, suite="tiny", out=out, workers=0)
    assert [result.task for result in ran.results] == []
    assert "lead on tiny/short is finished in" in caplog.text
    ran = run(["rewritten", "lead"], ["*/short"], config=config, suite="tiny", out=out, workers=0)
    assert [(result.pipeline, result.task) for result in ran.results] == [
        ("rewritten", "tiny/short")
    ]
    with pytest.raises(UserError, match="suite 'tiny' has no row 'naiv', and no pipeline"):
        run(["naiv"], config=config, suite="tiny", workers=0)
    with pytest.raises(UserError, match="suite 'tiny' has none of these tasks"):
        run(["naive"], ["*/shrt"], config=config, suite="tiny", workers=0)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("score: f1, ", "", "suites.tiny.columns.short.score: is missing"),
        ("average: mean", "avrage: mean", "suites.tiny: unknown key 'avrage'; did you mean"),
        ("published: Naive", "published: Naiv", "suites.tiny.rows.naive.published: paper.yaml"
         " has no row 'Naiv'; did you mean 'Naive'"),
        ("shown: [rouge1, ", "shown: [", "suites.tiny.columns.long: shows 2 scores where the"
         " paper has R1/R2/RL"),
        ("average: mean", "table: resluts", "suites.tiny.table:"),
        ("short: {score: f1", "short: {score: citations", "suites.tiny.columns.short: citations is"
         " an opinion of a reader and cannot be averaged"),
    ],
)  # fmt: skip
def test_a_faulty_suite_is_named_by_its_line(home: Path, old: str, new: str, message: str) -> None:
    assert old in CONFIG
    path = home / "faulty.yaml"
    path.write_text(CONFIG.replace(old, new), encoding="utf-8")
    with pytest.raises(ConfigError) as error:
        check_published(load_pipelines([path]).suites)
    line = CONFIG[: CONFIG.index(old)].count("\n") + 1
    assert f"{path}:{line}: {message}" in str(error.value)


def test_a_suite_without_an_average_may_have_opinions(home: Path) -> None:
    text = CONFIG.replace("average: mean", "average: none").replace("score: f1", "score: judge")
    path = home / "judged.yaml"
    path.write_text(text.replace("    published: ./paper.yaml\n", ""), encoding="utf-8")
    assert load_pipelines([path]).suites["tiny"].columns["short"].score == "judge"


def test_a_faulty_data_file_is_reported_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(CONFIG, encoding="utf-8")
    for old, new, message in (
        ("{short: [50.0]}", "{shrt: [50.0]}", "unknown column 'shrt'; did you mean 'short'"),
        ("{short: [50.0]}", "{short: [50.0, 1]}", "Big: short has 2 numbers for 1 labels"),
        ('quote: "Big 50.0 -"', "", "quote: is missing"),
    ):
        (tmp_path / "paper.yaml").write_text(PAPER.replace(old, new), encoding="utf-8")
        with pytest.raises(ConfigError, match=rf"paper\.yaml:11: .*{re.escape(message)}"):
            published_of(tiny(tmp_path))


@pytest.fixture(scope="module")
def built_in() -> Config:
    return load_pipelines([])


@pytest.mark.parametrize("name", built_in_names()["suites"])
def test_a_built_in_suite_is_complete(name: str, built_in: Config) -> None:
    suite = built_in.suites[name]
    for column in suite.columns.values():
        for task, score in column.parts:
            spec = built_in.tasks_named([task])[0]
            metrics = metrics_of(spec.metrics_of(spec.spec.build()))
            names = {name for metric in metrics.values() for name in (metric.name, metric.headline)}
            names |= {part for name in metrics for part in PARTS.get(name, ())}
            assert score.partition("[")[0] in {"", *names}, (task, score)
    published = published_of(suite)
    assert {name for row in suite.rows.values() for name in row.published} <= {
        row.name for table in published.tables.values() for row in table.rows
    }
    tables = suite_tables(suite)
    assert [table.name for table in tables] == ([*published.tables] or ["results"])
    texts = [text for table in tables for text in text_tables(table)]
    for write, end in ((markdown, "\n"), (latex, "\n"), (html, "<tr>")):
        assert sum(write(text).count(end) for text in texts) >= sum(len(t.rows) for t in tables)
    rows = records(tables)
    assert len(csv_of(rows).splitlines()) == bool(rows) + len(rows)
    for shown in tables if suite.average == "mean" else ():
        for row in shown.rows:
            columns = [column for column in suite.columns if column in tables[0].columns]
            values = [row.entries[c].entering for c in columns if c in row.entries]
            average = average_of(row)
            if average is not None and len(values) == len(columns):
                mean = sum(value or 0 for value in values) / len(values)
                assert average == pytest.approx(mean, abs=0.06), row.name


SIZED = """\
suites:
  sized:
    split: train
    by: {length: {none: 0, some: 400}}
    columns:
      qa1: {task: babilong/qa1, score: babilong_accuracy, examples: 2}
      qa2: {task: babilong/qa2, score: babilong_accuracy, examples: 2}
    groups: {results: {average: [none, some, some]}}
    rows: {offline: {pipelines: lead}}
"""


def test_means_of_groups_need_all_their_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "sized.yaml"
    path.write_text(SIZED, encoding="utf-8")
    monkeypatch.setenv("LEPORELLO_DATA", str(tmp_path))
    (tmp_path / "babilong").mkdir()
    for n in (1, 2):
        story = "1 Ina ran to the hall.\n" + "2 Where is Ina?\thall\t1\n" * 2
        (tmp_path / f"babilong/qa{n}_facts_train.txt").write_text(story)
    suite = suite_named("sized", [path])
    for name, task in (("a", "babilong/*"), ("b", "babilong/qa2@length=0")):
        tasks = [f"{task}{',' if '@' in task else '@'}samples=2"]
        out = tmp_path / name / "run"
        run([], tasks, config=[path], suite="sized", out=out, workers=0)
    [table] = suite_tables(suite, [tmp_path / "a"], files=[path])
    [row] = table.rows
    means = {name: entry.entering or 0 for name, entry in row.entries.items()}
    assert [*table.columns] == [*means] == ["none", "some", "average"]
    parts = [row.parts[f"qa{n}@length=400"].entering or 0 for n in (1, 2)]
    assert means["some"] == sum(parts) / 2
    assert average_of(row) == pytest.approx((means["none"] + 2 * means["some"]) / 3)
    assert table.notes == ("lead: run with samples=2",)
    assert [r[2] for r in text_tables(table)[1].rows] == [*suite.columns]
    assert {r["column"] for r in records([table])} == {*suite.columns, *means}
    [table] = suite_tables(suite, [tmp_path / "b"], files=[path])
    assert table.rows[0].entries == {}
    assert "offline: no none: qa1@length=0 missing" in table.notes
    assert "offline: no average: none, some missing" in table.notes
    for old, new, message in (
        ("{length:", "{lenght:", "suites.sized.by.qa1@lenght=0: .* did you mean 'length'"),
        ("some, some]", "somme, some]", "average: there is no column 'somme'; did you mean 'some'"),
    ):
        path.write_text(SIZED.replace(old, new), encoding="utf-8")
        with pytest.raises(ConfigError, match=rf"sized\.yaml:\d+: .*{message}"):
            load_pipelines([path])


def test_a_table_is_printed_in_every_format(home: Path) -> None:
    options = ("--config", home / "own.yaml")
    text = leporello("table", "tiny", home / "runs" / "whole", *options).stdout
    assert "long R1/R2/RL" in text
    table = ("table", "tiny", home / "runs" / "whole", *options, "--format")
    assert "| Naive | paper | 10.0 |" in here(*table, "markdown")
    assert "\\toprule" in here(*table, "latex")
    assert "<td>8.0/1.0/1.0</td>" in here(*table, "html")
    rows = json.loads(here(*table, "json"))["rows"]
    assert {row["row"] for row in rows} == {"Naive", "naive", "Big"}
    [record] = [r for r in rows if r["from"] == "ours" and r["column"] == "short"]
    assert (record["examples"], record["split"], record["whole_test_set"]) == (4, "test", True)
    assert record["low"] <= record["value"] <= record["high"]
    parsed = [*csv.DictReader(here(*table, "csv").splitlines())]
    assert [row["row"] for row in parsed] == [row["row"] for row in rows]


def test_a_suite_is_checked_listed_and_run(home: Path, tmp_path: Path) -> None:
    options = ("--config", home / "own.yaml")
    assert "no errors" in here("check", *options)
    assert "columns: short, long; rows: naive" in here("list", "suites", *options)
    out = ("--out", tmp_path / "out")
    ran = leporello("run", "--suite", "tiny", "naive", *options, *out, *HERE).stdout
    assert "57.14" in ran
    assert "first" in here("plan", "--suite", "tiny", "naive", *options, *out)


PUBLISHED = Path(__file__).parents[2] / "leporello" / "suites" / "published"
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


def quoted(quote: str) -> list[float]:
    plain = re.sub(r"(?<=\d),(?=\d{3})", "", quote).replace("*e", "e")
    return [float(number) for number in _NUMBER.findall(plain)]


@pytest.mark.parametrize("file", sorted(PUBLISHED.glob("*.yaml")), ids=lambda file: file.stem)
def test_numbers_are_in_their_quotes_in_order(file: Path) -> None:
    published: Any = read_tree(file).plain()
    assert published["paper"]
    assert published["source"].startswith("https://")
    for name, table in published["tables"].items():
        assert table["title"], name
        names = [row["name"] for row in table["rows"]]
        assert len({*names}) == len(names) > 0, name
        for row in table["rows"]:
            remaining = iter(quoted(row["quote"]))
            for column, numbers in row["numbers"].items():
                assert len(numbers) == len(table["columns"][column]), (name, row["name"], column)
                for number in numbers:
                    is_quoted = number is None or number in remaining  # `in` advances the iterator
                    assert is_quoted, (name, row["name"], column, number)


def test_rulers_averages_follow_from_its_columns() -> None:
    """The mean of a row's numbers is the paper's average, except for rounding."""
    published: Any = read_tree(PUBLISHED / "ruler.yaml").plain()
    for row in published["tables"]["results"]["rows"]:
        numbers = {k: v[0] for k, v in row["numbers"].items() if not k.startswith("wavg")}
        if stated := numbers.pop("average", None):
            assert sum(numbers.values()) / len(numbers) == pytest.approx(stated, abs=0.07)
