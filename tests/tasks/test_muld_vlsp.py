"""End-to-end tests of MuLD's theses with their built-in pipelines."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from row_files import write_rows

from leporello.api import run

TEXT = "The eldest took the mill, the second the donkey, and the youngest had nothing but the cat."
CHAPTERS = ("Introduction", "The mill", "The boots", "Conclusion")
LISTED = "\n".join(f"-    {n} {title}" for n, title in enumerate(CHAPTERS, 1))
WRITTEN = "\n\n".join(
    f"## Chapter {n} {title}\n\n{TEXT}\n\n### {n}.1 More\n\n{TEXT} {TEXT}"
    for n, title in enumerate(CHAPTERS, 1)
)
APPENDIX = f"## Appendix A Proofs\n\n{TEXT}\n"
MARKED = f"##### Contents\n\n{LISTED}\n\n###### List of Figures\n\n-    1.1 A cat\n\n{WRITTEN}"
PLAIN = f"{TEXT}\n\n{TEXT}\n\nThe cat asked for boots.\n"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with a file in MuLD's format: a thesis, and a text without headings."""
    folder = tmp_path_factory.mktemp("data")
    rows = [
        {"input": f"{MARKED}\n\n{APPENDIX}", "output": ["The cat wins.", "Boots are bought."]},
        {"input": PLAIN, "output": ["The cat asks."]},
    ]
    write_rows(folder / "muld/vlsp_test.json.bz2", *rows)
    return folder


SHORT = ("reader.max_new_tokens=8",)
TINY_T5 = (*SHORT, "reader.min_new_tokens=2", "reader.max_input_tokens=96")
PIPELINES = {  # model, settings for a model of this size, and number of chunks
    "muld-vlsp": ("t5", TINY_T5, 8),
    "muld-vlsp-hierarchical": ("t5", (*TINY_T5, "combiner.target_words=3"), 8),
    "muld-vlsp-led": ("led", (*SHORT, "reader.max_input_tokens=128"), 4),
}


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_a_pipeline_summarises_theses(
    pipeline: str, data: Path, tiny: Callable[[str], str], tmp_path: Path
) -> None:
    model, settings, starts = PIPELINES[pipeline]
    # Without METEOR, which would take most of the time.
    task = {"class": "Muld", "name": "vlsp", "data": str(data), "metrics": ["rouge"]}
    config = tmp_path / "tasks.yaml"
    config.write_text(json.dumps({"tasks": {"muld/vlsp": task}}), encoding="utf-8")
    sets = [f"reader.model={tiny(model)}", *settings]
    summary = run([pipeline], config=[config], overrides=sets, out=tmp_path / "run", workers=0)
    assert summary.results[0].scores
    thesis, plain = summary.predictions(pipeline, "muld/vlsp")
    hits = [MARKED[start:end].splitlines()[0] for start, end, _ in thesis.hits]
    assert hits[0] == "## Chapter 1 Introduction"
    assert len(hits) == starts
    assert all(hit.startswith("##") for hit in hits)
    begin = MARKED.index("## Chapter 1")
    assert all(begin <= span.start < span.end <= len(MARKED) for span in thesis.read)
    assert (thesis.coverage.cut, thesis.coverage.read) == (0, thesis.coverage.selected)
    assert plain.coverage.read > 0
    assert all(str(prediction.raw).strip() for prediction in (thesis, plain))
    if pipeline == "muld-vlsp":
        assert str(thesis.raw).count("\n") >= starts - 1
