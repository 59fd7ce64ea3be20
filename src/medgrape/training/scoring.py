"""The figures that models are chosen by, on validation films."""

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor


def mean_auc(scores: Float[Tensor, "n k"], labels: Float[Tensor, "n k"]) -> float:
    """Mean area under the ROC curve over the columns that have both answers; 0.5, a coin, where none has."""
    from sklearn.metrics import roc_auc_score  # slow to import

    areas = []
    for score, label in zip(scores.T.numpy(), labels.T.numpy(), strict=True):
        known = ~np.isnan(label)
        if len(set(label[known])) == 2:
            areas.append(float(roc_auc_score(label[known], score[known])))
    return float(np.mean(areas)) if areas else 0.5


def macro_f1(predicted: Int[Tensor, " n"], truth: Int[Tensor, " n"]) -> float:
    """Mean F1 over the classes that occur, as in every evaluation."""
    from sklearn.metrics import f1_score  # slow to import

    occurring = sorted(set(truth.tolist()))
    return float(f1_score(truth, predicted, labels=occurring, average="macro", zero_division=0.0))


def balanced_accuracy(predicted: Int[Tensor, " n"], truth: Int[Tensor, " n"]) -> float:
    """Mean share of right answers over the groups that occur."""
    groups = set(truth.tolist())
    return float(np.mean([float((predicted[truth == group] == group).float().mean()) for group in groups]))
