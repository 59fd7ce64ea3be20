"""HTML page of a report: one file that loads nothing from elsewhere."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

import numpy as np
from jaxtyping import UInt8
from markupsafe import Markup

from medgrape.evaluation import plots
from medgrape.evaluation.examples import examples
from medgrape.evaluation.localisation import Localisation
from medgrape.evaluation.readings import Readings
from medgrape.evaluation.summary import format_figure, versus_fixed
from medgrape.files import flat

PACKAGE = "medgrape.evaluation"
REFUSED_SHOWN = 20
_SHADES = 5


def report_page(
    report: dict[str, Any],
    localisation: Localisation,
    readings: Readings,
    pictures: Mapping[str, UInt8[np.ndarray, "side side"]],
) -> str:
    """Render the page. All its figures come from ``report``, the content of ``report.json``."""
    return render_report(
        "report.html",
        report,
        versus_fixed=versus_fixed,
        shade=_shade,
        reliability=plots.reliability_plot(report),
        roc=plots.roc_plot(report, readings),
        pointing=plots.pointing_plot(report),
        dispersion=plots.dispersion_plot(report),
        examples=examples(localisation, readings, pictures),
        facts=flat(report["facts"]),
        data_facts=flat(report["data_facts"]),
        refused=list(report["refused"].items())[:REFUSED_SHOWN],
    )


def render_report(template: str, report: dict[str, Any], **values: object) -> str:
    """Render a template that looks up its figures in ``report`` by their path."""
    return render_template(template, {"report": report, "figure": lambda path: _figure(report, path), **values})


def render_template(
    template: str, values: Mapping[str, object], *, package: str = PACKAGE, sheets: Sequence[str] = ()
) -> str:
    """Render a template of a package with the style and policy that all pages share; ``sheets`` extend the style."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined  # slow to import

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader(PACKAGE)]), autoescape=True,
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    style = _style_sheet(PACKAGE, "report.css") + "".join(_style_sheet(package, name) for name in sheets)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    # the browser may show the content of the page with this one style, and load or run nothing else
    policy = f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    trusted_style = Markup(style)  # noqa: S704 (our own files)
    return environment.get_template(template).render(style=trusted_style, policy=policy, **values)


def _style_sheet(package: str, name: str) -> str:
    return resources.files(package).joinpath("templates", name).read_text("utf-8")


def _figure(report: dict[str, Any], path: str) -> Markup:
    """Format the figure at a path such as ``classification.classes.0.f1``, with the exact value as an attribute."""
    value: Any = report
    for step in path.split("."):
        value = value[int(step)] if isinstance(value, list) else value[step]
    if value is None:
        return Markup('<span class="none" title="not defined">–</span>')
    text = format_figure(value) if isinstance(value, float) else f"{value:,}"
    return Markup('<data data-figure="{}" value="{!r}">{}</data>').format(path, value, text)


def _shade(count: int, row: list[int]) -> int:
    """Return the shade of a cell of the confusion matrix, from 0 to 5, by its share of the row."""
    return -(-count * _SHADES // sum(row)) if sum(row) else 0
