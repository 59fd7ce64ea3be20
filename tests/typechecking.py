"""Configures the check of shapes and types during the tests: an ``int`` is accepted as a ``float``."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
