"""What scikit-learn hands over, as columns: films, labels, and what each label is called in a data set."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from medgrape.errors import UserError
from medgrape.estimator.labelled_films import LabelledFilm
from medgrape.spelling import nearest


def column(given: Any, what: str, films: int | None = None) -> np.ndarray:  # noqa: ANN401 (lists, arrays, tables)
    """One value for each of so many films; a table of a single column is that column."""
    try:
        found = np.asarray(given)
    except ValueError:  # lists of several lengths
        found = np.empty(())
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.ndim != 1:
        raise UserError(f"Give {what} as one list, with one entry for each film.")
    if films is not None and len(found) != films:
        raise UserError(f"There are {films} films and {len(found)} {what}; give one for each film.")
    return found


def label_column(y: Any, films: int) -> np.ndarray:  # noqa: ANN401
    """Labels of at least two kinds, none of them missing."""
    if any(_is_missing(label) for label in column(np.asarray(y, dtype=object), "y", films)):
        raise UserError("Some labels are missing; leave films of unknown class out.")
    labels = column(y, "y")
    try:
        kinds = np.unique(labels)
    except TypeError:
        raise UserError(
            "These labels cannot be put in an order; give all of them as text, or all as numbers."
        ) from None
    if len(kinds) < 2:
        raise UserError("All films have the same label; a classifier needs at least two classes to choose from.")
    return labels


def class_names(films: Sequence[Any], labels: np.ndarray) -> dict[Any, str]:
    """Label -> class: as the films themselves call it where each label is one class of theirs, else as it is written.

    Some of scikit-learn's tools number the labels before they hand them on; the classes keep their names all the same.
    """
    written = {label: str(label) for label in np.unique(labels).tolist()}
    if not all(isinstance(film, LabelledFilm) for film in films):
        return written
    pairs = {(label, film.record.class_name) for film, label in zip(films, labels.tolist(), strict=True)}
    known = {label: name for label, name in pairs if name}
    return (
        {label: known[label] for label in written} if len(pairs) == len(known) == len(set(known.values())) else written
    )


def normal_names(normal: Any, classes: Sequence[str]) -> set[str]:  # noqa: ANN401 (whatever somebody set)
    """The classes that show nothing; a name that is none of the classes would change what is learnt, unseen."""
    if isinstance(normal, str):
        raise UserError(f"normal is a list of classes, so write normal=[{normal!r}].")
    names = {str(name) for name in normal}
    for name in sorted(names - set(classes)):
        raise UserError(f"normal names {name!r}, which is none of the labels{nearest(name, classes)}.")
    return names


def _is_missing(label: Any) -> bool:  # noqa: ANN401
    try:
        return label is None or bool(label != label)  # true of NaN alone
    except TypeError:  # pandas' own word for it cannot be compared
        return True
