"""GRAPE for scikit-learn: a classifier that is fitted, cross-validated and searched like any other."""

from medgrape.sklearn.classifier import GrapeClassifier
from medgrape.sklearn.inputs import LabelledFilm, LabelledFilms, labelled_films

__all__ = ["GrapeClassifier", "LabelledFilm", "LabelledFilms", "labelled_films"]
