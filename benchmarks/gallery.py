"""Runs the pipelines of gallery.yaml on the sample task, and writes gallery.md: `make gallery`."""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from leporello.api import Result, load_pipelines, run
from leporello.config.specs import Spec

_HERE = Path(__file__).parents[1] / "docs"
_FILE = _HERE / "gallery.yaml"
_LONG = 20  # letters of a value that its box does not show
_KEYS = ("chunker", "retriever", "reader", "combiner")
_HEAD = """# Gallery

Twenty pipelines that run offline, with what `leporello[local]` brings: each with its YAML, its
stages, what it is for, what it scores on the sample task (a play, a report and a manual, 34
questions: too few to choose by) and what it costs. All of it is written by `make gallery`, which
runs them one after the other in one process, without the cache; [gallery.yaml](gallery.yaml) holds
them, for `--config`. Seconds are of computing, loading of models included; tokens those that a
reader counts: one that chooses a sentence counts none.

| pipeline | F1 | exact match | recall | read | CPU seconds | tokens read | tokens written |
|---|--:|--:|--:|--:|--:|--:|--:|
"""


def main() -> None:
    """Writes the page."""
    config = load_pipelines([_FILE])
    blocks = dict(re.findall(r"^  ([\w-]+):\n((?:    .*\n)+)", _FILE.read_text("utf-8"), re.M))
    rows, sections = "", ""
    _run([*blocks], limit=1)  # libraries are imported
    for name, block in blocks.items():
        [point] = config.pipelines[name]
        began = time.process_time()
        done = _run([name])
        seconds = time.process_time() - began
        rows += f"| [{name}](#{name}) | {_cells(done, seconds)} |\n"
        chart = "\n".join(_chart(point.stages))
        yaml = f"  {name}:\n" + re.sub(r"^    description: .*\n", "", block)
        sections += (
            f"\n## {name}\n\n{point.description}\n\n```yaml\npipelines:\n{yaml}```\n"
            f"\n```mermaid\nflowchart LR\n{chart}\n```\n"
        )
        print(name, rows.splitlines()[-1], flush=True)
    (_HERE / "gallery.md").write_text(f"{_HEAD}{rows}{sections}", encoding="utf-8")


def _run(names: Sequence[str], limit: int | None = None) -> tuple[Result, Mapping[str, int]]:
    """Returns the result of the last pipeline, and what its reader counted."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        done = run(names, ["sample"], config=[_FILE], limit=limit, out=out, workers=0, cached=False)
        if done.stopped:
            raise SystemExit(done.stopped)
        file = out / names[-1] / "sample" / "timings.json"
        reading: Mapping[str, int] = json.loads(file.read_text("utf-8"))["reading"]
    return done.results[-1], reading


def _cells(done: tuple[Result, Mapping[str, int]], seconds: float) -> str:
    result, reading = done
    scores = (f"{result.scores[name]:.1f}" for name in ("f1", "exact_match", "recall"))
    tokens = (f"{reading[f'{way}_tokens']:,}" for way in ("input", "output"))
    return " | ".join([*scores, f"{result.shares['read']:.1%}", f"{seconds:.1f}", *tokens])


def _chart(stages: Mapping[str, Spec]) -> Iterator[str]:
    """Yields Mermaid's lines: a box a stage; those that a stage holds point to it."""
    before = ["document([document])"]
    for key in _KEYS:
        yield from _box(key, stages[key], before)
        before = [key]
    yield "  question([question]) --> retriever"
    yield "  combiner --> answer([answer])"


def _box(id: str, spec: Spec, before: list[str]) -> Iterator[str]:  # noqa: A002 -- Mermaid's word
    held = {k: v if isinstance(v, tuple) else (v,) for k, v in spec.params.items()}
    inner = {
        f"{id}_{name}_{number}": one
        for name, values in held.items()
        for number, one in enumerate(values)
        if isinstance(one, Spec)
    }
    given = spec.resolved()
    said = "".join(
        f"<br>{name}: {given[name]}"
        for name, values in held.items()
        if not isinstance(values[0], Spec) and len(str(given[name])) < _LONG
    )
    yield f'  {id}["<b>{spec.cls.__name__}</b>{said}"]'
    for name, one in inner.items():
        asked = hasattr(one.cls, "read")  # a reader that a retriever asks, not a step before it
        yield from _box(name, one, [] if asked else before)
        yield f"  {name} {'-.-' if asked else '-->'} {id}"
    if not inner:
        yield from (f"  {each} --> {id}" for each in before)


if __name__ == "__main__":
    main()
