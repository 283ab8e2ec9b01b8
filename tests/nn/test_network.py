"""Networks of handles: what is recorded, called, cut, shared, printed and refused."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.base.errors import (
    AttributeValueError,
    DTypeError,
    OperandError,
    ShapeError,
    StateError,
    UnconnectedError,
)
from tests.support import drawn, near, same


class Parts:
    """A network of two inputs and two outputs, and its modules."""

    def __init__(self) -> None:
        g = nnc.Generator(5)
        self.conv, self.dense = nn.Conv2d(1, 3, 3, generator=g), nn.Linear(3, 4, generator=g)
        self.side, self.head = nn.Linear(2, 4, generator=g), nn.Linear(4, 4, generator=g)
        image, extra = nn.Input((8, 8, 1), name="image"), nn.Input((2,), name="extra")
        seen = nn.GlobalAvgPool2d()(nn.ReLU()(self.conv(image).named("stem")))
        both = nn.Add()(self.dense(seen), self.side(extra))
        self.net = nn.Network((image, extra), {"scores": self.head(both), "again": self.head(nn.Tanh()(both))})

    def expected(self, image: nnc.Tensor, extra: nnc.Tensor) -> dict[str, nnc.Tensor]:
        both = self.dense(nnc.relu(self.conv(image)).mean((1, 2))) + self.side(extra)
        return {"scores": self.head(both), "again": self.head(nnc.tanh(both))}


IMAGE, EXTRA = (3, 8, 8, 1), (3, 2)


# ---- handles
def test_shapes_are_known_when_a_module_is_called_and_nothing_is_computed() -> None:
    drop, norm = nn.Dropout(0.5, nnc.Generator(1)), nn.BatchNorm(1)
    before = [drop.generator.state, norm.state_dict()]
    x = nn.Input((8, 8, 1))
    y = nn.Conv2d(1, 6, 3, strides=2)(drop(norm(x)))
    assert str(y.spec) == "float32[batch,3,3,6]" and y.ndim == 4 and y.dtype == nnc.float32
    assert drop.generator.state == before[0]
    for name, a in norm.state_dict().items():
        np.testing.assert_array_equal(a, before[1][name], err_msg=name)
    assert repr(x) == "<handle Input float32[batch,8,8,1]>"
    assert repr(y.named("stem")) == "<handle stem float32[batch,3,3,6]>"
    assert nn.Input((3,), "int64", batch=4).shape == (4, 3)
    assert nn.Input((3,), batch=None).shape == (3,)
    assert str(nn.Input(("length", 5)).spec) == "float32[batch,length,5]"


def test_wrong_shapes_are_errors_where_a_module_is_called() -> None:
    x = nn.Input((8, 8, 1))
    with pytest.raises(ShapeError, match=r"Conv2d\(3, 2, \(3, 3\)\).*channels .* should be 3, not 1"):
        nn.Conv2d(3, 2, 3)(x)
    with pytest.raises(ShapeError, match="Linear"):
        nn.Linear(3, 2)(x)


def test_arithmetic_is_recorded() -> None:
    a, b = nn.Input((2,)), nn.Input((2,))
    net = nn.Network([a, b], [a + b, a - 1, 1 - a, -a * 2, 2 / (b * b), a**2, 3 ** b])
    x, y = drawn(4, 2), drawn(4, 2, seed=1)
    for found, wanted in zip(net(x, y), (x + y, x - 1, 1 - x, -x * 2, 2 / (y * y), x**2, 3**y), strict=True):
        near(found, wanted)
    square = nn.Input((3, 3))
    m = drawn(2, 3, 3)
    near(nn.Network(square, square @ square)(m), m @ m)


@pytest.mark.parametrize("use", [
    nnc.tanh, lambda h: nnc.ones(2) + h, nnc.asarray, bool, list, lambda h: h + nnc.ones(2)])
def test_a_handle_is_no_tensor_and_says_what_to_do(use: Any) -> None:
    with pytest.raises(TypeError) as caught:
        use(nn.Input((2,)))
    assert "nn.Function" in str(caught.value) or "unsupported operand" in str(caught.value)


def test_functions_by_name() -> None:
    a, b = nn.Input((2,)), nn.Input((3,))
    joined = nn.Function("concat", axis=-1)([a, b])
    net = nn.Network((a, b), nn.Function("softmax")(joined))
    x, y = drawn(4, 2), drawn(4, 3)
    same(net(x, y), nnc.softmax(nnc.concat([x, y], axis=-1)))
    assert [n.name for n in net.nodes] == ["input", "input_1", "concat", "softmax"]
    assert repr(nn.Function("concat", axis=-1)) == "Function('concat', axis=-1)"
    with pytest.raises(TypeError, match="no function 'save_graph' of arrays"):
        nn.Function("save_graph")


# ---- networks
@pytest.mark.parametrize("mode", ["eager", "jit", "hybrid", "deferred", "exported"])
def test_it_computes_what_its_modules_do(mode: str) -> None:
    parts, image, extra = Parts(), drawn(*IMAGE), drawn(*EXTRA, seed=1)
    net, expected = parts.net, parts.expected(image, extra)
    if mode == "deferred":
        with nnc.deferred():
            found = net(image, extra)
    elif mode == "exported":
        with nnc.deferred():
            found = net(image, extra)
            graph = nnc.export(inputs={"image": image, "extra": extra}, outputs=dict(found), capture="constant")
        found = graph.compile()(image=image, extra=extra)
    else:
        run = nnc.jit(net) if mode == "jit" else net.hybridize() if mode == "hybrid" else net
        found = run(image, extra)
        near(run(image[:2], extra[:2])["scores"], expected["scores"][:2])
    assert list(found) == ["scores", "again"]
    for name, y in expected.items():
        near(found[name], y)


def test_how_it_is_called() -> None:
    parts, image, extra = Parts(), drawn(*IMAGE), drawn(*EXTRA)
    expected = parts.net(image, extra)["scores"]
    for found in (parts.net((image, extra)), parts.net([image, extra]), parts.net({"image": image, "extra": extra}),
                  parts.net(image=image, extra=extra), parts.net(extra=extra, image=image),
                  parts.net(image, extra=extra)):
        same(found["scores"], expected)
    a, b = nn.Input((2,)), nn.Input((2,))
    net = nn.Network({"left": a, "right": b}, a - b)
    x, y = drawn(3, 2), drawn(3, 2, seed=1)
    same(net({"right": y, "left": x}), x - y)
    same(net(x, y), x - y)


def test_a_module_called_twice_is_there_once() -> None:
    parts = Parts()
    assert list(parts.net.named_parameters()) == [
        "stem.kernel", "stem.bias", "linear.weight", "linear.bias", "linear_1.weight", "linear_1.bias",
        "linear_2.weight", "linear_2.bias"]
    assert parts.net.stem is parts.conv and parts.net.linear_2 is parts.head
    assert [n.name for n in parts.net.nodes] == [
        "image", "extra", "stem", "relu", "globalavgpool2d", "linear", "linear_1", "add", "linear_2", "tanh",
        "linear_2@2"]
    assert parts.net.get_node("linear_2@2").module is parts.head
    assert parts.net.get_node("add").inputs == ("linear", "linear_1")


def test_names_do_not_depend_on_what_was_made_before() -> None:
    assert Parts().net.state_dict().keys() == Parts().net.state_dict().keys()
    assert str(Parts().net) == str(Parts().net)


def test_weights_are_trained_in_both_ways() -> None:
    image, extra = drawn(*IMAGE), drawn(*EXTRA, seed=1)
    losses = []
    for eager in (True, False):
        net = Parts().net
        both = nn.value_and_grad(net, lambda net=net: sum((y**2).mean() for y in net(image, extra).values()))
        step = optim.make_step(both, optim.Adam(net.named_parameters(), 0.05), eager=eager)
        losses.append([float(step()) for _ in range(4)])
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)
    assert losses[0][-1] < losses[0][0]


def test_networks_within_networks_and_sequences() -> None:
    inner = Parts().net
    image, extra = nn.Input((8, 8, 1)), nn.Input((2,))
    found = inner(image, extra)
    outer = nn.Network((image, extra), nn.Softmax()(found["scores"] + found["again"]))
    x, y = drawn(*IMAGE), drawn(*EXTRA)
    both = inner(x, y)
    near(outer(x, y), nnc.softmax(both["scores"] + both["again"]))
    assert "network.stem.kernel" in outer.named_parameters()
    assert [n.name for n in outer.nodes][2] == "network"
    h = nn.Input((4,))
    model = nn.Sequential(nn.Linear(3, 4), nn.Network(h, nn.ReLU()(h)), nn.Linear(4, 2))
    assert model(nnc.ones((5, 3))).shape == (5, 2)


def test_modules_with_several_results_and_other_arguments() -> None:
    x = nn.Input(("length", 3))
    lengths = nn.Input((), "int64")
    lstm = nn.LSTM(3, 2, generator=nnc.Generator(0))
    y, (h, c) = lstm(x, lengths=lengths)
    net = nn.Network([x, lengths], {"y": y, "h": h})
    data, counts = drawn(2, 4, 3), nnc.asarray([4, 2])
    expected, (last, _) = lstm(data, lengths=counts)
    found = net(data, counts)
    same(found["y"], expected), same(found["h"], last)
    assert net.output_names == ["lstm:0", "lstm:1"]
    assert net.output_shapes["lstm:1"][2] == 2
    same(net.subnetwork("lstm:2")(data, counts), lstm(data, lengths=counts)[1][1])
    assert c.spec.shape[2] == 2


def test_a_deep_network() -> None:
    x = h = nn.Input((2,))
    for _ in range(1500):
        h = h + 1
    net = nn.Network(x, h)
    assert net(nnc.zeros((1, 2))).tolist() == [[1500.0, 1500.0]]
    assert len(copy.deepcopy(net).nodes) == 1501
    assert len(net.subnetwork("add").nodes) == 2


def test_copies_are_whole_and_independent() -> None:
    parts, image, extra = Parts(), drawn(*IMAGE), drawn(*EXTRA)
    before = parts.net(image, extra)["scores"].numpy()
    for twin in (copy.deepcopy(parts.net), pickle.loads(pickle.dumps(parts.net))):
        np.testing.assert_array_equal(twin(image, extra)["scores"].numpy(), before)
        twin.stem.kernel.write(twin.stem.kernel.read() * 0)
        assert not np.array_equal(twin(image, extra)["scores"].numpy(), before)
    np.testing.assert_array_equal(parts.net(image, extra)["scores"].numpy(), before)


def test_memory_of_what_nobody_needs_is_given_back() -> None:
    """Each value goes after its last use, outputs and inputs that are used later stay."""
    x = nn.Input((2,))
    a = nn.ReLU()(x)
    b = nn.Tanh()(a)
    net = nn.Network(x, [a, nn.Add()(b, x)])
    assert [set(done) for done in net.topology.last_uses] == [set(), set(), {0, 2}]


def test_an_output_may_be_an_input_and_come_twice() -> None:
    x = nn.Input((2,))
    y = nn.ReLU()(x)
    given = drawn(3, 2)
    first, second, third = nn.Network(x, (x, y, y))(given)
    same(first, given), same(second, nnc.relu(given)), same(third, nnc.relu(given))


# ---- parts of networks
def test_subnetworks_share_weights() -> None:
    parts, image, extra = Parts(), drawn(*IMAGE), drawn(*EXTRA)
    features = parts.net.subnetwork("globalavgpool2d")
    assert features.input_shapes.keys() == {"image"} and features.input_shape[1:] == (8, 8, 1)
    assert features.stem is parts.conv
    near(features(image), nnc.relu(parts.conv(image)).mean((1, 2)))
    parts.conv.kernel.write(parts.conv.kernel.read() * 2)
    near(features(image), nnc.relu(parts.conv(image)).mean((1, 2)))
    stem, scores = parts.net.subnetwork(["stem", "linear_2"])(image, extra)
    near(stem, parts.conv(image)), near(scores, parts.expected(image, extra)["scores"])
    named = parts.net.subnetwork({"a": "tanh"})(image, extra)
    assert list(named) == ["a"]


def test_a_subnetwork_may_begin_anywhere() -> None:
    parts = Parts()
    head = parts.net.subnetwork(["linear_2", "linear_2@2"], inputs="add")
    given = drawn(3, 4)
    first, second = head(given)
    near(first, parts.head(given)), near(second, parts.head(nnc.tanh(given)))
    assert head.input_shapes.keys() == {"add"}
    with pytest.raises(UnconnectedError, match="the outputs need 'extra', which is no input"):
        parts.net.subnetwork("add", inputs="stem")
    with pytest.raises(UnconnectedError, match="no output depends on the input 'extra'"):
        parts.net.subnetwork("stem", inputs=["image", "extra"])


def test_a_network_may_begin_at_any_handle() -> None:
    """Also between the results of one module."""
    x = nn.Input((4, 3))
    lstm = nn.LSTM(3, 2)
    y, (h, c) = lstm(x)
    tail = nn.Network(y, nn.ReLU()(y))
    assert list(tail.input_shapes) == ["input"]
    given = drawn(2, 4, 2)
    same(tail(given), nnc.relu(given))
    cut = nn.Network([x, y], {"sum": nn.Function("sum")(y), "h": h})
    data = drawn(2, 4, 3)
    found = cut(data, given)
    near(found["sum"], given.sum()), same(found["h"], lstm(data)[1][0])
    again = cut.subnetwork({"sum": "sum"})
    near(again(given)["sum"], given.sum())
    assert c.shape


@pytest.mark.parametrize("make, error, words", [
    (lambda x, y: nn.Network(x, nn.Add()(x, y)), UnconnectedError,
     r"the outputs need <handle Input float32\[batch,2\]>, which is no input(.|\n)*add it to the inputs"),
    (lambda x, y: nn.Network([x, y], nn.ReLU()(x)), UnconnectedError, "no output depends on the input"),
    (lambda x, y: nn.Network([x, x], nn.ReLU()(x)), OperandError, "twice among the inputs"),
    (lambda x, y: nn.Network(x, nnc.ones(2)), OperandError, "outputs of a network are handles, not a Tensor"),
    (lambda x, y: nn.Network(nnc.ones(2), x), OperandError, "inputs of a network are handles, not a Tensor"),
    (lambda x, y: nn.Network(x, []), OperandError, "outputs of a network are handles, not nothing"),
    (lambda x, y: nn.Network(x, nn.ReLU()(nn.Tanh()(x).named("a")).named("a")), AttributeValueError,
     "two nodes are called 'a'"),
    (lambda x, y: nn.Network(x, nn.ReLU()(x).named("train")), AttributeValueError,
     "'train', as something that every network has"),
    (lambda x, y: nn.Network(x, nn.ReLU()(x).named("nodes")), AttributeValueError, "a node is called 'nodes'"),
    (lambda x, y: nn.Network(x, nn.ReLU()(x).named("topology")), AttributeValueError, "a node is called 'topology'"),
    (lambda x, y: nn.ReLU()(x).named("a.b"), AttributeValueError, "'a.b' is no name of a node"),
    (lambda x, y: nn.Lambda(lambda a: 3)(x), OperandError, "Lambda: it gave a int"),
    (lambda x, y: nn.Add()(x, nn.Input((3,))), ShapeError, "do not broadcast together"),
])
def test_what_is_no_network(make: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make(nn.Input((2,)), nn.Input((2,)))


@pytest.mark.parametrize("call, error, words", [
    (lambda n: n(drawn(*IMAGE)), OperandError, "called without extra(.|\n)*its inputs are image, extra"),
    (lambda n: n(drawn(*IMAGE), drawn(*EXTRA), drawn(1)), OperandError, "takes 2 inputs, not 3"),
    (lambda n: n(image=drawn(*IMAGE), other=drawn(*EXTRA)), OperandError, "without extra and with other"),
    (lambda n: n(drawn(*IMAGE), np.ones((3, 2))), OperandError, "input 'extra' is ndarray, not a tensor"),
    (lambda n: n(drawn(3, 8, 8, 2), drawn(*EXTRA)), ShapeError,
     r"input 'image' is float32\[3,8,8,2\], expected float32\[batch,8,8,1\]"),
    (lambda n: n(drawn(3, 8, 8), drawn(*EXTRA)), ShapeError, "input 'image' is"),
    (lambda n: n(drawn(*IMAGE), drawn(4, 2)), ShapeError, r"'extra' is float32\[4,2\], .* with batch = 3"),
    (lambda n: n(drawn(*IMAGE), drawn(*EXTRA).astype("float64")), DTypeError, "'extra' is float64"),
    (lambda n: n.get_node("conv"), OperandError, "no node 'conv'(.|\n)*there are image, extra, stem"),
    (lambda n: n.subnetwork("conv"), OperandError, "no node 'conv'"),
    (lambda n: n.input_shape, StateError, "2 inputs(.|\n)*input_shapes"),
])
def test_what_a_network_refuses(call: Any, error: type[Exception], words: str) -> None:
    net = Parts().net
    with pytest.raises(error, match=words):
        call(net)


def test_a_part_that_changed_is_seen() -> None:
    net, image, extra = Parts().net, drawn(*IMAGE), drawn(*EXTRA)
    run = nnc.jit(net)
    before = run(image, extra)["scores"].numpy()
    net.stem = nn.Conv2d(1, 3, 3)
    assert not np.array_equal(run(image, extra)["scores"].numpy(), before)
    net.stem = nn.Lambda(lambda x: (x, x))
    with pytest.raises(StateError, match="node 'stem' gives"):
        net(image, extra)
    net.stem = 3
    with pytest.raises(StateError, match="part 'stem' is int, not a module"):
        net(image, extra)


# ---- text
def test_the_table_of_nodes() -> None:
    x = nn.Input((4,))
    linear = nn.Linear(4, 4)
    net = nn.Network(x, linear(nn.Dropout(0.5)(linear(x))))
    assert str(net).splitlines() == [
        "node      module        gives             takes    parameters",
        "-------------------------------------------------------------",
        "input     Input         float32[batch,4]",
        "linear    Linear(4, 4)  float32[batch,4]  input            20",
        "dropout   Dropout(0.5)  float32[batch,4]  linear",
        "linear@2  Linear(4, 4)  float32[batch,4]  dropout      shared",
        "outputs: linear@2",
    ]


def test_a_summary_shows_what_each_module_gives_without_computing() -> None:
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(72, 3), nn.Dropout(0.5, nnc.Generator(3)))
    lines = model.summary(("batch", 8, 8, 1)).splitlines()
    assert [line.split()[2] for line in lines[2:-1]] == [
        "float32[batch,3]", "float32[batch,6,6,2]", "float32[batch,72]", "float32[batch,3]", "float32[batch,3]"]
    assert lines[-1] == f"{20 + 219} trained numbers, 2 in buffers"
    assert model[3].generator.state == (3, 0)
    assert "float32[5,6,6,2]" in model.summary(nnc.ones((5, 8, 8, 1)))
    assert "gives" not in model.summary()
    with pytest.raises(ShapeError, match="Linear"):
        model.summary((2, 9, 9, 1))
    with pytest.raises(OperandError, match="3 is no shape"):
        model.summary(3)
    integers = nn.Sequential(nn.Embedding(5, 2)).summary(nnc.TensorSpec((3, 4), np.dtype("int64")))
    assert "float32[3,4,2]" in integers
    net = Parts().net
    assert "float32[batch,4] (2 calls)" in net.summary()
    assert "float32[7,4] (2 calls)" in net.summary((7, 8, 8, 1), (7, 2))


def test_a_summary_of_frozen_parameters() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    text = model.freeze("0.*").summary()
    assert "weight float32[2,3] frozen" in text
    assert text.splitlines()[-1] == "4 trained numbers, 0 in buffers, 9 frozen"


def test_a_picture() -> None:
    dot = Parts().net.to_dot()
    assert dot.startswith("digraph network {") and dot.endswith("}")
    assert dot.count("->") == 12 and r'label="stem\nConv2d\nfloat32[batch,6,6,3]"' in dot


@pytest.mark.parametrize(("shape", "kind", "words"), [
    ((-3,), ValueError, "negative dimension"), ((2.5,), TypeError, "float is no dimension"), (3, TypeError, "no shape"),
])  # fmt: skip
def test_shapes_that_are_none(shape: Any, kind: type[Exception], words: str) -> None:
    for ask in (lambda: nn.Linear(3, 2).summary(shape), lambda: nn.Input(shape, batch=None)):
        with pytest.raises(kind, match=words) as refused:
            ask()
        assert isinstance(refused.value, nnc.Error)
