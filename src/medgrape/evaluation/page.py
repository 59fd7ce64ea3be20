"""The report as one page that opens without a network: nothing on it comes from anywhere else."""

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
from medgrape.evaluation.verdicts import shown, versus_fixed
from medgrape.files import flat

PACKAGE = "medgrape.evaluation"
REFUSED_SHOWN = 20
_SHADES = 5


def page(
    told: dict[str, Any],
    localisation: Localisation,
    readings: Readings,
    pictures: Mapping[str, UInt8[np.ndarray, "side side"]],
) -> str:
    """The whole page. Every figure on it is looked up in ``told``, the same plain data that ``report.json`` holds."""
    return rendered(
        "report.html",
        told,
        versus_fixed=versus_fixed,
        shade=_shade,
        reliability=plots.reliability_plot(told),
        roc=plots.roc_plot(told, readings),
        pointing=plots.pointing_plot(told),
        dispersion=plots.dispersion_plot(told),
        examples=examples(localisation, readings, pictures),
        facts=flat(told["facts"]),
        data_facts=flat(told["data_facts"]),
        refused=list(told["refused"].items())[:REFUSED_SHOWN],
    )


def rendered(template: str, told: dict[str, Any], **beside: object) -> str:
    """A template that looks its figures up in ``told``, with what stands beside it."""
    return render_template(template, {"told": told, "figure": lambda path: _figure(told, path), **beside})


def render_template(
    template: str, given: Mapping[str, object], *, package: str = PACKAGE, sheets: Sequence[str] = ()
) -> str:
    """A template of a package of ours, in the style and policy that all pages share; ``sheets`` add to the style."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined  # slow to import

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader(PACKAGE)]), autoescape=True,
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    style = _sheet(PACKAGE, "report.css") + "".join(_sheet(package, name) for name in sheets)
    return environment.get_template(template).render(
        style=Markup(style),  # noqa: S704 (files of ours)
        policy=_policy(style),
        **given,
    )


def _sheet(package: str, name: str) -> str:
    return resources.files(package).joinpath("templates", name).read_text("utf-8")


def _figure(told: dict[str, Any], path: str) -> Markup:
    """The figure at a path such as ``classification.classes.0.f1``, shown short and kept whole for machines."""
    value: Any = told
    for step in path.split("."):
        value = value[int(step)] if isinstance(value, list) else value[step]
    if value is None:
        return Markup('<span class="none" title="not defined">–</span>')
    text = shown(value) if isinstance(value, float) else f"{value:,}"
    return Markup('<data data-figure="{}" value="{!r}">{}</data>').format(path, value, text)


def _policy(style: str) -> str:
    """What the browser may do: show what is on the page, with this one style, and nothing else at all."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _shade(count: int, row: list[int]) -> int:
    """How dark a cell of the confusion matrix is: its share of the row, from 0 to 5."""
    return -(-count * _SHADES // sum(row)) if sum(row) else 0
