"""What can go wrong between us and a server, each as one sentence."""

from medgrape.errors import UserError


class PacsError(UserError):
    """Something that a server did, or did not."""


class AwayError(PacsError):
    """It does not answer, or broke off: worth trying again later."""


class BarredError(PacsError):
    """It does not let us in: not worth trying again before somebody changed something."""


class MissingError(PacsError):
    """It does not have what it was asked for."""


class RefusalError(PacsError):
    """It answered with something that is of no use."""


class SecretError(UserError):
    """A password or a token that cannot be had; as a rule somebody is just writing its file anew."""


def refusal(name: str, status: int) -> PacsError:
    """What an answer's status says, where it is not 2xx."""
    if status in (401, 403):
        return BarredError(
            f"{name} does not let us in (HTTP {status}); check user, password or token that pacs.toml names."
        )
    if status in (404, 410):
        return MissingError(f"{name} does not have that (HTTP {status}); check the url in pacs.toml if it is new.")
    if status in (408, 425, 429, 500, 502, 503, 504, 507):
        return AwayError(f"{name} is in trouble or too busy (HTTP {status}); try again later, or see its own log.")
    if 300 <= status < 400:
        return RefusalError(
            f"{name} sends us to another address (HTTP {status}), which is not followed; put the right url into "
            "pacs.toml."
        )
    return RefusalError(f"{name} refuses to answer (HTTP {status}); its own log says why.")
