"""Draws plots as SVG that are readable in print, in dark mode and without colours.

Colours come from the page's style sheet, by class; series also differ in dashes and marks. For
screen readers, every plot has a title and a table of its numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from html import escape

_WIDTH = 640
_LEFT, _RIGHT, _TOP, _BOTTOM = 190, 24, 12, 46
_ROW = 26
_HEIGHT = 300
_LABEL = 22  # maximum length of the label of a row
_STYLES = 8
_FEW = 8  # maximum number of values that are all marked on an axis
_DECADE = 10


@dataclass(frozen=True, slots=True)
class Point:
    """A measured point.

    Attributes:
        x: Position to the right.
        y: Position upwards.
        low: Lower end of its interval; equal to `y` without an interval.
        high: Upper end of its interval.
        label: Label of the point.
        chosen: Whether a ring is drawn around it.
    """

    x: float
    y: float
    low: float
    high: float
    label: str = ""
    chosen: bool = False


@dataclass(frozen=True, slots=True)
class Series:
    """Named points; the points of a line are sorted by `x`."""

    name: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Bar:
    """A share of a whole, or a score with its interval."""

    label: str
    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Plot:
    """A drawing with a table of its numbers.

    Attributes:
        title: Title above it.
        svg: The drawing.
        headers: Headers of the table of its numbers.
        rows: Rows of that table.
    """

    title: str
    svg: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def dots(title: str, rows: Sequence[Bar], *, top: float = 100) -> Plot:
    """Draws scores as dots with intervals, one per row."""
    height = _TOP + _ROW * len(rows) + _BOTTOM
    x = scale(0, top, _LEFT, _WIDTH - _RIGHT)
    marks = []
    for index, row in enumerate(rows):
        y = _TOP + _ROW * (index + 0.5)
        if row.low is not None and row.high is not None:
            marks.append(_line(x(row.low), y, x(row.high), y, "whisker"))
        marks.append(f'<circle class="dot" cx="{x(row.value):.1f}" cy="{y:.1f}" r="5"/>')
        marks.append(_text(_LEFT - 8, y + 4, row.label, "end"))
    svg = _framed(title, height, [*_x_axis(0, top, x, height), *marks])
    return Plot(title, svg, ("", "score", "from", "to"), tuple(map(_numbers, rows)))


def bars(title: str, rows: Sequence[Bar]) -> Plot:
    """Draws shares in per cent as bars from 0 to 100, one per row."""
    height = _TOP + _ROW * len(rows) + _BOTTOM
    x = scale(0, 100, _LEFT, _WIDTH - _RIGHT)
    marks = []
    for index, row in enumerate(rows):
        y = _TOP + _ROW * index
        width = x(row.value) - x(0)
        marks.append(
            f'<rect class="bar" x="{_LEFT}" y="{y + 4}" width="{width:.1f}" height="{_ROW - 8}"/>'
        )
        marks.append(_text(_LEFT - 8, y + _ROW / 2 + 4, row.label, "end"))
        inside = row.value > 85  # noqa: PLR2004 -- per cent; the number does not fit beside a longer bar
        place_of_number = x(row.value) + (-6 if inside else 6)
        kind = "inside" if inside else ""
        anchor = "end" if inside else "start"
        number = f"{row.value:.1f} %"
        marks.append(_text(place_of_number, y + _ROW / 2 + 4, number, anchor, kind))
    svg = _framed(title, height, [*_x_axis(0, 100, x, height), *marks])
    shown = tuple((row.label, f"{row.value:.1f} %") for row in rows)
    return Plot(title, svg, ("", "share"), shown)


def lines(
    title: str,
    series: Sequence[Series],
    *,
    x_name: str,
    y_name: str,
    joined: bool = True,
    logarithmic: bool = False,
    front: Sequence[Point] = (),
    digits: int = 2,
) -> Plot:
    """Draws series as lines with bands, or as single marks with intervals.

    Args:
        title: Title above the plot.
        series: Series, with at least one point in total.
        x_name: Label of the `x` axis.
        y_name: Label of the `y` axis, which begins at 0.
        joined: Whether lines join the points.
        logarithmic: Whether the `x` axis is logarithmic; `x` must then be positive.
        front: Points of an additional dotted line, such as a Pareto front.
        digits: Decimals of `y` in the table.
    """
    points = [*front, *(point for line in series for point in line.points)]
    transform = math.log10 if logarithmic else _identity
    low, high = min(transform(p.x) for p in points), max(transform(p.x) for p in points)
    if low == high:
        low, high = low - 0.5, high + 0.5
    linear = scale(low, high, 56, _WIDTH - _RIGHT)
    top = (max(p.high for p in points) or 1.0) * 1.05
    y = scale(0, top, _HEIGHT - _BOTTOM, _TOP)

    def x(value: float) -> float:
        return linear(transform(value))

    axes = [
        *_y_axis(top, y, y_name),
        *_x_ticks(x_values({p.x for p in points}, logarithmic), x, x_name),
    ]
    if front:
        path = " ".join(f"{x(p.x):.1f},{y(p.y):.1f}" for p in front)
        axes.append(f'<polyline class="front" points="{path}"/>')
    marks = [
        mark for index, line in enumerate(series) for mark in _series(line, index, x, y, joined)
    ]
    height = _HEIGHT + 18 * math.ceil(len(series) / 2)
    svg = _framed(title, height, [*axes, *marks, *_legend(series)])
    banded = any(p.low < p.high for p in points)
    ends = ("from", "to") if banded else ()
    rows = [
        (
            line.name,
            _label_of(p),
            *(f"{n:.{digits}f}" for n in (p.y, p.low, p.high)[: 1 + len(ends)]),
        )
        for line in series
        for p in line.points
    ]
    return Plot(title, svg, ("", x_name, y_name, *ends), tuple(rows))


def _series(
    series: Series,
    index: int,
    x: Callable[[float], float],
    y: Callable[[float], float],
    joined: bool,
) -> Iterable[str]:
    kind = f"s{index % _STYLES}"
    if joined and len(series.points) > 1:
        upper = [f"{x(p.x):.1f},{y(p.high):.1f}" for p in series.points]
        lower = [f"{x(p.x):.1f},{y(p.low):.1f}" for p in reversed(series.points)]
        yield f'<polygon class="band {kind}" points="{" ".join([*upper, *lower])}"/>'
        path = " ".join(f"{x(p.x):.1f},{y(p.y):.1f}" for p in series.points)
        yield f'<polyline class="line {kind}" points="{path}"/>'
    for p in series.points:
        if not joined and p.low < p.high:
            yield _line(x(p.x), y(p.low), x(p.x), y(p.high), f"whisker {kind}")
        tooltip = escape(f"{series.name}: {_label_of(p)}: {p.y:.4g}")
        yield _mark(index, x(p.x), y(p.y), f"<title>{tooltip}</title>")
        if p.chosen:
            yield f'<circle class="ring" cx="{x(p.x):.1f}" cy="{y(p.y):.1f}" r="9"/>'


def _label_of(point: Point) -> str:
    return point.label or f"{point.x:.6g}"


def _mark(index: int, x: float, y: float, inner: str = "") -> str:
    """Returns a mark in the shape and colour of a series."""
    kind, size = f"mark s{index % _STYLES}", 4.5
    match index % 4:
        case 0:
            return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{size}">{inner}</circle>'
        case 1:
            corner = f'x="{x - size:.1f}" y="{y - size:.1f}"'
            side = f'width="{2 * size}" height="{2 * size}"'
            return f'<rect class="{kind}" {corner} {side}>{inner}</rect>'
        case 2:
            corners = [(x, y - 6), (x + 6, y + 5), (x - 6, y + 5)]
        case _:
            corners = [(x, y - 6), (x + 6, y), (x, y + 6), (x - 6, y)]
    path = " ".join(f"{a:.1f},{b:.1f}" for a, b in corners)
    return f'<polygon class="{kind}" points="{path}">{inner}</polygon>'


def _legend(series: Sequence[Series]) -> Iterable[str]:
    for index, line in enumerate(series):
        x, y = 62 + (index % 2) * 290, _HEIGHT + 10 + 18 * (index // 2)
        yield _mark(index, x, y - 4)
        yield _text(x + 12, y, line.name, "start", limit=36)


def _x_axis(low: float, high: float, x: Callable[[float], float], height: int) -> Iterable[str]:
    bottom = height - _BOTTOM
    for value in ticks(low, high):
        yield _line(x(value), _TOP, x(value), bottom, "grid")
        yield _text(x(value), bottom + 18, f"{value:g}", "middle", "tick")


def _y_axis(top: float, y: Callable[[float], float], name: str) -> Iterable[str]:
    for value in ticks(0, top):
        yield _line(56, y(value), _WIDTH - _RIGHT, y(value), "grid")
        yield _text(50, y(value) + 4, f"{value:g}", "end", "tick")
    position = f'transform="translate(14 {(_TOP + _HEIGHT - _BOTTOM) / 2:.0f}) rotate(-90)"'
    yield f'<text class="axis" {position} text-anchor="middle">{escape(name)}</text>'


def _x_ticks(values: Sequence[float], x: Callable[[float], float], name: str) -> Iterable[str]:
    """Yields the labels of values that do not overlap."""
    last = -math.inf
    for value in values:
        if x(value) - last > 48:  # noqa: PLR2004 -- a number's width
            last = x(value)
            yield _text(last, _HEIGHT - _BOTTOM + 18, short_number(value), "middle", "tick")
    yield _text((56 + _WIDTH - _RIGHT) / 2, _HEIGHT - 8, name, "middle", "axis", limit=80)


def _identity(value: float) -> float:
    return value


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(
    x: float, y: float, text: str, anchor: str, kind: str = "", *, limit: int = _LABEL
) -> str:
    # Keep the end of long names, because the points of a sweep differ there.
    short = text if len(text) <= limit else f"…{text[1 - limit :]}"
    tooltip = f"<title>{escape(text)}</title>" if short != text else ""
    position = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text class="{kind}" {position}>{escape(short)}{tooltip}</text>'


def _framed(title: str, height: int, marks: Iterable[str]) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(title)}">'
        f"{''.join(marks)}</svg>"
    )


def _numbers(row: Bar) -> tuple[str, ...]:
    ends = ("" if end is None else f"{end:.2f}" for end in (row.low, row.high))
    return (row.label, f"{row.value:.2f}", *ends)


def scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    """Returns a linear function that maps `low` to `start` and `high` to `end`."""
    return lambda value: start + (value - low) / (high - low) * (end - start)


def ticks(low: float, high: float) -> list[float]:
    """Returns four to ten round numbers within an interval."""
    rough = (high - low) / 5 or 1.0
    unit = 10 ** math.floor(math.log10(rough))
    step = next(unit * m for m in (1, 2, 5, 10) if unit * m >= rough)
    first = math.ceil(low / step)
    return [round(n * step, 10) for n in range(first, math.floor(high / step) + 1)]


def x_values(values: Collection[float], logarithmic: bool) -> list[float]:
    """Returns the ticks of an axis: the values if they are few integers, otherwise even steps."""
    low, high = min(values), max(values)
    if logarithmic and high >= _DECADE * low:
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        return [d * 10.0**p for p in powers for d in (1, 2, 5) if low <= d * 10.0**p <= high]
    if not logarithmic and len(values) <= _FEW and all(float(v).is_integer() for v in values):
        return sorted(values)
    return ticks(low, high) if low < high else [low]


def short_number(value: float) -> str:
    """Formats a number briefly for an axis."""
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if value >= 10 * unit:
            return f"{value / unit:.3g}{letter}"
    return f"{value:.4g}"
