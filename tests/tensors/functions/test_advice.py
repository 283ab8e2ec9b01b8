"""Names of JAX, SciPy and NumPy's other modules are answered with ours, which are there."""

from __future__ import annotations

import copy
import pickle
import re
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import GradientError, UnknownNameError
from nnc_core.random import spellings
from nnc_core.spellings import ADVICE, ALIASES, OF_TENSORS
from nnc_core.spellings.elsewhere import ELSEWHERE, OF_FFT, OF_GENERATORS, OF_LINALG, OF_UPDATES

TABLES = {"main": (ELSEWHERE, nnc), "linalg": (OF_LINALG, nnc.linalg), "fft": (OF_FFT, nnc.fft),
          "random": (spellings.ADVICE, nnc.random), "generators": (OF_GENERATORS, nnc.Generator(0)),
          "updates": (OF_UPDATES, nnc.zeros(3).at[0]), "io": (nnc.io._ADVICE, nnc.io),
          "alone": (ADVICE, None), "tensors": (OF_TENSORS, None)}  # fmt: skip
"""What is advised, and where its names are looked for: those of the last are spellings of more than one place."""
SIZES = {"shape": (20_000,), "n": 5, "p": 0.25, "a": 3.0, "freedom": 6.0, "count": 2, "low": 1, "high": 6,
         "concentration": 2.0}  # fmt: skip
MEANS = {"chisquare": 6.0, "geometric": 4.0, "lognormal": np.exp(0.5), "maxwell": 2 * np.sqrt(2 / np.pi),
         "negative_binomial": 15.0, "pareto": 0.5, "power": 0.75, "rademacher": 0.0, "random_integers": 3.5,
         "rayleigh": np.sqrt(np.pi / 2), "standard_gamma": 2.0, "standard_t": 0.0, "weibull": 0.893}  # fmt: skip


def _mentioned(text: str, of: str) -> list[str]:
    return re.findall(rf"\b{of}\.([A-Za-z_]\w*(?:\.[a-z_]\w*)*)", text)


def _has(thing: Any, path: str) -> bool:
    for name in path.split("."):
        if not hasattr(thing, name):
            return False
        thing = getattr(thing, name)
    return True


@pytest.mark.parametrize("table", TABLES)
def test_what_is_advised_is_there_and_what_is_asked_for_is_not(table: str) -> None:
    texts, place = TABLES[table]
    for name, text in texts.items():
        assert all(_has(nnc, path) for path in _mentioned(text, "nnc")), text
        assert all(_has(nnc.zeros(3), path) for path in _mentioned(text, "x") if path != "shape"), text
        assert all(_has(nnc.Generator(0), path) for path in _mentioned(text, "g")), text
        if place is not None:
            with pytest.raises(UnknownNameError) as caught:
                getattr(place, name)
            assert f"try: {text}" in str(caught.value)


def test_a_tensor_is_made_no_variable_by_its_attribute() -> None:
    x, w = nnc.asarray([1.0, 2.0]), nnc.variable([1.0, 2.0])
    x.requires_grad, w.requires_grad = False, True  # as they are
    with pytest.raises(GradientError, match=r"(?s)test_advice\.py.*try: x = nnc\.variable\(x\)"):
        x.requires_grad = True
    with pytest.raises(GradientError, match=r"try: x = x\.detach\(\)"):
        w.requires_grad = False
    assert not x.requires_grad and w.requires_grad


def test_what_others_call_updates_is_done_as_advised() -> None:
    x, key, v = nnc.asarray([1.0, 4.0, 9.0]), np.asarray([0, 2]), 2.0
    wanted = {"apply": [1.0, 4.0, 3.0], "div": [0.5, 4.0, 4.5], "maximum": [2.0, 4.0, 9.0], "minimum": [1.0, 4.0, 2.0],
              "mul": [2.0, 4.0, 18.0], "pow": [1.0, 4.0, 81.0], "sub": [-1.0, 4.0, 7.0]}
    made = {name: eval(text, {"x": x, "key": key, "v": v, "f": nnc.sqrt}).tolist() for name, text in OF_UPDATES.items()}
    assert made == wanted


@pytest.mark.parametrize("name, wanted", [
    ("sgn", [-1.0, 1.0]), ("frac", [-0.5, 0.25]), ("squareplus", [0.5, 2.63019939]), ("standardize", [-1.0, 1.0]),
    ("hann_window", [0.0, 0.5, 1.0, 0.5]), ("hamming_window", [0.08, 0.54, 1.0, 0.54]),
    ("bartlett_window", [0.0, 0.5, 1.0, 0.5]), ("blackman_window", [0.0, 0.34, 1.0, 0.34]),
    ("multi_margin_loss", 4.75 / 2)])
def test_functions_written_out_are_what_they_are_for(name: str, wanted: Any) -> None:
    x = nnc.asarray([-1.5, 2.25])
    given = {"nnc": nnc, "x": x, "n": 4, "margin": 1.0, "picked": x[:1], "classes": 2}
    text = ADVICE[name].removeprefix("nnc.layer_norm, or ").removesuffix(", picked the right scores")
    np.testing.assert_allclose(eval(text, given).numpy(), wanted, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("module", ["linalg", "fft", "nn", "random"])
def test_functions_are_named_where_they_are(module: str) -> None:
    with pytest.raises(UnknownNameError, match=r"try: nnc\.softmax$"):
        getattr(getattr(nnc, module), "softmax")  # noqa: B009
    with pytest.raises(UnknownNameError) as caught:
        getattr(getattr(nnc, module), "nobody_knows")  # noqa: B009
    assert "try:" not in str(caught.value)


def test_methods_of_generators_are_named() -> None:
    with pytest.raises(UnknownNameError, match=r"try: nnc\.Generator\(seed\)\.normal"):
        nnc.random.normal  # noqa: B018
    g = nnc.Generator(3)
    again = pickle.loads(pickle.dumps(g)), copy.deepcopy(g)
    assert all(h.state == g.state for h in again)


@pytest.mark.parametrize("name", [k for k, v in OF_GENERATORS.items() if "shape" in v])
def test_distributions_are_drawn_as_advised(name: str) -> None:
    drawn = eval(OF_GENERATORS[name], {"nnc": nnc, "g": nnc.Generator(1), **SIZES}).numpy()
    assert drawn.shape == SIZES["shape"] and np.isfinite(drawn).all()
    if name in MEANS:
        assert drawn.mean() == pytest.approx(MEANS[name], abs=6 * drawn.std() / np.sqrt(drawn.size))


def test_old_names_and_those_of_jax_are_taken() -> None:
    x = nnc.asarray([0.5, -1.5])
    assert nnc.logistic(x).tolist() == nnc.sigmoid(x).tolist() and nnc.rem(x, 1.0).tolist() == [0.5, -0.5]
    assert bool(nnc.is_finite(x).all()) and nnc.product(x).item() == -0.75 and not nnc.alltrue(x > 0)
    assert all(_has(nnc, name) for name in ALIASES)
