"""Draws charts with matplotlib, and converts them to parts of a page: text stays text, colours become classes.

matplotlib gets only numbers from a report. Each text is drawn as a number between two marks, which XML text replaces
afterwards, so that no column name is taken for mathematics or markup, or needs a glyph that the font doesn't have.
"""

from __future__ import annotations

import io
import logging
import os
import re
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from bloomcli.report.human import CUT, printable, width

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH: Final = 560
"""The width of a chart in pixels, which are matplotlib's points: its SVG has 72 per inch. It can be read on a
telephone, without scrolling."""
LETTER: Final = 6.3
"""The width of a character in pixels, in labels."""
LABEL: Final = 11.0
"""The size of the labels' font in pixels."""
NAME_CELLS: Final = 30
"""The most characters of a name to the left of a chart. Longer names are cut, with the whole name as the title."""

TONES: Final = (
    *("ink", "dim", "line", "paper", "accent", "second", "good", "warn", "bad"),
    *("q1", "q2", "q3", "q4", "q5"),
)
"""The colours of charts: classes of the style sheet."""
_COLOURS: Final = {tone: f"#0000{number + 1:02x}" for number, tone in enumerate(TONES)}
_TONES: Final = {colour: tone for tone, colour in _COLOURS.items()}
_MARKED: Final = re.compile(r"@(\d+)@")
_SVG: Final = "{http://www.w3.org/2000/svg}"
_LINK: Final = "{http://www.w3.org/1999/xlink}href"
_REFERENCE: Final = re.compile(r"url\(#([^)]+)\)")
_NUMBER: Final = re.compile(r"-?\d+\.\d{3,}")
_KEPT: Final = frozenset({"stroke-width", "stroke-dasharray", "font-size", "text-anchor", "fill", "stroke"})
"""The style properties that become attributes: the page's policy forbids style attributes."""


def colour(tone: str) -> str:
    """Return the placeholder colour of a tone, which `Drawing.svg` replaces by a class."""
    return _COLOURS[tone]


class Drawing:
    """A chart that is being drawn. Used within `quiet`."""

    def __init__(self, height: float) -> None:
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure

        self._figure = Figure(figsize=(WIDTH / 72, height / 72))
        FigureCanvasSVG(self._figure)
        self.height = height
        self._texts: list[tuple[str, str]] = []
        """Each text: (shown text, whole text)."""

    def axes(self, left: float, top: float, width: float, height: float) -> Axes:
        """Return axes at this position in pixels, without frame and marks."""
        box = (left / WIDTH, 1 - (top + height) / self.height, width / WIDTH, height / self.height)
        axes = self._figure.add_axes(box)
        axes.patch.set_visible(False)
        for spine in axes.spines.values():
            spine.set_visible(False)
        axes.tick_params(length=0, labelsize=LABEL, labelcolor=colour("ink"), pad=6)
        axes.set_axisbelow(True)
        return axes

    def mark(self, text: str, most: int = 200) -> str:
        """Return the placeholder of a text, which `svg` replaces. A text of more than `most` cells is cut."""
        whole = printable(text) or '""'
        self._texts.append((_cut(whole, most), whole))
        return f"@{len(self._texts) - 1}@"

    def names(self, axes: Axes, names: Sequence[str]) -> None:
        """Label the rows of an upright axis, the first one on top."""
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_yticks(range(len(names)), [self.mark(name, NAME_CELLS) for name in names])

    def scale(self, axes: Axes, places: Sequence[float], texts: Sequence[str]) -> None:
        """Label the horizontal axis, and draw a line at each label."""
        axes.set_xticks(places, [self.mark(text) for text in texts])
        axes.set_xticks([], minor=True)
        axes.grid(axis="x", color=colour("line"), linewidth=1)

    def title(self, axes: Axes, text: str) -> None:
        """Name the horizontal axis."""
        axes.set_xlabel(self.mark(text), fontsize=LABEL, color=colour("dim"), labelpad=6)

    def write(self, axes: Axes, x: float, y: float, text: str, **settings: Any) -> None:
        """Write a text into a chart, at a place of its axes."""
        settings = {"fontsize": LABEL, "color": colour("ink"), "va": "center_baseline", **settings}
        axes.text(x, y, self.mark(text), parse_math=False, **settings)

    def svg(self, name: str, title: str, description: str) -> str:
        """Return the chart as SVG for a page.

        Args:
            name: the prefix of the ids, unique on the page.
            title, description: its text alternative.
        """
        stream = io.BytesIO()
        self._figure.savefig(stream, format="svg", transparent=True)
        root = ET.fromstring(stream.getvalue())  # noqa: S314  matplotlib wrote it, from numbers only
        for parent in list(root.iter()):
            for child in list(parent):
                if child.tag in {f"{_SVG}metadata", f"{_SVG}style"}:
                    parent.remove(child)
        used = {found for element in root.iter() for found in _references(element)}
        for element in root.iter():
            _classes(element)
            _rename(element, name, used)
            if element.tag == f"{_SVG}text":
                self._put(element)
        root.attrib = {
            "viewBox": f"0 0 {WIDTH:g} {self.height:g}",
            "role": "img",
            "aria-labelledby": f"{name}-t {name}-d",
        }
        for tag, text in (("desc", description), ("title", title)):
            root.insert(0, ET.Element(f"{_SVG}{tag}", {"id": f"{name}-{tag[0]}"}))
            root[0].text = text
        text = ET.tostring(root, encoding="unicode")
        return (
            text.replace("ns0:", "")
            .replace("xmlns:ns0=", "xmlns=")
            .replace(' xmlns="http://www.w3.org/2000/svg"', "")
        )

    def _put(self, element: ET.Element) -> None:
        marked = _MARKED.fullmatch((element.text or "").strip())
        if marked is None:
            raise ValueError(f"a text of a chart that no report has: {element.text!r}")
        text, whole = self._texts[int(marked[1])]
        element.text = text
        if text != whole:
            element.text = None
            title = ET.SubElement(element, f"{_SVG}title")
            title.text = whole
            title.tail = text


def _cut(text: str, most: int) -> str:
    if width(text) <= most:
        return text
    taken, room = "", most - 1
    for char in text:
        room -= width(char)
        if room < 0:
            break
        taken += char
    return taken + CUT


def _references(element: ET.Element) -> Iterator[str]:
    for key, value in element.attrib.items():
        if key == _LINK:
            yield value.removeprefix("#")
        else:
            yield from _REFERENCE.findall(value)


def _rename(element: ET.Element, name: str, used: set[str]) -> None:
    """Remove the ids without references, and put the chart's name before the others."""
    own = element.attrib.pop("id", None)
    if own in used:
        element.set("id", f"{name}-{own}")
    link = element.attrib.pop(_LINK, None)
    if link is not None:
        element.set("href", f"#{name}-{link.removeprefix('#')}")
    for key, value in element.attrib.items():
        if "url(#" in value:
            element.set(key, _REFERENCE.sub(rf"url(#{name}-\1)", value))
        elif key in {"d", "transform"}:
            element.set(key, _NUMBER.sub(lambda found: f"{float(found[0]):.2f}", " ".join(value.split())))


def _classes(element: ET.Element) -> None:
    """Turn the style into attributes, and its colours into classes: ``f-`` fills, ``s-`` strokes."""
    styles = dict(part.split(":", 1) for part in element.attrib.pop("style", "").split(";") if ":" in part)
    classes = []
    for name, value in ((name.strip(), value.strip()) for name, value in styles.items()):
        if name == "font":
            found = re.search(r"([\d.]+)px", value)
            element.set("font-size", found[1] if found else f"{LABEL:g}")
        if name not in _KEPT:
            continue
        if value in _TONES:
            classes.append(f"{name[0]}-{_TONES[value]}")
        elif value.startswith("#"):
            raise ValueError(f"a colour of a chart that no style sheet has: {value}")
        else:
            element.set(name, value)
    if classes:
        element.set("class", " ".join(classes))


@contextmanager
def quiet() -> Iterator[None]:
    """Import matplotlib and draw without its warnings about fonts and folders, and without the user's settings.

    The backend in MPLBACKEND is ignored: it may not exist, and none is needed.
    """
    logger = logging.getLogger("matplotlib")
    level = logger.level
    backend = os.environ.pop("MPLBACKEND", None)
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import matplotlib as mpl

            with mpl.rc_context():
                mpl.rcdefaults()
                mpl.rcParams["svg.fonttype"] = "none"
                mpl.rcParams["svg.hashsalt"] = "bloom"
                yield
    finally:
        logger.setLevel(level)
        if backend is not None:
            os.environ["MPLBACKEND"] = backend
