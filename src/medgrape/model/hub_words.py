"""What a model hub answered, as one sentence that says what to do."""

from medgrape.model.manifest import MANIFEST

_LOGIN = "log in with: hf auth login, or set HF_TOKEN"


def told_of_hub(error: Exception, wanted: str, file: str = MANIFEST) -> str:
    """Why something could not be fetched from the hub, or brought there."""
    from huggingface_hub import errors

    repository, _, revision = wanted.partition("@")
    sentences: tuple[tuple[type[Exception], str], ...] = (
        (errors.GatedRepoError, f"{repository} is gated: ask for access on its page of the hub, then {_LOGIN}."),
        (
            errors.RepositoryNotFoundError,
            f"The hub has no {repository}, or does not show it to you: check the name, or {_LOGIN}. There is no "
            f"folder {repository} here either.",
        ),
        (errors.RevisionNotFoundError, f"{repository} has no branch, tag or commit {revision!r}; see its history."),
        (errors.LocalEntryNotFoundError, _unreachable(wanted, file)),
        (errors.EntryNotFoundError, _lacking(wanted, file)),
        (errors.HFValidationError, f"{repository!r} is no name on a model hub; give org/name."),
        (errors.OfflineModeIsEnabled, "HF_HUB_OFFLINE forbids to ask the hub; unset it."),
        (errors.HfHubHTTPError, _answered(error)),
    )
    for kind, sentence in sentences:
        if isinstance(error, kind):
            return sentence
    if isinstance(error, ValueError):  # its word for a card that it cannot show
        return f"The hub refuses the model card; is the licence spelled as hubs do? {' '.join(str(error).split())}"
    return f"The hub could not be asked for {wanted} ({type(error).__name__}): check the network and HF_ENDPOINT."


def _unreachable(wanted: str, file: str) -> str:
    what = f"no folder {wanted} here" if file == MANIFEST else f"no {file} of {wanted}"
    return (
        f"There is {what} nor in the hub's cache, and the hub cannot be reached; check the path, the network and "
        "HF_HUB_OFFLINE."
    )


def _lacking(wanted: str, file: str) -> str:
    if file == MANIFEST:
        return f"{wanted} is on the hub, but no run of medgrape: it has no {MANIFEST}."
    return f"{wanted} lacks {file}, which its manifest names; ask whoever published it to push it again."


def _answered(error: Exception) -> str:
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status in (401, 403):
        return f"The hub does not let you do that; {_LOGIN}, with a token that may write if you push."
    return f"The hub answered {status or 'with an error'}; try again later."
