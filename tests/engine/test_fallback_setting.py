"""What `config.fallback` makes of operators that a device has no kernel for."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import FallbackWarning, NotSupportedError
from tests.engine.test_refused_programs import computes, stack_that

X = np.linspace(-2, 2, 5, dtype=np.float32)
WAYS = {"eager": lambda x: nnc.tanh(x), "compiled": lambda x: nnc.jit(lambda x: nnc.tanh(x))(x)}
both_ways = pytest.mark.parametrize("f", [pytest.param(f, id=name) for name, f in WAYS.items()])
Function = Callable[[nnc.Tensor], nnc.Tensor]


@both_ways
def test_an_error_names_operator_device_line_and_the_way_out(f: Function) -> None:
    with nnc.use_device(stack_that(computes("tanh"))):
        x = nnc.asarray(X)
        with nnc.config.using(fallback="error"), pytest.raises(NotSupportedError) as caught:
            f(x)
        for part in ("tanh has no kernel on strict-refusing:0", "the driver does not build tanh", "tanh(float32[5])",
                     "device: strict-refusing:0", "at: test_fallback_setting.py", 'config.fallback = "warn"'):
            assert part in str(caught.value)
        assert nnc.exp(x).numpy().shape == (5,)
        with pytest.warns(FallbackWarning, match="tanh has no kernel"):
            np.testing.assert_allclose(f(x).numpy(), np.tanh(X), rtol=1e-6)


@both_ways
def test_the_host_is_silent_where_that_was_asked_for(f: Function) -> None:
    with nnc.use_device(stack_that(computes("tanh"))), nnc.config.using(fallback="host"), warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(f(nnc.asarray(X)).numpy(), np.tanh(X), rtol=1e-6)


def test_operators_whose_place_is_the_host_are_no_fallback() -> None:
    with nnc.use_device("strict:0"), nnc.config.using(fallback="error"):
        assert nnc.nonzero(nnc.asarray([0.0, 2.0, 3.0]))[0].tolist() == [1, 2]


def test_parts_of_what_is_fused_go_alone() -> None:
    """A fused command that is refused is taken apart first, which is no fallback."""
    with nnc.use_device(stack_that(lambda nest: nest.name == "fused")), nnc.config.using(fallback="error"):
        f = nnc.jit(lambda x: nnc.exp(nnc.tanh(x)) + 1)
        np.testing.assert_allclose(f(nnc.asarray(X)).numpy(), np.exp(np.tanh(X)) + 1, rtol=1e-6)
