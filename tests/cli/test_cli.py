"""The command line in real processes with real files, and its exit statuses."""

import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import HERE, leporello, read_lines, write_files
from rich.console import Console

from leporello.cli.display.tables import show_table
from leporello.config.reference.catalogue import KINDS_OF_THINGS

LONGEST = """
from dataclasses import dataclass
from leporello import Hit

@dataclass(frozen=True)
class Longest:
    k: int = 5

    def retrieve(self, questions, chunks):
        longest = sorted(chunks, key=lambda c: c.start - c.end)[: self.k]
        return [[Hit(c, len(c.text)) for c in longest] for _ in questions]
"""


CONFIG = """
pipelines:
  mine:
    tasks: [lamps]
    chunker: {class: FixedTokens, size: 30}
    retriever: {class: "./plug.py:Longest", k: 2}
    reader: {class: BestSentence}
tasks:
  lamps: {class: JsonLines, path: lamps.jsonl, metrics: [f1, recall]}
"""


def _project(folder: Path) -> Path:
    questions = [
        {"id": f"q{n}", "document_id": f"d{n % 4}", "question": f"Where is lamp {n}?",
         "references": [f"in house {n}"], "evidence": [f"Lamp {n} hangs in house {n}."]}
        for n in range(12)
    ]  # fmt: skip

    for d in range(4):
        lamps = [n for n in range(12) if n % 4 == d]
        rain = "Rain falls on the street. " * 30
        lines = [f"Lamp {n} hangs in house {n}. {rain}" for n in lamps]
        questions[d]["document"] = "\n\n".join(lines)
    write_files(folder, {"lamps.jsonl": questions, "plug.py": LONGEST, "mine.yaml": CONFIG})
    return folder / "mine.yaml"


def test_the_readmes_retriever_runs_from_a_file_outside_the_project(tmp_path: Path) -> None:
    config = _project(tmp_path)
    out = tmp_path / "out"
    process = leporello(
        "run", *HERE, "mine", "--config", config, "--set", "retriever.k=1,2", "--out", out
    )
    assert re.search(r"^ pipeline +retriever k", process.stdout, re.MULTILINE)
    assert re.search(r"^ mine +2 ", process.stdout, re.MULTILINE)
    rows = read_lines(out / "mine@retriever.k=2" / "lamps" / "predictions.jsonl")
    assert len(rows) == 12
    assert all(len(row["hits"]) == 2 for row in rows)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "lead", "--split", "test"], "task 'sample' (Sample) has no splits"),
        (["run", "lead", "--out", "/proc/nowhere"], "/proc/nowhere: cannot be created"),
        (["run", "lead", "--limit", "0"], "'--limit': must be greater than or equal to 1"),
        (["run", "--executor", "x"], "'--executor': 'x' is not one of 'local', 'ray'"),
        (["run", "ask-smollm2", "--set", "reader.model=/x"], "line: ask-smollm2.reader: model"),
        (["explain", "absent", "q0"], "absent: is not a run"),
        (["score", "absent.jsonl", "--task", "sample"], "absent.jsonl: there is no such file"),
        (["list", "chunker"], "'chunker' is not a list or an entry; did you mean 'chunkers'"),
        (["ask", ".", "*.md", "Why?"], "*.md: a pattern begins with its folder"),
        (["serve", "README.md", "--port", "65536"], "'--port': must be less than or equal to"),
        (["list", "nonsense"], "'nonsense' is not a list or an entry; lists: pipelines, tasks,"),
        (["run", "nonsense"], "no pipeline 'nonsense'; `list pipelines` prints all"),
        (["plan", "lead", "--task", "x"], "there is no task 'x'"),
        (["rnu"], "No such command 'rnu'"),
        (["run", "lead", "--set", "retreiver.k=3"], "did you mean 'retriever'"),
    ],
)
def test_mistakes_end_with_status_2(tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "README.md").write_text("A text.", encoding="utf-8")
    process = leporello(*arguments, status=2, folder=tmp_path)
    assert message in " ".join(process.stderr.split()).replace("│ ", "")
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]


def test_a_run_without_limit_continues_a_limited_run(tmp_path: Path) -> None:
    config = _project(tmp_path)
    command = ("run", *HERE, "mine", "--config", config, "--json")
    limited = json.loads(leporello(*command, "--limit", "5", folder=tmp_path).stdout)
    [analysed] = json.loads(leporello("analyze", limited["directory"], "--json").stdout)
    assert analysed["missing"] == 0
    assert analysed["predictions"]["count"] == 5
    complete = json.loads(leporello(*command, folder=tmp_path).stdout)
    assert limited["directory"] == complete["directory"]
    assert [r["results"][0]["examples"] for r in (limited, complete)] == [5, 12]
    timings = json.loads(
        (Path(complete["directory"]) / "mine" / "lamps" / "timings.json").read_text("utf-8")
    )
    assert timings["examples"] == 12


def test_a_file_that_a_command_did_not_write_is_not_replaced(tmp_path: Path) -> None:
    config, out, folder = _project(tmp_path), tmp_path / "out", tmp_path / "files"
    leporello("run", *HERE, "mine", "--config", config, "--out", out)
    write_files(folder, {"fields.yaml": "fields: {lamp: text}", "text.txt": "The lamp is blue."})
    extract = ("extract", folder / "text.txt", "--schema", folder / "fields.yaml")
    export = ("export", out, "--format")
    for file, line in {
        "page.html": ("report", out, "--out", folder / "page.html"),
        "table.csv": (*extract, "--out", folder / "table.csv"),
        "lamps.parquet": (*export, "parquet", "--out", folder),
        "mine/lamps.run": (*export, "trec", "--out", folder),
    }.items():
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text("years of work")
        assert "is another file: move it" in leporello(*line, status=2).stderr
        assert (folder / file).read_text() == "years of work"
        (folder / file).unlink()
        for _ in range(2):
            leporello(*line)
    tune = ("tune", "mine", "--config", config, "--set", "chunker.size=20,30", "--budget", "10m")
    before = config.read_text()
    assert "is another file" in leporello(*tune, "--out", config, status=2).stderr
    assert config.read_text() == before


def test_the_recall_of_what_was_read_comes_before_that_of_hits(tmp_path: Path) -> None:
    """A baseline that selects everything, but reads the beginning only, has a recall of 100."""
    config, out = _project(tmp_path), tmp_path / "out"
    printed = leporello("run", *HERE, "lead", "--config", config, "--task", "lamps", "--out", out)
    compared = leporello("compare", out, "--format", "csv").stdout
    assert re.search(r"f1 +recall read +recall +recall whole", printed.stdout)
    rows = {row["score"]: float(row["value"]) for row in csv.DictReader(compared.splitlines())}
    assert [*rows] == ["f1", "recall_read", "recall"]
    assert rows["recall_read"] < rows["recall"] == 100


def test_check_reads_the_documents_files(tmp_path: Path) -> None:
    config = _project(tmp_path)
    assert "no errors: 1 pipeline, 1 task\n" in leporello("check", "--config", config).stdout
    write_files(tmp_path, {"lamps.jsonl": [{"id": "a", "document_path": "a.txt"}]})
    error = leporello("check", "--config", config, status=2).stderr
    assert "lamps.jsonl:1: document_path:" in error
    assert "a.txt: there is no such file" in error
    config.write_text(config.read_text().replace("lamps.jsonl", "gone.jsonl") + "pipes: {}\n")
    error = leporello("check", "--config", config, status=2).stderr
    assert "unknown key 'pipes'; did you mean 'pipelines'" in error
    assert "gone.jsonl: there is no such file" in error


def test_check_reports_the_faults_of_a_file_that_cannot_be_parsed_once(tmp_path: Path) -> None:
    """They are found in the config, and again when its tasks are read."""
    config = tmp_path / "own.yaml"
    config.write_text("pipelines:\n  p: {reader: {class: Lead}, reader: {class: Lead}}\n")
    error = leporello("check", "--config", config, status=2).stderr
    assert error.count("key 'reader' is given twice") == 1


def test_score_computes_the_scores_of_the_run(tmp_path: Path) -> None:
    config = _project(tmp_path)
    out = tmp_path / "out"
    leporello("run", *HERE, "mine", "--config", config, "--out", out)
    folder = out / "mine" / "lamps"
    expected = json.loads((folder / "metrics.json").read_text("utf-8"))["scores"]
    options = ("--task", "lamps", "--config", config)
    process = leporello("score", folder / "predictions.jsonl", *options, "--json")
    assert json.loads(process.stdout)["scores"] == expected
    plain = {row["id"]: row["prediction"] for row in read_lines(folder / "predictions.jsonl")}
    (tmp_path / "plain.json").write_text(json.dumps(plain), encoding="utf-8")
    process = leporello("score", tmp_path / "plain.json", *options, "--json")
    assert "recall" in expected  # computed from hits, which a JSON object of texts lacks
    assert json.loads(process.stdout)["scores"] == {"f1": expected["f1"]}
    del plain["q3"]
    (tmp_path / "plain.json").write_text(json.dumps({**plain, "zz": ""}), encoding="utf-8")
    process = leporello("score", tmp_path / "plain.json", *options, status=2)
    message = "missing ids of the task: 1 (q3); ids that are not the task's: 1 (zz"
    assert f"{message})" in process.stderr
    rows = (folder / "predictions.jsonl").read_text("utf-8").replace('"q3"', '"zz"', 1)
    (tmp_path / "rows.jsonl").write_text(rows, encoding="utf-8")
    process = leporello("score", tmp_path / "rows.jsonl", *options, status=2)
    line = [json.loads(row)["id"] for row in rows.splitlines()].index("zz") + 1
    assert f"{message} on line {line})" in process.stderr
    (tmp_path / "rows.jsonl").write_text('{"id": [], "prediction": "3"}', encoding="utf-8")
    process = leporello("score", tmp_path / "rows.jsonl", *options, status=2)
    assert "rows.jsonl:1: a row must have `id`, a text or a number, and" in process.stderr


def test_score_reports_faulty_references(tmp_path: Path) -> None:
    rows = [{"id": i, "document": "d", "question": "q", "references": [i]} for i in ("A", "none")]
    config = "tasks: {rows: {class: JsonLines, path: rows.jsonl, metrics: [option_letter]}}"
    answers = [{"A": "A", "none": "B"}]
    write_files(tmp_path, {"rows.jsonl": rows, "own.yaml": config, "given.json": answers})
    arguments = ("score", "given.json", "--task", "rows", "--config", "own.yaml")
    process = leporello(*arguments, folder=tmp_path, status=2)
    assert "the gold is faulty: GoldError: example 'none'" in process.stdout
    assert "100.00" in process.stdout


def test_list_and_schema_print_json() -> None:
    lists = json.loads(leporello("list", "--json").stdout)
    assert set(lists) == {*KINDS_OF_THINGS} > {"pipelines", "tasks", "chunkers", "metrics"}
    assert (
        "BM25(k: int > 0 = 10, k1: float >= 0 = 1.5, b: float >= 0 <= 1 = 0.75)"
        in lists["retrievers"]
    )
    schema = json.loads(leporello("schema").stdout)
    classes = [
        option["properties"]["class"].get("const")
        for option in schema["$defs"]["chunker"]["anyOf"]
        if "properties" in option
    ]
    assert "FixedTokens" in classes


def test_ask_answers_from_a_file_with_sections(tmp_path: Path) -> None:
    fact, filler = "The lighthouse keeper keeps a tame heron.", "Rain falls on the harbour. " * 50
    path = tmp_path / "file.md"
    path.write_text(f"# One\n\n{filler}\n\n# Two\n\n{fact}\n\n{filler}", encoding="utf-8")
    ask = ("ask", path, "Who keeps a tame heron?", "--pipeline", "best-sentence")
    answer = json.loads(leporello(*ask, "--json").stdout)
    assert fact in answer["answer"]
    [passage] = [p for p in answer["passages"] if fact in p["text"]]
    assert passage["span"]["end"] - passage["span"]["start"] == len(passage["text"])
    assert "Two" in passage["place"]
    assert answer["coverage"]["read"] > 0
    assert "unselected" in leporello(*ask).stdout


@pytest.mark.slow
def test_a_language_model_answers(tmp_path: Path) -> None:
    args = ("run", "ask-smollm2", *HERE, "--limit", "3", "--show", "1", "--out")
    for name in ("one", "other"):
        process = leporello(*args, tmp_path / name)
        assert "ask-smollm2" in process.stdout
    predictions = Path("ask-smollm2", "sample", "predictions.jsonl")
    first, second = ((tmp_path / name / predictions).read_bytes() for name in ("one", "other"))
    assert first == second
    assert all(row["prediction"] for row in read_lines(tmp_path / "one" / predictions))


def test_a_command_without_arguments_shows_three_to_begin_with() -> None:
    assert 'ask FILE "QUESTION"' in leporello().stdout
    shown = leporello("--help").stdout
    assert [group for group in ("Ask:", "Experiment:", "Inspect:", "Share:") if group in shown] == [
        "Ask:", "Experiment:", "Inspect:", "Share:"
    ]  # fmt: skip


def test_list_fits_a_screen_and_finds_more() -> None:
    lines = leporello("list").stdout.splitlines()
    assert len(lines) < 40
    assert "shuffle-gpt2" in leporello("list", "--search", "GPT-2 medium").stdout
    offline = leporello("list", "--offline").stdout
    assert "  best-sentence " in offline
    assert "  ask-flan-t5 " not in offline
    assert "retriever: {class: BM25, k: 4," in leporello("list", "best-sentence").stdout
    assert "tasks:\n  scrolls/qasper: {class: Scrolls" in leporello("list", "scrolls/qasper").stdout
    assert "no entry contains 'zzz'" in leporello("list", "--search", "zzz", status=2).stderr


def test_no_cell_of_a_table_is_folded_in_a_narrow_terminal() -> None:
    headers = ["pipeline", "chunker size", *(f"metric number {n}" for n in range(6))]
    rows = [["p" * 30, "50", *["73.28 [59.7, 86.2]"] * 6], ["q" * 30, "100", *["0.00"] * 6]]
    file = io.StringIO()
    show_table(Console(file=file, width=80, force_terminal=True), "Scores", headers, rows, labels=2)
    lines = re.sub(r"\x1b\[[\d;]*m", "", file.getvalue()).splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert sum(line.split().count("[59.7,") for line in lines) == 6
    assert [line.split()[0] for line in lines if "0.00" in line] == ["#2"] * 2
    assert f"#2  {'q' * 30}  chunker size 100" in lines


def test_without_a_terminal_a_table_is_as_wide_as_its_cells() -> None:
    file = io.StringIO()
    show_table(Console(file=file, width=20), "", ["name", *"abcd"], [["x", *["1" * 12] * 4]])
    assert "1" * 12 in file.getvalue()


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("Exception during initialization: std::bad_alloc", "there is not enough memory"),
        ("can't start new thread", "there is not enough memory"),
        ("a bug", "Traceback"),
    ],
)
def test_missing_memory_ends_a_command_without_a_traceback(text: str, printed: str) -> None:
    """Libraries in C++ and threads report it by another error than MemoryError."""
    code = f"import leporello.cli as c\ndef application(_): raise RuntimeError({text!r})\n"
    code += "c.application = application\nc.main()"
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert printed in result.stderr
    assert ("Traceback" in result.stderr) == (printed == "Traceback")
