"""All suites by name, in the order of the report."""

from collections.abc import Collection, Sequence

from medgrape.errors import UserError, nearest
from medgrape.paper.suites import classes, facts, few_shot, heads, maps, safety
from medgrape.paper.suites.base import Suite

SUITES: dict[str, Suite] = {
    suite.name: suite
    for module in (classes, heads, safety, few_shot, maps, facts)
    for suite in vars(module).values()
    if isinstance(suite, Suite)
}
ALL = "all"


def chosen_suites(names: Sequence[str], others: Collection[str] = ()) -> tuple[Suite, ...]:
    """Return the suites of these names, or all; an error may suggest one of the ``others`` as well."""
    if names == [ALL]:
        return tuple(SUITES.values())
    for name in names:
        if name not in SUITES:
            raise UserError(f"There is no suite {name!r}{nearest(name, [*SUITES, ALL, *others])}.")
    return tuple(SUITES[name] for name in dict.fromkeys(names))
