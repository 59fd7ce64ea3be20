"""A model as scikit-learn knows models: fit, predict, and be searched over."""

from medgrape.estimator.classifier import GrapeClassifier
from medgrape.estimator.labelled_films import LabelledFilm, LabelledFilms, labelled_films

__all__ = ["GrapeClassifier", "LabelledFilm", "LabelledFilms", "labelled_films"]
