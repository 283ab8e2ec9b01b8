"""Every layer trained three steps: eager and compiled agree in losses, weights, running statistics and random keys."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from tests.devices import devices
from tests.optim.layer_networks import ACTIVATIONS, BEYOND, NETWORKS, OWL, STUBS, trained

NEURONS = 44


def test_every_neuron_of_owl_is_here() -> None:
    assert len(OWL) == NEURONS
    assert (len(STUBS), len(ACTIVATIONS)) == (5, 13)
    assert len(NETWORKS) == NEURONS + 5 + 13 + len(BEYOND)


def places() -> Iterator[Any]:
    """Each layer on each device; OpenCL, where a kernel is compiled for each command, has all in test-all alone."""
    for on, (dtype, rtol), case in product(devices(), (("float32", 1e-5), ("float64", 1e-10)), NETWORKS):
        slow = on == "opencl:0" and (dtype == "float64" or case not in OWL)
        yield pytest.param(on, dtype, rtol, case, marks=[pytest.mark.slow] * slow,
                           id=f"{on}-{dtype}-{case.replace(' ', '-')}")


@pytest.mark.filterwarnings("ignore:scatter has no kernel")
@pytest.mark.parametrize("on, dtype, rtol, case", list(places()))
def test_each_layer_eager_and_compiled(on: str, dtype: str, rtol: float, case: str) -> None:
    with nnc.use_device(on):
        losses, network = trained(case, dtype, compiled=False)
        found, twin = trained(case, dtype, compiled=True)
    np.testing.assert_allclose(found, losses, rtol=rtol)
    assert len(set(losses)) == 3
    wanted = network.state_dict()
    assert wanted.keys() == twin.state_dict().keys()
    for name, x in twin.state_dict().items():
        if x.dtype.kind == "f":
            np.testing.assert_allclose(x, wanted[name], rtol=rtol, atol=rtol, err_msg=name)
        else:  # random keys: the same masks were drawn
            np.testing.assert_array_equal(x, wanted[name], err_msg=name)
