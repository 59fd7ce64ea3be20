"""Why the model says what it says, in pictures and figures."""
