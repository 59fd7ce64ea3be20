"""Shows properties that ``medgrape.records.once`` decorates as attributes in the Python reference."""

from typing import Any

from griffe import Attribute, Class, Extension, Function

ONCE = "once"


class OnceProperties(Extension):
    """Turn such methods into attributes before the pages are written."""

    def on_class_members(self, *, cls: Class, **_: Any) -> None:  # noqa: ANN401 (the signature of griffe)
        """Run for each class after its members are known."""
        for name, member in list(cls.members.items()):
            if isinstance(member, Function) and any(one.callable_path.endswith(ONCE) for one in member.decorators):
                cls.members[name] = self._attribute(member)

    def _attribute(self, member: Function) -> Attribute:
        shown = Attribute(
            member.name, lineno=member.lineno, endlineno=member.endlineno, annotation=member.returns,
            docstring=member.docstring, parent=member.parent,
        )  # fmt: skip
        shown.labels = {"property"}
        return shown
