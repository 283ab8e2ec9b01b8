"""The tree of modules: names, state, copies, text, and what makes compiled code trace again."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn
from nnc_core.base.errors import DTypeError, NotSupportedError, OperandError, ShapeError, StateError
from nnc_core.values.cell import Cell
from tests.nn.network import digits, small_lenet
from tests.support import to_the_bit


class Block(nn.Module):
    """Everything that an attribute may be."""

    def __init__(self) -> None:
        self.inner = nn.Linear(2, 3)
        self.scale = nn.Parameter(nnc.ones(3))
        self.calls = Cell(nnc.zeros((), dtype="int64"))
        self.generator = nnc.Generator(4)
        self.pair = (nn.Linear(3, 1, bias=False), nn.ReLU())
        self.again = self.inner
        self.width = 3

    def forward(self, x: Any) -> Any:
        y = self.inner(x) * self.scale.read()
        for layer in self.pair:
            y = layer(y)
        return y


def test_parts_are_found_by_name_and_shared_ones_once() -> None:
    block = Block()
    assert list(block.named_parameters()) == ["scale", "inner.weight", "inner.bias", "pair.0.weight"]
    assert list(block.named_buffers()) == ["calls", "generator"]
    assert [p.spec.shape for p in block.parameters()] == [(3,), (2, 3), (3,), (3, 1)]
    assert block.buffers()[1] is block.generator.key
    assert block.scale.name == "scale"


@pytest.mark.parametrize("holder", [lambda m: [m], lambda m: {"a": m}])
def test_a_module_in_a_list_is_an_error_and_not_forgotten(holder: Any) -> None:
    block = Block()
    block.more = holder(nn.Linear(1, 1))
    with pytest.raises(StateError, match=r"Block.more is a \w+ that holds a Linear(.|\n)*tuple or an nn.Sequential"):
        block.parameters()


def test_a_cycle_and_a_deep_tree_are_walked() -> None:
    parent, child = nn.Module(), nn.Linear(1, 1)
    parent.child, child.parent = child, parent
    assert list(parent.named_parameters()) == ["child.weight", "child.bias"]
    deep: nn.Module = nn.Linear(1, 1)
    for _ in range(5000):
        deep = nn.Sequential(deep)
    assert len(deep.parameters()) == 2
    assert repr(deep).count("\n") == 5000
    assert not deep.eval().training


def test_state_round_trip_changes_nothing_unless_all_fits() -> None:
    first, second = small_lenet(0), small_lenet(5)
    state = first.state_dict()
    assert state["4.generator"].dtype == np.uint64
    second.load_state_dict(state)
    assert all(np.array_equal(a, state[name]) for name, a in second.state_dict().items())
    x, _ = digits()
    np.testing.assert_array_equal(first(x).numpy(), second(x).numpy())


@pytest.mark.parametrize("change, error, words", [
    (lambda s: s.pop("weight"), StateError, r"Linear does not fit: missing weight\n.*it should have weight, bias"),
    (lambda s: s.update(other=np.ones(1)), StateError, "unexpected other"),
    (lambda s: s.update(weight=np.ones((3, 2), np.float32)), ShapeError, r"'weight' has shape \(3, 2\), .*\[2,3\]"),
    (lambda s: s.update(weight=np.ones((2, 3))), DTypeError, "'weight' has dtype float64"),
    (lambda s: s.update(weight=[[1.0]]), OperandError, "'weight' is list"),
])
def test_state_that_does_not_fit_changes_nothing(change: Any, error: type[Exception], words: str) -> None:
    layer = nn.Linear(2, 3)
    before = layer.state_dict()
    given = {name: a + 1 for name, a in before.items()}
    change(given)
    with pytest.raises(error, match=words):
        layer.load_state_dict(given)
    assert all(np.array_equal(a, before[name]) for name, a in layer.state_dict().items())


@to_the_bit
def test_copies_are_independent() -> None:
    model = small_lenet().hybridize()
    x, _ = digits()
    model.eval()
    before = model(x).numpy()
    for twin in (copy.deepcopy(model[1]), pickle.loads(pickle.dumps(model[1]))):
        assert type(twin.kernel) is nn.Parameter
        np.testing.assert_array_equal(twin.state_dict()["kernel"], model[1].state_dict()["kernel"])
        twin.kernel.write(twin.kernel.read() * 0)
    np.testing.assert_array_equal(copy.deepcopy(model)(x).numpy(), before)
    np.testing.assert_array_equal(model(x).numpy(), before)


def test_a_copy_keeps_what_is_shared() -> None:
    twin = copy.deepcopy(Block())
    assert twin.again is twin.inner
    assert list(twin.named_parameters()) == list(Block().named_parameters())


def test_moving_a_module(device: str) -> None:
    model = small_lenet().eval()
    x, _ = digits()
    expected = model(x).numpy()
    model.to("strict-nofloat64:0")
    assert {c.device.id for c in model.cells().values()} == {"strict-nofloat64:0"}
    np.testing.assert_allclose(model(x.to("strict-nofloat64:0")).numpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("given", [nnc.ones((2, 2)), np.ones((2, 2)), [[1.0, 1.0], [1.0, 1.0]], 1.0],
                         ids=["Tensor", "ndarray", "list", "float"])
def test_what_is_no_parameter_does_not_take_the_place_of_one(given: Any) -> None:
    layer = nn.Linear(2, 2)
    said = rf"Linear.weight is a Parameter, not a {type(given).__name__}(.|\n)*module.weight.write"
    with pytest.raises(OperandError, match=said):
        layer.weight = given
    layer.weight, layer.bias = nn.Parameter(np.ones((2, 2), np.float32)), None
    assert layer(nnc.ones((1, 2))).tolist() == [[2, 2]]


def test_parameters_are_floating_point() -> None:
    with pytest.raises(DTypeError, match="a parameter is floating-point"):
        nn.Parameter(nnc.asarray([1, 2]))


def test_a_module_without_forward_says_so() -> None:
    with pytest.raises(NotSupportedError, match="Module has no forward"):
        nn.Module()(1)


def test_text() -> None:
    model = nn.Sequential(nn.Conv2d(1, 2, 3, padding="SAME"), nn.Sequential(nn.Linear(4, 5), nn.Dropout(0.5)))
    assert repr(model) == ("Sequential()\n"
                           "  0: Conv2d(1, 2, (3, 3), padding='SAME')\n"
                           "  1: Sequential()\n"
                           "    0: Linear(4, 5)\n"
                           "    1: Dropout(0.5)")
    text = model.summary()
    assert "weight float32[4,5]" in text
    assert text.splitlines()[-1] == f"{9 * 2 + 2 + 4 * 5 + 5} trained numbers, 2 in buffers"


def test_repr_of_nested_tuples_is_indented_by_modules_only() -> None:
    assert repr(Block()).splitlines() == ["Block()", "  inner: Linear(2, 3)", "  pair.0: Linear(3, 1, bias=False)",
                                          "  pair.1: ReLU()"]


# ---- compiled code
def test_training_and_evaluation_are_traced_once_each() -> None:
    model = small_lenet(rate=0.5)
    run = nnc.jit(model)
    x, _ = digits()
    model.eval()
    quiet = run(x).numpy()
    np.testing.assert_allclose(quiet, model(x).numpy(), rtol=1e-5, atol=1e-6)
    model.train()
    assert not np.array_equal(run(x).numpy(), quiet)
    model.eval()
    np.testing.assert_array_equal(run(x).numpy(), quiet)
    assert run.traces == 2


def test_a_replaced_attribute_is_picked_up_by_compiled_code() -> None:
    block = Block()
    x = nnc.ones((1, 2))
    run = nnc.jit(block)
    run(x)
    run(x)
    assert run.traces == 1
    block.inner = nn.Linear(2, 3, generator=nnc.Generator(9))
    np.testing.assert_allclose(run(x).numpy(), block(x).numpy(), rtol=1e-5)
    assert run.traces == 2
    block.scale.write(nnc.asarray([1.0, -2.0, 3.0]))
    np.testing.assert_allclose(run(x).numpy(), block(x).numpy(), rtol=1e-5)
    assert run.traces == 2


def test_a_hybrid_module_computes_and_differentiates_the_same() -> None:
    model = nn.Sequential(nn.Linear(2, 3, generator=nnc.Generator(0)), nn.Tanh())
    x = nnc.ones((4, 2))
    both = nn.value_and_grad(model, lambda: (model(x) ** 2).sum())
    plain, (loss, grads) = model(x).numpy(), both()
    model.hybridize()
    np.testing.assert_allclose(model(x).numpy(), plain, rtol=1e-6)
    hybrid_loss, hybrid = both()
    np.testing.assert_allclose(hybrid_loss.numpy(), loss.numpy(), rtol=1e-6)
    for name, g in grads.items():
        np.testing.assert_allclose(hybrid[name].numpy(), g.numpy(), rtol=1e-5)
        assert abs(g.numpy()).max() > 0


def test_a_hybrid_module_differentiates_by_its_input() -> None:
    model = nn.Sequential(nn.Linear(2, 3, generator=nnc.Generator(0)), nn.Tanh())
    x = nnc.ones((4, 2))
    expected = nnc.grad(lambda x: model(x).sum())(x).numpy()
    np.testing.assert_allclose(nnc.grad(lambda x: model.hybridize()(x).sum())(x).numpy(), expected, rtol=1e-5)


def test_cells_are_found_again_when_an_attribute_deep_inside_is_set(device: str) -> None:
    inner = nn.Linear(2, 3)
    outer = nn.Sequential(nn.Sequential(inner), nn.ReLU())
    names = list(outer.cells())
    assert list(outer.cells()) == names and outer.cells() is not outer.cells()
    inner.extra = nn.Parameter(nnc.ones(2))
    assert len(outer.cells()) == len(names) + 1 and inner.extra in outer.cells().values()
    del inner.extra
    assert list(outer.cells()) == names


def test_a_module_put_into_a_list_is_refused_after_cells_were_found(device: str) -> None:
    class Listed(nn.Module):
        def __init__(self) -> None:
            self.layer, self.layers = nn.Linear(2, 2), list[nn.Module]()

    module = Listed()
    module.cells()
    module.layers.append(nn.Linear(2, 2))
    with pytest.raises(StateError, match="may change unseen"):
        module.cells()
