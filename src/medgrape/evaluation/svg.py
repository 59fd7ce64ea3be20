"""A plot as a piece of a page: no names that clash, no style of its own, nothing that points outside."""

import io
import re
import xml.etree.ElementTree as Tree
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK = "#1b1d22"
"""Text and axes; on the page they take the colour of its text, light or dark."""

_SETTINGS: Any = {
    "svg.fonttype": "path",  # looks the same on every machine
    "svg.hashsalt": "medgrape",  # and the same file every time
    "text.parse_math": False,  # a dollar sign in a name is a dollar sign
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}
_LINK = re.compile(r"#(?=[A-Za-z_])")


@contextmanager
def plotting() -> Iterator[None]:
    """Plots made in here share one look."""
    import matplotlib as mpl  # slow to import

    with mpl.rc_context(_SETTINGS):
        yield


def inline(figure: "Figure", name: str, alt: str) -> Markup:
    """The figure as an ``<svg>`` element; ``name`` keeps its inner names apart from those of other plots.

    Styles become attributes, so that the page's policy may forbid every style but its own.
    """
    written = io.StringIO()
    figure.savefig(written, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    root = Tree.fromstring(written.getvalue())  # noqa: S314 (written by ourselves just now)
    _cleaned(root, name)
    for size in ("width", "height", "version"):
        root.attrib.pop(size, None)
    root.attrib |= {"role": "img", "aria-label": alt, "class": "plot"}
    return Markup(Tree.tostring(root, encoding="unicode"))  # noqa: S704 (written by a writer that escapes)


def _cleaned(element: Tree.Element, name: str) -> None:
    element.tag = _local(element.tag)
    element.tail = element.text = None  # blanks alone: letters are drawn as paths
    styles = dict(_styles(element.attrib.pop("style", "")))
    element.attrib = {
        _local(key): _renamed(_local(key), value, name) for key, value in (element.attrib | styles).items()
    }
    for child in list(element):
        if _local(child.tag) in {"metadata", "style"}:
            element.remove(child)
        else:
            _cleaned(child, name)


def _styles(written: str) -> Iterator[tuple[str, str]]:
    for part in filter(str.strip, written.split(";")):
        key, value = part.split(":", 1)
        yield key.strip(), "currentColor" if value.strip() == INK else value.strip()


def _renamed(key: str, value: str, name: str) -> str:
    if key == "id":
        return f"{name}-{value}"
    return _LINK.sub(f"#{name}-", value) if key == "href" or "url(#" in value else value


def _local(tag: str) -> str:
    return tag.rsplit("}", 1)[-1]
