"""Serves the stage ``evaluate``: draws the charts of a report as SVG whose colours are the page's own.

matplotlib draws with colours that stand for roles; here they become CSS classes (``fill-strong``, ``stroke-quiet``, …), so that
one drawing serves the light and the dark theme, and holds no ``style`` attribute that a content security policy would
have to allow. Text stays text. Nothing is told by colour alone: the earlier run is hollow and dashed, a loss is
hatched and has a number.
"""

from __future__ import annotations

import io
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes

__all__ = ["Bar", "Spread", "bars", "levels", "scale", "spreads", "steps"]

# A role of the page and the colour that stands for it while matplotlib draws.
_ROLES = {
    "ink": "#010101",
    "quiet": "#020202",
    "rule": "#030303",
    "strong": "#040404",
    "loss": "#050505",
    "paper": "#060606",
}
_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"
_KEPT = ("stroke-width", "stroke-linecap", "stroke-linejoin", "stroke-dasharray", "text-anchor", "font-size")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_TEXT = 11.5


@dataclass(frozen=True)
class Bar:
    """A step of a funnel.

    Attributes:
        label: What is counted.
        left: How many are left after the step.
        lost: How many the step lost.
        text: ``left`` in words, for the right edge.
        old: How many an earlier run had left, or None.
    """

    label: str
    left: int
    lost: int
    text: str
    old: int | None = None


@dataclass(frozen=True)
class Spread:
    """The percentiles of a stage's time in milliseconds; None where they are not known."""

    label: str
    p50: float | None
    p95: float | None
    p99: float | None


@contextmanager
def _canvas(width: float, height: float) -> Iterator[tuple[Axes, list[str]]]:
    """Yield axes whose unit is a pixel of the drawing, y downwards, and the list that receives the SVG."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    settings: dict[Any, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": "pgrag",
        "text.parse_math": False,
        "font.size": _TEXT,
        "hatch.linewidth": 1.0,
        "hatch.color": _ROLES["loss"],
        "path.simplify": False,
    }
    with mpl.rc_context(settings):
        figure = Figure(figsize=(width / 72, height / 72))
        FigureCanvasSVG(figure)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_xlim(0, width)
        axes.set_ylim(height, 0)
        axes.set_axis_off()
        made: list[str] = []
        yield axes, made
        written = io.StringIO()
        figure.patch.set_visible(False)
        figure.savefig(
            written, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
        )
        made.append(written.getvalue())


def _themed(svg: str, *, name: str, label: str) -> str:
    """Return matplotlib's SVG as an element of the page: roles for colours, no styles, ids with a prefix.

    Args:
        svg: What matplotlib wrote.
        name: Unique on the page; begins every id.
        label: What the picture shows, read out instead of it.
    """
    ET.register_namespace("", _SVG)
    root = ET.fromstring(svg)  # noqa: S314  matplotlib wrote it, a line above
    roles = {colour: role for role, colour in _ROLES.items()}
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{{{_SVG}}}metadata", f"{{{_SVG}}}style") or "clipPath" in str(child.tag):
                parent.remove(child)
    referred = {
        found for one in root.iter() for value in one.attrib.values() for found in _REFERENCE.findall(value)
    } | {one.attrib[f"{{{_XLINK}}}href"][1:] for one in root.iter() if f"{{{_XLINK}}}href" in one.attrib}
    for one in root.iter():
        one.tail = None
        if not str(one.tag).endswith("text"):
            one.text = None
        one.attrib.pop("clip-path", None)
        classes = []
        for declaration in filter(None, map(str.strip, one.attrib.pop("style", "").split(";"))):
            key, _, value = (part.strip() for part in declaration.partition(":"))
            if key in ("fill", "stroke") and value.lower() in roles:
                classes.append(f"{key}-{roles[value.lower()]}")
            elif key in ("fill", "stroke"):
                one.set(key, value)
            elif key == "font":
                one.set("font-size", value.split("px")[0].split()[-1])
            elif key in _KEPT:
                one.set(key, value.removesuffix("px"))
        for key in ("fill", "stroke"):
            if one.get(key) in roles:
                classes.append(f"{key}-{roles[one.attrib.pop(key)]}")
        if one.get("transform", "").startswith(("rotate(-0 ", "rotate(0 ")):
            del one.attrib["transform"]
        if classes:
            one.set("class", " ".join(classes))
        if one.get("id") in referred:
            one.set("id", f"{name}-{one.attrib['id']}")
        else:
            one.attrib.pop("id", None)
        for key, value in list(one.attrib.items()):
            if key == f"{{{_XLINK}}}href":
                del one.attrib[key]
                one.set("href", f"#{name}-{value[1:]}")
            else:
                one.set(key, _REFERENCE.sub(rf"url(#{name}-\1)", value))
    for empty in [one for one in root if one.tag == f"{{{_SVG}}}defs" and not len(one)]:
        root.remove(empty)
    _, _, width, height = root.attrib["viewBox"].split()
    for key in ("width", "height", "version"):
        root.attrib.pop(key, None)
    root.set("class", "chart")
    root.set("role", "img")
    root.set("aria-label", label)
    root.set("width", width)
    root.set("height", height)
    return ET.tostring(root, encoding="unicode")


def _say(
    axes: Axes, x: float, y: float, text: str, role: str = "ink", align: str = "left", **more: Any
) -> None:
    # Rotating about the anchor is what makes matplotlib write text-anchor, by which another font stays aligned.
    axes.text(x, y, text, color=_ROLES[role], ha=align, va="baseline", rotation_mode="anchor", **more)


def _box(axes: Axes, x: float, y: float, width: float, height: float, role: str, **more: Any) -> None:
    from matplotlib.patches import Rectangle

    more = {"facecolor": _ROLES[role], "edgecolor": "none", "linewidth": 0, **more}
    axes.add_patch(Rectangle((x, y), width, height, **more))


def _line(axes: Axes, xs: Sequence[float], ys: Sequence[float], role: str, **more: Any) -> None:
    axes.plot(xs, ys, color=_ROLES[role], **{"linewidth": 1, "solid_capstyle": "butt", **more})


def _mark(
    axes: Axes, x: float, y: float, role: str, shape: str, size: float = 6.5, hollow: bool = False
) -> None:
    axes.plot(
        [x],
        [y],
        marker=shape,
        markersize=size,
        markerfacecolor=_ROLES["paper" if hollow else role],
        markeredgecolor=_ROLES[role],
        markeredgewidth=1.3,
        linestyle="none",
    )


def steps(rows: Sequence[Bar], *, name: str, label: str) -> str:
    """Draw a funnel: a bar a step, what is left solid, what the step lost hatched.

    Args:
        rows: The steps in order, the first with everything.
        name: Unique on the page.
        label: The picture in words.
    """
    width, row = 400.0, 40.0
    most = max(1, rows[0].left, rows[0].old or 0)
    with _canvas(width, row * len(rows)) as (axes, made):
        for place, step in enumerate(rows):
            top = place * row
            _say(axes, 0, top + 13, step.label)
            _say(axes, width, top + 13, step.text, align="right")
            _box(axes, 0, top + 20, width, 9, "rule")
            left = width * step.left / most
            _box(axes, 0, top + 20, left, 9, "strong")
            if step.lost:
                lost = width * step.lost / most
                _box(
                    axes,
                    left,
                    top + 20,
                    lost,
                    9,
                    "paper",
                    hatch="//////",
                    edgecolor=_ROLES["loss"],
                    linewidth=1,
                )
            if step.old is not None:
                _line(axes, [width * step.old / most] * 2, [top + 17, top + 32], "ink", linewidth=1.6)
    return _themed(made[0], name=name, label=label)


def levels(
    names: Sequence[str],
    values: Sequence[float | None],
    *,
    name: str,
    label: str,
    old: Sequence[float | None] | None = None,
) -> str:
    """Draw one measure from 0 to 1 over ordered groups: a solid dot each, an earlier run hollow and dashed.

    Args:
        names: The groups, in order.
        values: A value a group; None where there is none.
        name: Unique on the page.
        label: The picture in words.
        old: The earlier run's, or None.
    """
    width, height = 264.0, 164.0
    left, right, top, bottom = 28.0, 2.0, 18.0, 26.0
    step = (width - left - right) / max(1, len(names))

    def at(place: int) -> float:
        return left + step * (place + 0.5)

    def up(value: float) -> float:
        return top + (height - top - bottom) * (1 - min(1.0, max(0.0, value)))

    with _canvas(width, height) as (axes, made):
        for tick in (0, 0.5, 1):
            _line(axes, [left, width - right], [up(tick)] * 2, "rule")
            _say(axes, left - 7, up(tick) + 4, f"{tick:g}", "quiet", "right")
        small = _TEXT if len(names) <= 6 else 9
        for place, group in enumerate(names):
            _say(axes, at(place), height - 8, group, "quiet", "center", fontsize=small)
        for series, hollow in ((old, True), (values, False)):
            dots = [None if v is None else (at(place), up(v)) for place, v in enumerate(series or ())]
            role = "ink" if hollow else "strong"
            style = {"linestyle": (0, (3, 3)), "linewidth": 1.1} if hollow else {"linewidth": 1.8}
            # Not across a group that has no value.
            for one, next_ in pairwise(dots):
                if one is not None and next_ is not None:
                    _line(axes, [one[0], next_[0]], [one[1], next_[1]], role, **style)
            for dot in filter(None, dots):
                _mark(axes, *dot, role, "s" if hollow else "o", 5.5 if hollow else 6.5, hollow)
        for place, value in enumerate(values):
            if value is not None:
                before = old[place] if old is not None else None
                below = before is not None and before > value and up(value) + 20 < height - bottom
                _say(axes, at(place), up(value) + (18 if below else -9), f"{value:.2f}", "ink", "center")
    return _themed(made[0], name=name, label=label)


def bars(counts: Sequence[int], *, name: str, label: str) -> str:
    """Draw how many queries got how much of a measure from 0 to 1: bars of equal width, a number on each.

    Args:
        counts: Queries a bin, from 0 upwards.
        name: Unique on the page.
        label: The picture in words.
    """
    width, height, top, bottom = 264.0, 120.0, 18.0, 24.0
    step = width / max(1, len(counts))
    most = max(1, *counts)
    with _canvas(width, height) as (axes, made):
        floor = height - bottom
        for place, count in enumerate(counts):
            tall = (floor - top) * count / most
            _box(axes, place * step + 1, floor - tall, step - 2, tall, "strong")
            if count:
                _say(
                    axes,
                    (place + 0.5) * step,
                    floor - tall - 5,
                    f"{count:,}".replace(",", "\u202f"),
                    "ink",
                    "center",
                    fontsize=10,
                )
        _line(axes, [0, width], [floor, floor], "quiet")
        for tick, align in ((0.0, "left"), (0.5, "center"), (1.0, "right")):
            _say(axes, tick * width, height - 8, f"{tick:g}", "quiet", align)
    return _themed(made[0], name=name, label=label)


def spreads(
    rows: Sequence[Spread],
    *,
    limits: tuple[float, float],
    name: str,
    label: str,
    old: Mapping[str, Spread] | None = None,
) -> str:
    """Draw percentiles of times on a logarithmic scale: a dot at p50, a bar at p95, a diamond at p99.

    Args:
        rows: A stage a row.
        limits: Least and most of the scale in milliseconds, the same for charts that stand beside each other.
        name: Unique on the page.
        label: The picture in words.
        old: The earlier run's by stage, hollow beneath, or None.
    """
    width, row, left, right, bottom = 264.0, 30.0 if old else 24.0, 64.0, 14.0, 22.0
    low, high = math.log10(limits[0]), math.log10(limits[1])
    height = row * len(rows) + bottom + 6

    def along(value: float) -> float:
        return left + (width - left - right) * (math.log10(max(value, limits[0])) - low) / (high - low)

    with _canvas(width, height) as (axes, made):
        decades = range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1)
        for power in decades:
            x = along(10.0**power)
            _line(axes, [x, x], [4, height - bottom], "rule")
            _say(axes, x, height - 7, f"{10.0**power:,g}".replace(",", "\u202f"), "quiet", "center")
        for place, stage in enumerate(rows):
            middle = 6 + row * (place + 0.5) - (4 if old else 0)
            _say(axes, 0, middle + 4, stage.label if len(stage.label) <= 10 else stage.label[:9] + "…")
            before = (old or {}).get(stage.label)
            for spread, y, hollow in ((before, middle + 9, True), (stage, middle, False)):
                if spread is None:
                    continue
                role = "ink" if hollow else "strong"
                known = [along(v) for v in (spread.p50, spread.p95, spread.p99) if v is not None]
                if len(known) > 1:
                    dashes = {"linestyle": (0, (2, 2))} if hollow else {}
                    _line(axes, [min(known), max(known)], [y, y], role, linewidth=1.2, **dashes)
                if spread.p99 is not None:
                    _mark(axes, along(spread.p99), y, role, "D", 3.5 if hollow else 4.8, hollow)
                if spread.p95 is not None:
                    x, half = along(spread.p95), 3.5 if hollow else 5.5
                    _line(axes, [x, x], [y - half, y + half], role, linewidth=1.3 if hollow else 2.2)
                if spread.p50 is not None:
                    _mark(axes, along(spread.p50), y, role, "o", 4 if hollow else 6, hollow)
    return _themed(made[0], name=name, label=label)


def scale(values: Iterable[float]) -> tuple[float, float]:
    """Return whole decades around positive values, at least one wide; 1 to 10 where there is none."""
    known = [value for value in values if value > 0]
    if not known:
        return 1.0, 10.0
    low, high = math.floor(math.log10(min(known))), math.ceil(math.log10(max(known)))
    return 10.0**low, 10.0 ** max(high, low + 1)
