"""Loading with transformers, without its reports."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def quiet_loading(logging: Any) -> Iterator[None]:  # noqa: ANN401 (a module of an optional package)
    """No table of left-over tensors and no bars: what matters in them is checked, and raised, by whoever loads."""
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
