"""The page: what a template makes of a comparison, its curves and its examples."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from leporello.analysis.comparison import ResultTable, TaskComparison
from leporello.core.errors import UserError
from leporello.core.files import atomically
from leporello.report.plots import Bar, Plot, dots
from leporello.report.sections import ReportSection

_HERE = Path(__file__).parent
# What HTML cannot hold: control characters, lone surrogates, and what is no character at all.
_ODD = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_FULL = 100


@dataclass(frozen=True, slots=True)
class PageSource:
    """One run: its name, its config and its manifest as they stand in its files."""

    name: str
    config: str
    manifest: str


@dataclass(frozen=True, slots=True)
class Page:
    """Everything that the page shows.

    Attributes:
        title: Title of the page.
        tables: Tables of the comparison.
        scores: Plots of the scores.
        sections: Sections that follow, by their ids.
        sources: Sources: one a run.
        tasks: Names and packed indexes, one of each task's examples.
        pieces: Ids and packed data of the examples' details.
        notes: Notes on what is left out, and why.
    """

    title: str
    tables: Sequence[ResultTable]
    scores: Sequence[Plot]
    sections: Sequence[tuple[str, ReportSection]]
    sources: Sequence[PageSource]
    tasks: Sequence[tuple[str, str]]
    pieces: Sequence[tuple[str, str]]
    notes: Sequence[str]


def score_plots(comparison: TaskComparison) -> Iterator[Plot]:
    """Yields the scores of a task, one plot a metric."""
    for metric, score in comparison.metrics.items():
        rows = [
            Bar(entry.label, entry_score.value, *(entry_score.interval or (None, None)))
            for entry in comparison.entries
            if (entry_score := entry.scores[metric]).examples
        ]
        top = max([_FULL, *(row.high or row.value for row in rows)])
        if rows:
            yield dots(f"{score} on {comparison.task}, with 95 % intervals", rows, top=top)


def write(page: Page, out: Path) -> None:
    """Writes the page, whole or not at all.

    Raises:
        UserError: It cannot be written there.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    style, script = ((_HERE / name).read_text("utf-8") for name in ("page.css", "page.js"))
    values: dict[str, Any] = {
        "page": page,
        "style": Markup(style),  # noqa: S704 -- our own file
        "script": Markup(script),  # noqa: S704 -- our own file
        "policy": _policy(style, script),
        "drawn": lambda plot: Markup(plot.svg),  # noqa: S704 -- escaped where it is made
    }
    try:
        with atomically(out) as file:
            for text in environment.get_template("page.html.jinja").generate(values):
                file.write(_ODD.sub("\N{REPLACEMENT CHARACTER}", text))
    except OSError as error:
        raise UserError(f"{out}: cannot be written: {error.strerror}") from None


def _policy(style: str, script: str) -> str:
    """Returns what the page may load: its own style and script, and nothing else."""
    ours = (b64encode(sha256(text.encode()).digest()).decode() for text in (style, script))
    by_kind = (f"{k}-src 'sha256-{h}'" for k, h in zip(("style", "script"), ours, strict=True))
    return "; ".join(["default-src 'none'", *by_kind, "base-uri 'none'", "form-action 'none'"])
