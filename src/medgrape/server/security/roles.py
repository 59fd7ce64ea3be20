"""Three roles, each of which may do all that the ones before it may."""

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What somebody may do."""

    READER = "reader"
    """Uploads films, reads them, corrects their own studies."""
    CURATOR = "curator"
    """Also sees everybody's studies, teaches and curates models and chooses the one in use."""
    ADMIN = "admin"
    """Also keeps users and tokens, and reads the log."""

    def covers(self, other: "Role") -> bool:
        """Whether this role may do what the other may."""
        order = list(Role)
        return order.index(self) >= order.index(other)


def lesser(one: Role, other: Role) -> Role:
    """The one that may do less."""
    return other if one.covers(other) else one


@dataclass(frozen=True)
class User:
    """Who is asking."""

    id: int
    name: str
    role: Role
    session: str | None = None
    """Hash of the session's key where a cookie told who it is: only then can other pages forge a request."""
