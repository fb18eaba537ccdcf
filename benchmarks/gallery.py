"""Runs the pipelines of gallery.yaml on the sample task, and writes gallery.md (`make gallery`)."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from leporello.api import Result, load_pipelines, run
from leporello.config.specs import Spec

_HERE = Path(__file__).parents[1] / "docs"
_FILE = _HERE / "gallery.yaml"
_LONG = 20  # characters; boxes leave out longer values
_KEYS = ("chunker", "retriever", "reader", "combiner")
_HEAD = """# Gallery

Twenty pipelines that run offline with `leporello[local]`; `--config docs/gallery.yaml` loads them
([file](gallery.yaml)). The table shows their scores on the sample task (a play, a report and a
manual, 34 questions: too few to choose by), the share of the document that was read, and CPU
seconds with loading. `make gallery` writes this page.

| pipeline | F1 | recall | read | CPU seconds |
|---|--:|--:|--:|--:|
"""


def main() -> None:
    """Writes the page."""
    config = load_pipelines([_FILE])
    blocks = dict(re.findall(r"^  ([\w-]+):\n((?:    .*\n)+)", _FILE.read_text("utf-8"), re.M))
    rows, sections = "", ""
    _run([*blocks], limit=1)  # imports libraries, which is not measured
    for name, block in blocks.items():
        [point] = config.pipelines[name]
        start = time.process_time()
        result = _run([name])
        seconds = time.process_time() - start
        rows += f"| [{name}](#{name}) | {_cells(result, seconds)} |\n"
        chart = "\n".join(_chart(point.stages))
        yaml = f"  {name}:\n" + re.sub(r"^    description: .*\n", "", block)
        sections += (
            f"\n## {name}\n\n{point.description}\n\n```yaml\npipelines:\n{yaml}```\n"
            f"\n```mermaid\nflowchart LR\n{chart}\n```\n"
        )
        print(name, rows.splitlines()[-1], flush=True)
    (_HERE / "gallery.md").write_text(f"{_HEAD}{rows}{sections}", encoding="utf-8")


def _run(names: Sequence[str], limit: int | None = None) -> Result:
    """Returns the result of the last pipeline."""
    with tempfile.TemporaryDirectory() as folder:
        out, config = Path(folder), [_FILE]
        finished = run(
            names, ["sample"], config=config, limit=limit, out=out, workers=0, cached=False
        )
        if finished.stopped:
            raise SystemExit(finished.stopped)
    return finished.results[-1]


def _cells(result: Result, seconds: float) -> str:
    scores = (f"{result.scores[name]:.1f}" for name in ("f1", "recall"))
    return " | ".join([*scores, f"{result.shares['read']:.1%}", f"{seconds:.1f}"])


def _chart(stages: Mapping[str, Spec]) -> Iterator[str]:
    """Yields lines of a Mermaid chart: one box per stage, with arrows from nested stages."""
    before = ["document([document])"]
    for key in _KEYS:
        yield from _box(key, stages[key], before)
        before = [key]
    yield "  question([question]) --> retriever"
    yield "  combiner --> answer([answer])"


def _box(box: str, spec: Spec, before: list[str]) -> Iterator[str]:
    parameters = {k: v if isinstance(v, tuple) else (v,) for k, v in spec.params.items()}
    inner = {
        f"{box}_{name}_{number}": value
        for name, values in parameters.items()
        for number, value in enumerate(values)
        if isinstance(value, Spec)
    }
    resolved = spec.resolved()
    lines = "".join(
        f"<br>{name}: {resolved[name]}"
        for name, values in parameters.items()
        if not isinstance(values[0], Spec) and len(str(resolved[name])) < _LONG
    )
    yield f'  {box}["<b>{spec.cls.__name__}</b>{lines}"]'
    for name, nested in inner.items():
        is_reader = hasattr(nested.cls, "read")  # the stage calls it, so it is not a step before
        yield from _box(name, nested, [] if is_reader else before)
        yield f"  {name} {'-.-' if is_reader else '-->'} {box}"
    if not inner:
        yield from (f"  {previous} --> {box}" for previous in before)


if __name__ == "__main__":
    main()
