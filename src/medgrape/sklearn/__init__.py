"""A model as scikit-learn knows models: fit, predict, and be searched over."""

from medgrape.sklearn.classifier import GrapeClassifier
from medgrape.sklearn.inputs import LabelledFilm, LabelledFilms, labelled_films

__all__ = ["GrapeClassifier", "LabelledFilm", "LabelledFilms", "labelled_films"]
