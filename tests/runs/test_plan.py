"""`plan` and the verbs of the cache: what is shared, kept and left, and why something was not."""

from __future__ import annotations

import json
import re
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from command_line import HERE, leporello, write_files

from leporello.analysis.cache_misses import why
from leporello.cache.dependencies import _version, library_versions
from leporello.cache.store import Cache
from leporello.core.errors import UserError
from leporello.jobs.jobs import prepare
from leporello.jobs.options import JobOptions
from leporello.models.locate import cache_directory
from leporello.runs.plan import RunPlan, plan
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
    """Ten documents of three questions, a plug-in reader, and a cache of the test's own."""
    monkeypatch.setenv("LEPORELLO_CACHE", str(tmp_path / "cache"))
    rows: list[dict[str, Any]] = []
    for d in range(10):
        text = " ".join(f"word{n} of document{d}" for n in range(200))
        rows += [{"id": f"{d}-{q}", "document_id": f"d{d}", "question": f"word{q}"} for q in "123"]
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


def _plan(config: Path, *overrides: str, out: Path | None = None) -> RunPlan:
    jobs = prepare(JobOptions(["mine"], config=[config], overrides=overrides))
    return plan(jobs, out or config.parent / "out")


def test_what_pipelines_share_stands_once_in_the_plan(config: Path) -> None:
    """Two sizes times three k: two ways to divide, two indexes, six pipelines."""
    found = _plan(config, "chunker.size=20,50", "retriever.k=1,2,3")
    assert [(step.kind, step.needed, len(step.pipelines)) for step in found.steps] == [
        ("chunks", 10, 3), ("index", 10, 3), ("chunks", 10, 3), ("index", 10, 3)
    ]  # fmt: skip
    assert len({job.steps for job in found.jobs}) == 2
    assert [job.documents for job in found.jobs] == [10] * 6


def test_the_plan_tells_what_is_kept(config: Path) -> None:
    """After a run in another directory all is kept; with another size, the index is to be made."""
    run(["mine"], config=[config], out=config.parent / "elsewhere", workers=0)
    assert [(step.needed, step.kept) for step in _plan(config).steps] == [(10, 10), (10, 10)]
    other = _plan(config, "chunker.size=20", out=config.parent / "more")
    assert other.steps[0].kept < 10  # what the plan itself has tried is kept


def test_calls_and_tokens_are_told_by_a_sample_and_then_by_what_was_read(config: Path) -> None:
    """At first as far as the first round, afterwards with all rounds."""
    [before] = _plan(config).jobs
    assert (before.calls, before.tokens, before.at_least) == (60, 600, True)
    run(["mine"], config=[config], out=config.parent / "out", limit=6, workers=0)
    [after] = _plan(config).jobs
    assert (after.done, after.calls, after.tokens, after.at_least) == (6, 72, 720, False)


def test_another_librarys_version_is_a_difference_where_the_cache_misses(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stands in the plan, and refuses the run; one that no stage depends on changes nothing."""
    out, real = config.parent / "out", metadata.version
    run(["mine"], config=[config], out=out, workers=0)
    numpy = f"libraries.numpy: {real('numpy')!r} -> '99'"
    for library, told, found in (("torch", (), [10, 10]), ("numpy", (numpy,), [0, 0])):
        monkeypatch.setattr(metadata, "version", lambda n, x=library: "99" if n == x else real(n))
        _version.cache_clear()
        library_versions.cache_clear()
        assert [step.kept for step in _plan(config, out=config.parent / "fresh").steps] == found
        assert _plan(config, out=out).jobs[0].changed == told
    with pytest.raises(UserError, match=re.escape(f"mine on rows: {numpy}")):
        run(["mine"], config=[config], out=out, workers=0)
    _version.cache_clear()
    library_versions.cache_clear()


def test_the_plan_is_told_as_a_tree(config: Path) -> None:
    """The shared steps, what is left, and the time; nothing is left after the run."""
    arguments = ("mine", "--config", config, "--out", config.parent / "out")
    told = leporello("plan", *arguments).stdout
    assert "chunks by FixedTokens(size=50" in told
    assert "10 documents, 0 cached, 10 to compute" in told
    assert "at least 60 reads of 600 tokens" in told
    assert "selecting unknown" in told
    leporello("run", *HERE, *arguments)
    assert "nothing is left to do" in leporello("plan", *arguments).stdout


def _why(config: Path, kind: str) -> tuple[bool, str]:
    [found] = {(r.kept, r.differs) for r in why(config.parent / "out", "3-2") if r.kind == kind}
    return found


def test_why_names_the_first_field_that_differs(config: Path) -> None:
    """A parameter, the plug-in's source, a model or the document: whichever it is."""
    run(["mine"], config=[config], out=config.parent / "out", workers=0)
    kinds = [(reuse.kind, reuse.kept) for reuse in why(config.parent / "out", "3-2")]
    assert kinds == [("chunks", True), ("index", True), *[("outputs", True)] * 3]
    resolved = config.parent / "out" / "run.yaml"
    text = resolved.read_text()
    resolved.write_text(text.replace("size: 50", "size: 51").replace("words: 5", "words: 6"))
    assert _why(config, "chunks") == (False, "chunker.parameters.size: 50 -> 51")
    assert _why(config, "index")[0] is False
    assert _why(config, "outputs") == (False, "reader.parameters.words: 5 -> 6")
    resolved.write_text(text.replace("sublinear: false", "sublinear: true"))
    assert _why(config, "chunks") == (True, "")
    assert _why(config, "index") == (False, "retriever.parameters.sublinear: False -> True")
    resolved.write_text(text)
    rows = config.parent / "rows.jsonl"
    rows.write_text(rows.read_text().replace("word7 of document3", "word7 of document4"))
    kept, differs = _why(config, "chunks")
    assert not kept
    assert differs.startswith("document.text: ")


def test_why_of_an_example_that_is_not_there_helps(config: Path) -> None:
    """The nearest id is named."""
    run(["mine"], config=[config], out=config.parent / "out", limit=3, workers=0)
    with pytest.raises(UserError, match="did you mean"):
        why(config.parent / "out", "3-22")
    with pytest.raises(UserError, match="no run lies there"):
        why(config.parent, "3-2")


def test_the_cache_is_listed_and_cleared(config: Path) -> None:
    """`ls` counts each kind; `gc` keeps within the size, and a run makes again what is gone."""
    run(["mine"], config=[config], out=config.parent / "out", workers=0)
    listed = json.loads(leporello("cache", "ls", "--json").stdout)
    assert {kind: each["entries"] for kind, each in listed["kinds"].items()} == {
        "layouts": 1, "tokens": 10, "chunks": 10, "index": 10, "outputs": 3
    }  # fmt: skip
    assert "index" in leporello("cache", "ls").stdout
    size = sum(each["bytes"] for each in listed["kinds"].values())
    leporello("cache", "gc", "--keep", f"{size / 2000}KB")
    left = [entry.size for entry in Cache(cache_directory()).entries()]
    assert 0 < sum(left) <= size / 2
    assert "removed" in leporello("cache", "gc", "--keep", "0").stdout
    assert not list(Cache(cache_directory()).entries())
    done = run(["mine"], config=[config], out=config.parent / "again", workers=0)
    assert done.failures == 0
    assert "must be a size" in leporello("cache", "gc", "--keep", "much", status=2).stderr


SEEING = """
from dataclasses import dataclass
from leporello import Output

@dataclass(frozen=True)
class Seeing:
    def read(self, inputs):
        said = []
        for read in inputs:
            document = read.passages[0].document
            said.append(f"{document.sections[0].title} {document.text[-3:]} {read.choices}")
        return [Output(text) for text in said]

    def count(self, texts):
        return [0 for _ in texts]
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [("# One", "# Two"), ("end", "END"), ('"choices": ["a"]', '"choices": ["b"]')],
)
def test_outputs_are_not_taken_for_another_document(
    config: Path, tmp_path: Path, old: str, new: str
) -> None:
    """Its headings, its text behind the passage and the choices may all be seen by a reader."""
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
    said = []
    for name in ("one", "other"):
        done = run(["mine"], config=[config], out=tmp_path / name, workers=0)
        said += [prediction.prediction for prediction in done.predictions("mine", "rows")]
        for file in ("text.md", "rows.jsonl"):
            path = tmp_path / file
            path.write_text(path.read_text().replace(old, new))
    assert said[0] != said[1]


def test_a_window_that_was_read_in_parts_is_not_kept(config: Path, tmp_path: Path) -> None:
    """A reader that runs out of memory once says other things than one that does not."""
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
        done = run(["mine"], config=[config], out=tmp_path / name, workers=0)
        first = next(done.predictions("mine", "rows")).prediction
        assert first == ("one of 3" if name == "narrow" else "one of 30")
        mark.unlink(missing_ok=True)
