"""What is wrong with a data set, gathered by kind."""

from collections.abc import Sequence
from dataclasses import dataclass, field

_EXAMPLES = 3


@dataclass
class Complaints:
    """What is missing or contradictory, gathered by kind with the first few examples."""

    found: dict[str, list[str]] = field(default_factory=dict)

    def add(self, kind: str, example: str) -> None:
        """One more of a kind."""
        self.found.setdefault(kind, []).append(example)

    def join(self, others: "Complaints") -> None:
        """All of somebody else's, too."""
        for kind, examples in others.found.items():
            self.found.setdefault(kind, []).extend(examples)

    def __bool__(self) -> bool:
        return bool(self.found)

    def lines(self) -> tuple[str, ...]:
        """A line for each kind: how many, and which first."""
        return tuple(_line(kind, examples) for kind, examples in self.found.items())


def _line(kind: str, examples: Sequence[str]) -> str:
    more = f" and {len(examples) - _EXAMPLES:,} more" if len(examples) > _EXAMPLES else ""
    return f"{len(examples):,} {kind}: {', '.join(examples[:_EXAMPLES])}{more}"
