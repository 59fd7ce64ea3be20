"""A small class of films, and a model that learnt from them."""

from pathlib import Path

import pytest
import torch
from schooling import small

from medgrape.data.sources.phantom import PhantomOrder, draw_dataset
from medgrape.data.splits import SplitRule
from medgrape.training.run import Order, train


@pytest.fixture(scope="session")
def ward(tmp_path_factory) -> Path:
    """A prepared data set of 48 drawn films."""
    folder = tmp_path_factory.mktemp("ward") / "films"
    draw_dataset(
        PhantomOrder(films=48, seed=5, size=64), folder, SplitRule(validation=0.25, test=0.2, seed=0), workers=1
    )
    return folder


@pytest.fixture(scope="session")
def graduate(ward, tmp_path_factory) -> Path:
    """A run that was trained without disturbance."""
    torch.set_num_threads(1)
    return train(Order(small(), ward, tmp_path_factory.mktemp("runs") / "undisturbed"))
