"""C01-C31: the tests of MXNet's deferred compute restated, in every mode and on every device, against eager."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn
from nnc_core.base.errors import DeferredInplaceError, VariableRebindError
from tests.devices import another
from tests.semantics.modes import Host, check, check_recorded, exported, hosts, recorded, tensors, used_eagerly
from tests.semantics.networks import Decorated, MaskedSum, Selected, Weighted
from tests.support import same
from tests.tensors.faults import fails

ANNOUNCED = pytest.mark.filterwarnings("ignore:.* runs operator by operator")
"""Compiled code that cannot know a size says so once."""


def count() -> nnc.Tensor:
    """0 to 9."""
    return nnc.arange(10, dtype=nnc.float32)


def plus_range(a: nnc.Tensor) -> nnc.Tensor:
    b = a + nnc.arange(a.shape[0], dtype=nnc.float32)
    return b - 1


def reshapes(a: nnc.Tensor) -> list[nnc.Tensor]:
    b, c = nnc.reshape(a, (5, 2)), nnc.reshape(a, (2, 5))
    return [nnc.reshape(b, (-1,)), b + nnc.reshape(c, (5, -1)), nnc.sum(c, axis=1) / 2]


def slices(a: nnc.Tensor) -> nnc.Tensor:
    b = a[:5]
    return nnc.concat([b, b]) + a


def first_half(a: nnc.Tensor) -> nnc.Tensor:
    """One of two parts; the other is recorded, and nobody asks for it."""
    return [a[:5] + 1, a[5:] * 2][0]


def to_other_and_back(a: nnc.Tensor) -> nnc.Tensor:
    here = a.device.id
    other = another(here)
    there = a.to(other) - 1
    assert there.device.id == other
    return there.to(here) * 2


def test_c01_a_graph_without_inputs(device: str, mode: str) -> None:
    check(mode, lambda: plus_range(count()))


def test_c02_reshapes_without_inputs(device: str, mode: str) -> None:
    check(mode, lambda: reshapes(count()))


def test_c03_slices_without_inputs(device: str, mode: str) -> None:
    check(mode, lambda: slices(count()))


def test_c04_a_result_that_is_not_asked_for(device: str, mode: str) -> None:
    check(mode, lambda: first_half(count()))


def test_c05_operators_that_differ_in_an_attribute_only(device: str, mode: str) -> None:
    check(mode, lambda: [nnc.eye(4, k=1), nnc.eye(4, k=-1), nnc.eye(4, k=1) - nnc.eye(4, k=-1)])


def test_c06_one_input(device: str, mode: str) -> None:
    check(mode, plus_range, count())


def test_c07_reshapes(device: str, mode: str) -> None:
    check(mode, reshapes, count())


def test_c08_slices(device: str, mode: str) -> None:
    check(mode, slices, count())


def test_c09_a_result_of_an_input_that_is_not_asked_for(device: str, mode: str) -> None:
    check(mode, first_half, count())


def test_c10_in_place_on_a_lazy_array(device: str, mode: str) -> None:
    """Recorded wherever operations are, as the handle is pointed at another value eagerly; of what the caller of
    compiled code holds an error that changes nothing.  `out=` of the parent does not exist here; item assignment and
    the operators do."""

    def changed(x: nnc.Tensor) -> list[nnc.Tensor]:
        a = x + 1
        before = a * 1
        a[:5] = 0
        a += 1
        return [a, before]

    def refused(x: nnc.Tensor) -> nnc.Tensor:
        before = x._value
        with pytest.raises(NotImplementedError, match=r"\.at\[key\]\.set") as items:
            x[:5] = 0
        assert isinstance(items.value, DeferredInplaceError) and "test_c_cases.py" in str(items.value)
        with pytest.raises(NotImplementedError, match=r"x = x \+ y"):
            x += 1
        assert x._value is before
        return x + 1

    if mode == "jit":
        same(hosts(nnc.jit(refused)(count())), hosts(count() + 1))
    check(mode, changed, count())


def test_c11_an_input_as_an_output(device: str, mode: str) -> None:
    check(mode, lambda a: [a, a + 1, a], count())


def test_c12_export_is_pure(device: str, mode: str) -> None:
    """Two exports of one history are the same graph, each a whole of its own; computing in between changes nothing."""
    if mode == "jit":
        f = nnc.jit(plus_range)
        texts = [str(f.lower(count()).graph) for _ in range(2)]
        assert texts[0] == texts[1] and f.traces == 1
        return same(hosts(f(count())), hosts(plus_range(count())))
    a, ys = count(), []
    ys = recorded(lambda a: [plus_range(a), slices(a)], a)
    eager = [plus_range(a), slices(a)]

    def graphs() -> list[str]:
        found = [nnc.export({"a": a}, {"y": y}) for y in ys]
        assert [g.list_inputs() for g in found] == [["a"], ["a"]]
        assert [g.list_outputs() for g in found] == [["y"], ["y"]]
        return [str(g) for g in found]

    before = graphs()
    check_recorded(mode, ys, {"a": a}, eager)
    assert graphs() == before == graphs()


def test_c13_one_array_is_not_two_variables(device: str, mode: str) -> None:
    a, wanted = count(), plus_range(count())
    if mode == "jit":  # one tensor given twice is two arguments that happen to be equal
        return check(mode, lambda a, b: a * 2 - b, a, a)
    ys = recorded(plus_range, a)
    for _ in range(2):
        with pytest.raises(ValueError, match="same tensor") as refused:
            nnc.export({"a": a, "again": a}, {"y": ys[0]})
        assert isinstance(refused.value, VariableRebindError)
        assert "'a'" in str(refused.value) and "'again'" in str(refused.value)
        check_recorded(mode, ys, {"a": a}, [wanted])  # under one name, as often as one likes


def test_c14_to_another_device_and_back_without_inputs(device: str, mode: str) -> None:
    check(mode, lambda: to_other_and_back(count()))


def test_c15_to_another_device_and_back(device: str, mode: str) -> None:
    check(mode, to_other_and_back, count())


def test_c16_casts(device: str, mode: str) -> None:
    check(mode, lambda a: a.astype(nnc.int32) + nnc.zeros_like(a, dtype=nnc.int32), count() - 4.5)


@ANNOUNCED
def test_c17_a_shape_that_the_data_decide(device: str, mode: str) -> None:
    def positions(a: nnc.Tensor) -> nnc.Tensor:
        return nnc.nonzero(a)[0]

    a = count() - 3
    assert positions(a).tolist() == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    check(mode, positions, a)
    check(mode, lambda a: positions(a) * 2 + 1, a)  # work goes on behind an unknown dimension


def test_c17_the_static_shape_computes_nothing_the_shape_does(device: str) -> None:
    with nnc.deferred():
        y = nnc.nonzero(count() - 3)[0]
    assert y.static_shape == (None,) and y.is_deferred
    assert y.shape == (9,) and y.static_shape == (9,)
    same(hosts(y), [np.array([0, 1, 2, 4, 5, 6, 7, 8, 9])])


def test_c18_an_integer_index(device: str, mode: str) -> None:
    check(mode, lambda a: a[1] + 1, count())


def test_c19_integers_and_slices(device: str, mode: str) -> None:
    check(mode, lambda a: a.reshape(5, 2)[:2, 1] + 1, count())


def test_c20_a_tuple_of_integers(device: str, mode: str) -> None:
    assert count().reshape(5, 2)[(1, 1)].shape == ()
    check(mode, lambda a: a.reshape(5, 2)[(1, 1)] + 1, count())


@ANNOUNCED
def test_c21_a_boolean_index(device: str, mode: str) -> None:
    """The parent defines this case and forgets to run it."""
    host = np.array([False, True, True, True, True])

    def by_tensor(a: nnc.Tensor, mask: nnc.Tensor) -> nnc.Tensor:
        return a[mask].reshape((2, 2))

    a = nnc.arange(5, dtype=nnc.float32)
    assert by_tensor(a, nnc.asarray(host)).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    check(mode, by_tensor, a, nnc.asarray(host))
    check(mode, lambda a: a[a > 0].reshape((2, 2)) + 1, a)
    check(mode, lambda a: a[host].reshape((2, 2)), a, capture="constant")


def test_c22_a_list_as_an_index_is_a_constant(device: str, mode: str) -> None:
    assert count()[[1, 2, 3]].tolist() == [1.0, 2.0, 3.0]
    check(mode, lambda a: a[[1, 2, 3]] + 1, count(), capture="constant")


def test_c23_a_host_array_as_an_index_is_a_constant(device: str, mode: str) -> None:
    index = np.array([1, -2, 3])
    assert count()[index].tolist() == [1.0, 8.0, 3.0]
    check(mode, lambda a: a[index] * 2, count(), capture="constant")
    changed = index.copy()
    with nnc.deferred():
        y = count()[changed]
    changed[:] = 0
    assert y.tolist() == [1.0, 8.0, 3.0], "captured as it was when it was used"


def loss_and_gradients(net: nn.Module, x: nnc.Tensor) -> list[nnc.Tensor]:
    """Of the sum of squares, by all parameters and by x."""

    def loss(x: nnc.Tensor) -> nnc.Tensor:
        return nnc.sum(net(x) ** 2)

    value, by_parameters = nn.value_and_grad(net, loss)(x)
    return [value, *tensors(by_parameters), nnc.grad(loss)(x)]


def weights(net: nn.Module) -> dict[str, nnc.Tensor]:
    return {name: p.read() for name, p in net.named_parameters().items()}


def check_module(mode: str, net: nn.Module, x: nnc.Tensor) -> None:
    """Results, loss and gradients; parameters are inputs of the exported graph."""
    for f in (net, lambda x: loss_and_gradients(net, x)):
        check(mode, f, x, outside=weights(net))
    if mode == "jit":
        wanted = hosts(loss_and_gradients(net, x))
        net.hybridize()
        for _ in range(2):
            same(hosts(loss_and_gradients(net, x)), wanted)


def check_module_on_two_devices(mode: str, make: Any, device: str) -> None:
    other = another(device)
    host = np.linspace(-1, 1, 20, dtype=np.float32).reshape(2, 10)
    net = make()
    check_module(mode, net, nnc.asarray(host))
    net.to(other)
    assert all(p.device.id == other for p in net.parameters())
    with nnc.use_device(other):
        check_module(mode, net, nnc.asarray(host))


def test_c24_a_module(device: str, mode: str) -> None:
    check_module_on_two_devices(mode, Weighted, device)


def test_c25_a_module_of_a_decorated_class(device: str, mode: str) -> None:
    assert Decorated.__name__ == "Decorated" and Decorated is not Weighted
    check_module_on_two_devices(mode, Decorated, device)


def test_c26_a_parameter_without_a_shape_is_named(device: str, mode: str) -> None:
    """Our layers are given their sizes.  What does not fit is named: module, parameter or argument, shape, line."""
    with pytest.raises(ValueError, match=r"Linear: in_features is None, expected an integer"):
        nn.Linear(None, 10)
    net, x = Weighted(), nnc.ones((2, 10))
    wrong = net.state_dict() | {"dense.weight": np.zeros((3, 10), np.float32)}
    with pytest.raises(ValueError, match=r"Weighted.*'dense.weight' has shape \(3, 10\).*float32\[10,10\]"):
        net.load_state_dict(wrong)
    layer = net.dense

    def refused(x: nnc.Tensor) -> nnc.Tensor:
        with fails(ValueError, "Linear(10, 10)", "float32[2,5]", "10", line=False):
            layer(x[:, :5])
        return net(x)

    check(mode, lambda x: net(x), x, outside=weights(net))
    with nnc.deferred():
        y = refused(x)
    same(hosts(y), hosts(net(x)))
    same(hosts(nnc.jit(refused)(x)), hosts(net(x)))


def test_c27_sizes_from_an_array_that_is_not_computed(device: str, mode: str) -> None:
    """A network sized by its first input: that input has a shape, and still no value; the first call is in the mode."""
    with nnc.deferred():
        x = nnc.reshape(nnc.arange(12, dtype=nnc.float32), (4, 3)) / 12
        nets = [nn.Linear(int(x.shape[-1]), 2, generator=nnc.Generator(3)) for _ in range(2)]
    assert x.is_deferred, "nothing was computed to know a shape"
    if mode == "jit":
        found = hosts(nnc.jit(nets[0])(x))
        return same(found, hosts(nets[1](x)))
    ys = recorded(nets[0], x)
    inputs = {"x": x, **weights(nets[0])}
    check_recorded(mode, ys, inputs, [nets[1](x)])


SIGNS = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)


@ANNOUNCED
def test_c28_shapes_of_the_data_inside_a_module(device: str, mode: str) -> None:
    net, x = Selected(), nnc.asarray(SIGNS)
    chosen, places = net(x)
    assert chosen.shape == (3,) and places.tolist() == [0, 1, 2, 3, 4, 5]
    check(mode, net, x, outside=weights(net))
    check(mode, lambda x: _loss_of_selected(net, x), x, outside=weights(net))
    if mode == "jit":
        net.hybridize()
        for host in (SIGNS, -SIGNS, SIGNS * [[1], [0]], np.zeros_like(SIGNS)):
            given = nnc.asarray(host.astype(np.float32))
            found, plain = net(given), net.forward(given)
            same(hosts(found), hosts(plain))
            assert found[0].shape == (int((host > 0).sum()),) and found[1].shape == (np.count_nonzero(host),)


def _loss_of_selected(net: nn.Module, x: nnc.Tensor) -> list[nnc.Tensor]:
    def loss(x: nnc.Tensor) -> nnc.Tensor:
        return nnc.sum(net(x)[0] ** 2)

    value, by_parameters = nn.value_and_grad(net, loss)(x)
    return [value, *tensors(by_parameters), nnc.grad(loss)(x)]


@ANNOUNCED
def test_c29_static_parts_around_a_dynamic_one(device: str, mode: str) -> None:
    net, x = MaskedSum(), nnc.asarray(np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3))
    for chosen in ([True, False, True, True], [False] * 4, [True] * 4):
        check(mode, net, x, nnc.asarray(np.array(chosen)), outside=weights(net))
    if mode == "jit":
        net.hybridize()
        for chosen in ([True, False, True, True], [False] * 4, [True] * 4):
            mask = nnc.asarray(np.array(chosen))
            same(hosts(net(x, mask)), hosts(net.forward(x, mask)))


def widened(x: nnc.Tensor) -> nnc.Tensor:
    return nnc.concat([x, nnc.pad(x[:, 1:], ((0, 0), (0, 1)))])


def table(rows: int, columns: int) -> Host:
    return np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)


def test_c30_an_open_slice_bakes_no_size(device: str, mode: str) -> None:
    for columns in (16, 8):
        check(mode, widened, nnc.asarray(table(8, columns)))
    f = nnc.jit(widened)
    x = nnc.var_arr("x", (8, nnc.Dim("n")))
    graph = nnc.export({"x": x}, {"y": widened(x)}).compile(device)
    for columns in (16, 8, 16):
        host = table(8, columns)
        wanted = np.concatenate([host, np.pad(host[:, 1:], ((0, 0), (0, 1)))])
        same(hosts([f(nnc.asarray(host)), graph(x=host)["y"]]), [wanted, wanted])
    assert f.traces == 2


def test_c31_dimensions_of_no_length(device: str, mode: str) -> None:
    f = nnc.jit(lambda x: x[0])
    for length in (0, 2):
        host = np.arange(2 * 2 * 4 * length * 128, dtype=np.float32).reshape(2, 2, 4, length, 128)
        check(mode, lambda x: x[0], nnc.asarray(host))
        same(hosts(f(nnc.asarray(host))), [host[0]])


def test_the_harness_sees_what_it_is_for(device: str) -> None:
    """A wrong bit, a wrong dtype and a computation that is not recorded are each an error."""
    zero = [np.zeros(2, np.float32)]
    for other in ([-np.zeros(2, np.float32)], [np.zeros(2)], [np.zeros((2, 1), np.float32)], zero * 2):
        with pytest.raises(AssertionError):
            same(other, zero)
    with pytest.raises(AssertionError, match="has computed"):
        recorded(lambda: (nnc.ones(2) * 2).realize())
    a = count()
    with pytest.raises(AssertionError):
        check("deferred", lambda a: a * 2 if nnc.is_deferred_mode() else a * 3, a)
    ys = recorded(plus_range, a)
    same(exported(ys, {"a": a}), used_eagerly([plus_range(a)]))


