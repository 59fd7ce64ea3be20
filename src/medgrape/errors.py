"""What goes wrong because of what somebody handed in, as one sentence that says what to do."""


class UserError(ValueError):
    """A mistake that a person can mend; commands print it alone and end with exit code 2."""
