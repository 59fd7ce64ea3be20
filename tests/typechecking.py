"""How shapes and types are checked while the tests run: an ``int`` may stand for a ``float``, as in all of Python."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
