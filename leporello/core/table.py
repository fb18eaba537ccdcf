"""Formats tables as HTML, Markdown and LaTeX, and rows of values as CSV and pandas frames."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from leporello.core.environment.extras import require

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, slots=True)
class ResultTable:
    """A table of text, with notes below it; the first `labels` columns name a row."""

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    labels: int = 1


def html(table: ResultTable) -> str:
    """Returns a table as HTML, for notebooks."""
    head = "".join(f"<th>{escape(text)}</th>" for text in table.headers)
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}</tr>" for row in table.rows
    )
    notes = "".join(f"<p>{escape(note)}</p>" for note in table.notes)
    caption = f"<caption>{escape(table.title)}</caption>"
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{notes}"


def markdown(table: ResultTable) -> str:
    """Returns a table as Markdown."""
    lines = [table.headers, ("---", *("---:" for _ in table.headers[1:])), *table.rows]
    text = "".join(f"| {' | '.join(map(_in_markdown, line))} |\n" for line in lines)
    notes = "".join(f"\n{_in_markdown(note)}\n" for note in table.notes)
    return f"### {_in_markdown(table.title)}\n\n{text}{notes}"


def _in_markdown(text: str) -> str:
    return re.sub(r"([\\|*_<`])", r"\\\1", " ".join(text.split()))


def latex(table: ResultTable) -> str:
    """Returns a table as LaTeX, which needs the package booktabs."""
    columns = "l" + "r" * (len(table.headers) - 1)
    head, *rows = (" & ".join(map(_in_latex, row)) for row in (table.headers, *table.rows))
    body = "".join(f"{row} \\\\\n" for row in rows)
    notes = "".join(f"\\par\\footnotesize {_in_latex(note)}\n" for note in table.notes)
    return (
        f"\\begin{{table}}\n\\centering\n\\begin{{tabular}}{{{columns}}}\n\\toprule\n{head} \\\\\n"
        f"\\midrule\n{body}\\bottomrule\n\\end{{tabular}}\n{notes}"
        f"\\caption{{{_in_latex(table.title)}}}\n\\end{{table}}\n"
    )


_LATEX: Mapping[str, str] = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "–": "--",
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
}


def _in_latex(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)


# Spreadsheets run a cell that begins so as a formula, which may send the other cells to a server.
_FORMULA = re.compile(r"[=+\-@\t\r]")
_NUMBER = re.compile(r"[-+]?\d[\d.,]*(?:[eE][-+]?\d+)?")


def csv_text(rows: Iterable[Iterable[object]], *, raw: bool = False) -> str:
    """Returns rows as CSV, the header first.

    Unless `raw`, `'` is put before texts that spreadsheets would run as formulas: those that begin
    with `=`, `+`, `-`, `@`, a tab or a carriage return, and are not numbers.
    """
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(
        [value if raw else _without_formula(value) for value in row] for row in rows
    )
    return file.getvalue()


def csv_of(records: Sequence[Mapping[str, object]]) -> str:
    """Returns records with equal keys as CSV; see `csv_text`."""
    return csv_text([*records[:1], *(record.values() for record in records)])


def _without_formula(value: object) -> object:
    is_formula = isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value)
    return f"'{value}" if is_formula else value


def frame(rows: Iterable[Mapping[str, Any]]) -> DataFrame:
    """Returns rows as a pandas frame."""
    require("a frame", "pandas")
    import pandas

    return pandas.DataFrame([*rows])


def swept_columns(labels: Sequence[str]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Returns headers and rows for labels such as `default@retriever.k=3`, by swept parameter."""
    points = [
        (name, dict(part.split("=", 1) for part in point.split(",") if part))
        for name, point in map(_parted, labels)
    ]
    swept = tuple(dict.fromkeys(path for _, values in points for path in values))
    rows = [(name, *(values.get(path, "") for path in swept)) for name, values in points]
    return ("pipeline", *(path.replace(".", " ") for path in swept)), rows


def _parted(label: str) -> tuple[str, str]:
    name, _, point = label.partition("@")
    is_point = all("=" in part for part in point.split(",")) and not set("[]{}\"'") & set(point)
    return (name, point) if is_point else (label, "")
