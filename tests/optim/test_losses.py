"""Owl's losses refuse targets that would be broadcast, and say which loss takes class numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.base.errors import ShapeError
from nnc_core.optim.owl import Params, batch, loss

ELEMENTWISE = [loss.Hinge(), loss.L1Norm(), loss.L2Norm(), loss.Quadratic(), loss.CrossEntropy()]
SCORES = nnc.asarray(np.random.default_rng(0).uniform(0.1, 1, size=(3, 3)).astype(np.float32))


@pytest.mark.parametrize("kind", ELEMENTWISE, ids=lambda kind: type(kind).__name__)
@pytest.mark.parametrize("compiled", [False, True])
def test_class_numbers_of_as_many_rows_as_classes_are_refused(kind: Any, compiled: bool) -> None:
    f = nnc.jit(kind) if compiled else kind
    with pytest.raises(ShapeError, match=rf"(?s){type(kind).__name__}: .*int64.*SoftmaxCrossEntropy.*one_hot") as found:
        f(nnc.asarray([0, 2, 1]), SCORES)
    assert "test_losses.py" in str(found.value)


@pytest.mark.parametrize("kind", ELEMENTWISE, ids=lambda kind: type(kind).__name__)
@pytest.mark.parametrize("shape", [(3,), (3, 1), (1, 3), (1,), (), (3, 3, 1)])
def test_targets_of_another_shape_are_refused(kind: Any, shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match=r"(?s)expected the shape of the prediction.*reshape"):
        kind(nnc.ones(shape), SCORES)


@pytest.mark.parametrize("kind", ELEMENTWISE, ids=lambda kind: type(kind).__name__)
def test_host_arrays_are_targets(kind: Any) -> None:
    ones = np.ones((3, 3), np.float32)
    assert kind(ones, SCORES).item() == kind(nnc.asarray(ones), SCORES).item()
    with pytest.raises(ShapeError):
        kind(ones[0], SCORES)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("rows", [3, 5])
def test_training_on_class_numbers_by_the_default_loss_names_the_right_one(rows: int, compiled: bool) -> None:
    network = nn.Sequential(nn.Linear(4, 3), nn.Softmax())
    params = Params(batch=batch.Full(), verbosity=False, compiled=compiled)
    with pytest.raises(ShapeError, match=r"(?s)CrossEntropy: the target is int64\[.*loss\.SoftmaxCrossEntropy\(\)"):
        optim.train(network, params, np.ones((rows, 4), np.float32), np.arange(rows) % 3)
