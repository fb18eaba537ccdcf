"""Draws plots as SVG that are readable in print, in dark mode and without colours.

Colours come from the page's style sheet, by class; series also differ in dashes and marks. For
screen readers, every plot has a title and a table of its numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from html import escape

from markupsafe import Markup

MOST_SERIES = 3
"""Maximum number of series in one panel: more lines and bands hide each other."""

_WIDTH, _HEIGHT = 400, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 14, 12, 44
_FEW = 8  # maximum number of values that are all marked on an axis
_DECADE = 10
_LEGEND = 46  # characters


@dataclass(frozen=True, slots=True)
class Point:
    """A measured point, with the ends of its interval, which are equal without an interval."""

    x: float
    y: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Series:
    """Named points; the points of a line are sorted by `x`."""

    name: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Plot:
    """Panels with equal axes, and a table of their numbers."""

    title: str
    panels: tuple[tuple[str, Markup], ...]  # captions and drawings; a single panel has no caption
    headers: tuple[str, ...]  # headers of the table of numbers
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Axes:
    """Axes of a panel; the `y` axis begins at 0."""

    x_name: str  # label of the `x` axis
    y_name: str  # label of the `y` axis
    values: Collection[float]  # values of `x`; positive on a logarithmic axis
    top: float  # largest value of `y`
    logarithmic: bool = False  # whether the `x` axis is logarithmic

    @staticmethod
    def around(
        points: Sequence[Point], x_name: str, y_name: str, *, logarithmic: bool = False
    ) -> Axes:
        """Returns axes on which all points have a place."""
        top = 1.05 * (max(point.high for point in points) or 1.0)
        return Axes(x_name, y_name, {point.x for point in points}, top, logarithmic)

    def x(self, value: float) -> float:
        """Returns the horizontal place of a value."""
        transform = math.log10 if self.logarithmic else float
        low, high = transform(min(self.values)), transform(max(self.values))
        margin = 0.0 if low < high else 0.5
        return scale(low - margin, high + margin, _LEFT, _WIDTH - _RIGHT)(transform(value))

    def y(self, value: float) -> float:
        """Returns the vertical place of a value."""
        return scale(0, self.top, _HEIGHT - _BOTTOM, _TOP)(value)

    def place(self, x: float, y: float) -> str:
        """Returns the place of a point, as in SVG's lists of points."""
        return f"{self.x(x):.1f},{self.y(y):.1f}"


def lines(
    title: str,
    series: Sequence[Series],
    *,
    x_name: str,
    y_name: str,
    logarithmic: bool = False,
    dotted: Sequence[Point] = (),
) -> Plot:
    """Draws series as lines with intervals; more than three series have a panel each.

    The series need at least one point in total; on a logarithmic axis, `x` must be positive. `y`
    begins at 0. `dotted` are the points of a dotted line, such as the line of equal values.
    """
    points = [*dotted, *(point for line in series for point in line.points)]
    axes = Axes.around(points, x_name, y_name, logarithmic=logarithmic)
    names = [line.name for line in series] if len(series) > MOST_SERIES else [""]
    panels = tuple(
        (name, panel(f"{title} {name}", [s for s in series if name in ("", s.name)], axes, dotted))
        for name in names
    )
    ends = ("from", "to") if any(p.low < p.high for p in points) else ()
    rows = [
        (line.name, f"{p.x:.6g}", *(f"{n:.2f}" for n in (p.y, p.low, p.high)[: 1 + len(ends)]))
        for line in series
        for p in line.points
    ]  # fmt: skip
    return Plot(title, panels, ("", x_name, y_name, *ends), tuple(rows))


def panel(title: str, series: Sequence[Series], axes: Axes, dotted: Sequence[Point] = ()) -> Markup:
    """Draws one panel; its legend is below, if it has several series."""
    marks = [*_y_axis(axes), *_x_axis(axes)]
    if dotted:
        path = " ".join(axes.place(p.x, p.y) for p in dotted)
        marks.append(f'<polyline class="dotted" points="{path}"/>')
    for index, points in enumerate(series):
        # The bands of several series would hide each other.
        marks += _series(points, index, axes, banded=len(series) == 1 < len(points.points))
    legend = [*_legend(series)] if len(series) > 1 else []
    return framed(title, _WIDTH, _HEIGHT + 18 * len(legend), [*marks, *legend])


def framed(title: str, width: int, height: int, marks: Iterable[str], kind: str = "") -> Markup:
    """Returns a drawing; without a title, screen readers skip it."""
    role = f'role="img" aria-label="{escape(title)}"' if title else 'aria-hidden="true"'
    head = f'<svg class="{kind}" viewBox="0 0 {width} {height}" {role}>'
    return Markup(f"{head}{''.join(marks)}</svg>")  # noqa: S704 -- texts are escaped


def _series(series: Series, index: int, axes: Axes, *, banded: bool) -> Iterable[str]:
    kind = f"s{index % len(_MARKS)}"
    if banded:
        upper = [axes.place(p.x, p.high) for p in series.points]
        lower = [axes.place(p.x, p.low) for p in reversed(series.points)]
        yield f'<polygon class="band {kind}" points="{" ".join([*upper, *lower])}"/>'
    path = " ".join(axes.place(p.x, p.y) for p in series.points)
    yield f'<polyline class="line {kind}" points="{path}"/>'
    for p in series.points:
        x, y = axes.x(p.x), axes.y(p.y)
        if p.low < p.high and not banded:
            yield line(x, axes.y(p.low), x, axes.y(p.high), f"whisker {kind}")
        tooltip = escape(f"{series.name}: {p.x:.6g}: {p.y:.4g}")
        yield _mark(index, x, y, f"<title>{tooltip}</title>")


# Outlines of the marks of each style, around the point: circle, square, triangle and diamond.
_MARKS = ("M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0", "M-4-4h8v8h-8z", "M0-5 5 4H-5z", "M0-5 5 0 0 5-5 0z")


def _mark(index: int, x: float, y: float, inner: str = "") -> str:
    style = index % len(_MARKS)
    place = f'transform="translate({x:.1f} {y:.1f})"'
    return f'<path class="mark s{style}" {place} d="{_MARKS[style]}">{inner}</path>'


def _legend(series: Sequence[Series]) -> Iterable[str]:
    for index, line_ in enumerate(series):
        y = _HEIGHT + 10 + 18 * index
        mark = _mark(index, _LEFT, y - 4)
        yield mark + _text(_LEFT + 12, y, line_.name, "start", limit=_LEGEND)


def _y_axis(axes: Axes) -> Iterable[str]:
    for value in ticks(0, axes.top):
        yield line(_LEFT, axes.y(value), _WIDTH - _RIGHT, axes.y(value), "grid")
        yield _text(_LEFT - 6, axes.y(value) + 4, short_number(value), "end", "tick")
    place = f'transform="translate(12 {(_TOP + _HEIGHT - _BOTTOM) / 2:.0f}) rotate(-90)"'
    yield f'<text class="axis" {place} text-anchor="middle">{escape(axes.y_name)}</text>'


def _x_axis(axes: Axes) -> Iterable[str]:
    """Yields the labels of values that do not overlap."""
    last = -math.inf
    for value in x_values(axes.values, axes.logarithmic):
        if axes.x(value) - last > 44:  # noqa: PLR2004 -- a number's width
            last = axes.x(value)
            yield _text(last, _HEIGHT - _BOTTOM + 16, short_number(value), "middle", "tick")
    centre = (_LEFT + _WIDTH - _RIGHT) / 2
    yield _text(centre, _HEIGHT - 8, axes.x_name, "middle", "axis", limit=_LEGEND)


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """Returns a line of SVG."""
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str, anchor: str, kind: str = "", *, limit: int = 24) -> str:
    short = middle(text, limit)
    tooltip = f"<title>{escape(text)}</title>" if short != text else ""
    position = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text class="{kind}" {position}>{escape(short)}{tooltip}</text>'


def middle(text: str, limit: int) -> str:
    """Returns a text without its middle, if it is longer than the limit."""
    # Names of pipelines differ at the end, and points of a sweep at both ends.
    end = limit // 2
    return text if len(text) <= limit else f"{text[: limit - end - 1]}…{text[-end:]}"


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
