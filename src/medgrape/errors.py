"""What goes wrong because of what somebody handed in, as one sentence that says what to do."""


class UserError(ValueError):
    """A mistake that a person can mend; commands print it alone and end with exit code 2."""


def told_of_file(error: OSError) -> str:
    """What the machine says of a file, or of a full disk, as one sentence."""
    return f"Cannot use {error.filename or 'a file'}: {error.strerror or error}."


def first_line(error: Exception) -> str:
    """What an error says, on one line."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
