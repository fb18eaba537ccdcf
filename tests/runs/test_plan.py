"""Tests of `plan` and the cache commands: remaining work, and cache misses."""

import io
import json
import re
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from command_line import HERE, leporello, write_files

from leporello.cache.dependencies import installed_version, library_versions
from leporello.cache.store import Cache
from leporello.core.errors import UserError
from leporello.core.files import cache_directory
from leporello.jobs.jobs import prepare
from leporello.jobs.options import JobOptions
from leporello.runs.plan import PlannedJob, plan
from leporello.runs.run import run

PLUG_IN = """
from dataclasses import dataclass
from leporello import Output, Read

@dataclass(frozen=True)
class Counting:
    words: int = 5

    def read(self, inputs):
        return [Output(r.question, input_tokens=10, output_tokens=1) for r in inputs]

    def count(self, texts):
        return [len(text.split()) for text in texts]

    def render(self, read):
        return "one two three four five six seven eight nine ten"

    def fit(self, read):
        return len(read.passages)

@dataclass(frozen=True)
class Twice:
    def combine(self, example, hits):
        yield [Read((hit.chunk,), example.question) for hit in hits]
        [last] = yield [Read((hits[0].chunk,), "again")]
        return last.text
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Ten documents with three questions each, a plug-in reader, and a separate cache."""
    monkeypatch.setenv("LEPORELLO_CACHE", str(tmp_path / "cache"))
    rows: list[dict[str, Any]] = []
    for d in range(10):
        text = " ".join(f"word{n} of document{d}" for n in range(200))
        rows += [
            {"id": f"{d}-{q}", "document_id": f"d{d}", "question": f"word{q} of"} for q in "123"
        ]
        rows[-3]["document"] = text
    config = """
pipelines:
  mine:
    tasks: [rows]
    chunker: {class: FixedTokens, size: 50}
    retriever: {class: TfIdf, k: 2}
    reader: {class: "./plug.py:Counting"}
    combiner: {class: "./plug.py:Twice"}
tasks:
  rows: {class: JsonLines, path: rows.jsonl}
"""
    write_files(tmp_path, {"rows.jsonl": rows, "plug.py": PLUG_IN, "mine.yaml": config})
    return tmp_path / "mine.yaml"


def _plan(config: Path, *overrides: str, out: Path | None = None) -> list[PlannedJob]:
    jobs = prepare(JobOptions(["mine"], config=[config], overrides=overrides))
    return plan(jobs, out or config.parent / "out")


def test_each_point_of_a_sweep_is_planned(config: Path) -> None:
    """Two sizes times three k: six pipelines."""
    result = _plan(config, "chunker.size=20,50", "retriever.k=1,2,3")
    assert [job.documents for job in result] == [10] * 6


def test_calls_and_tokens_are_extrapolated(config: Path) -> None:
    """Before a run, from the first round of a sample; then from all rounds of finished examples."""
    [before] = _plan(config)
    assert (before.calls, before.tokens, before.at_least) == (60, 600, True)
    run(["mine"], config=[config], out=config.parent / "out", limit=6, workers=0)
    [after] = _plan(config)
    assert (after.done, after.calls, after.tokens, after.at_least) == (6, 72, 720, False)


def test_another_library_version_differs(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan lists it and the run is refused, unless no stage depends on the library."""
    out, real = config.parent / "out", metadata.version
    run(["mine"], config=[config], out=out, workers=0)
    numpy = f"libraries.numpy: {real('numpy')!r} -> '99'"
    for library, changes in (("torch", ()), ("numpy", (numpy,))):
        monkeypatch.setattr(metadata, "version", lambda n, x=library: "99" if n == x else real(n))
        installed_version.cache_clear()
        library_versions.cache_clear()
        assert _plan(config, out=out)[0].changed == changes
    with pytest.raises(UserError, match=re.escape(f"mine on rows: {numpy}")):
        run(["mine"], config=[config], out=out, workers=0)
    installed_version.cache_clear()
    library_versions.cache_clear()


def test_the_plan_is_printed_as_a_tree(config: Path) -> None:
    arguments = ("mine", "--config", config, "--out", config.parent / "out")
    output = leporello("plan", *arguments).stdout
    assert "FixedTokens(size=50" in output
    assert "at least 60 reads of 600 tokens" in output
    leporello("run", *HERE, *arguments)
    assert "nothing is left to do" in leporello("plan", *arguments).stdout


def test_the_cache_is_listed_and_cleared(config: Path) -> None:
    run(["mine"], config=[config], out=config.parent / "out", workers=0)
    listing = json.loads(leporello("cache", "ls", "--json").stdout)
    assert {kind: counts["entries"] for kind, counts in listing["kinds"].items()} == {
        "layouts": 1, "tokens": 10, "chunks": 10, "index": 10, "outputs": 3
    }  # fmt: skip
    assert "index" in leporello("cache", "ls").stdout
    size = sum(counts["bytes"] for counts in listing["kinds"].values())
    keep = ("cache", "gc", "--keep")
    assert "would remove" in leporello(*keep, "0GB", "--dry-run").stdout
    assert len(list(Cache(cache_directory()).entries())) == 34
    assert "such as 4GiB or 500MB" in leporello(*keep, "5", status=2).stderr
    leporello(*keep, f"{size / 2000}KB")
    sizes = [entry.size for entry in Cache(cache_directory()).entries()]
    assert 0 < sum(sizes) <= size / 2
    assert "removed" in leporello(*keep, "0B").stdout
    assert not list(Cache(cache_directory()).entries())
    result = run(["mine"], config=[config], out=config.parent / "again", workers=0)
    assert result.failures == 0
    assert "must be a size" in leporello(*keep, "much", status=2).stderr


@pytest.mark.parametrize(
    ("words", "answer", "remains"), [((), "n\n", True), ((), "y\n", False), (("--yes",), "", False)]
)
def test_gc_asks_on_a_terminal_before_it_removes_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str], answer: str, remains: bool
) -> None:
    entry = tmp_path / "entries" / "v1" / "index" / "ab" / "cd.safetensors"
    entry.parent.mkdir(parents=True)
    with entry.open("wb") as file:
        file.truncate(101_000_000)  # without using the disk
    terminal = io.StringIO(answer)
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", terminal)
    monkeypatch.setenv("LEPORELLO_CACHE", str(tmp_path))
    leporello("cache", "gc", "--keep", "1MB", *words, status=int(remains))
    assert entry.exists() == remains


SEEING = """
from dataclasses import dataclass
from leporello import Output

@dataclass(frozen=True)
class Seeing:
    def read(self, inputs):
        texts = []
        for read in inputs:
            document = read.passages[0].document
            texts.append(f"{document.sections[0].title} {document.text[-3:]} {read.choices}")
        return [Output(text) for text in texts]

    def count(self, texts):
        return [0 for _ in texts]
"""


@pytest.mark.parametrize(
    ("old", "new"), [("# One", "# Two"), ("end", "END"), ('"choices": ["a"]', '"choices": ["b"]')]
)
def test_outputs_belong_to_their_document(config: Path, tmp_path: Path, old: str, new: str) -> None:
    """A reader may see the headings, the text after the passage and the choices."""
    row = {"id": "a", "document_path": "text.md", "question": "q", "choices": ["a"]}
    text = "# One\nsome words\n\n# More\nend"
    write_files(tmp_path, {"plug.py": SEEING, "text.md": text, "rows.jsonl": [row]})
    config.write_text("""
pipelines:
  mine:
    tasks: [rows]
    chunker: {class: FixedTokens, size: 2}
    retriever: {class: First, k: 1}
    reader: {class: "./plug.py:Seeing"}
tasks:
  rows: {class: JsonLines, path: rows.jsonl}
""")
    outputs = []
    for name in ("one", "other"):
        result = run(["mine"], config=[config], out=tmp_path / name, workers=0)
        outputs += [prediction.prediction for prediction in result.predictions("mine", "rows")]
        for file in ("text.md", "rows.jsonl"):
            path = tmp_path / file
            path.write_text(path.read_text().replace(old, new))
    assert outputs[0] != outputs[1]


def test_outputs_of_a_divided_batch_are_not_cached(config: Path, tmp_path: Path) -> None:
    """A reader that ran out of memory may return different outputs from one that did not."""
    (tmp_path / "plug.py").write_text("""
from dataclasses import dataclass
from pathlib import Path
from leporello import Output

@dataclass(frozen=True)
class Narrow:
    mark: str

    def read(self, inputs):
        if len(inputs) > 4 and Path(self.mark).exists():
            raise MemoryError("too many")
        return [Output(f"one of {len(inputs)}") for _ in inputs]

    def count(self, texts):
        return [0 for _ in texts]
""")
    mark = tmp_path / "mark"
    mark.touch()
    text = config.read_text().replace('"./plug.py:Counting"', f'"./plug.py:Narrow", mark: "{mark}"')
    config.write_text(text.replace('combiner: {class: "./plug.py:Twice"}', ""))
    for name in ("narrow", "wide"):
        result = run(["mine"], config=[config], out=tmp_path / name, workers=0)
        first = next(result.predictions("mine", "rows")).prediction
        assert first == ("one of 3" if name == "narrow" else "one of 30")
        mark.unlink(missing_ok=True)
