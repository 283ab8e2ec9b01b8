"""Fused commands around library code: what is offered, what is taken, by which code, with which bits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import nnc_core as nnc
from nnc_core.base.config import config
from nnc_core.base.errors import ResumeWarning
from nnc_core.engine import ComputationGraph
from nnc_core.operator import Nodes
from nnc_core.symbol import Node
from tests.engine.conftest import call, floats
from tests.engine.fused_pairs import assert_fused_as_apart
from tests.engine.panels import AROUND, GREEDY, Greedy, Panels, compiled, stack_with
from tests.engine.test_fusion import commands
from tests.sizes import WHOLE
from tests.support import numbers

MANY = settings(max_examples=2000 if WHOLE else 50)
GIVEN = {"a": numbers(5, 3), "b": numbers(3, 6, seed=1), "bias": numbers(6, seed=2), "r": numbers(5, 6, seed=3)}


def operands(F: Nodes) -> dict[str, Node]:
    return {name: floats(F, name, *array.shape) for name, array in GIVEN.items()}


def results(run: ComputationGraph) -> list[bytes]:
    found = call(run, **{name: GIVEN[name] for name in run.graph.inputs})
    return [found[name].tobytes() for name in sorted(found)]


@pytest.mark.parametrize("codegen", [False, True], ids=["library", "nests"])
def test_what_follows_is_offered_as_it_grows_and_the_largest_is_taken(codegen: bool) -> None:
    panels = Panels("matmul")
    stack = stack_with(panels, codegen=codegen)
    F = stack.operator.open()
    inputs = operands(F)
    y = F.relu(F.add(F.multiply(F.matmul(inputs["a"], inputs["b"]), inputs["r"]), inputs["bias"]))
    run = compiled(stack, inputs, F.exp(y))
    assert commands(run) == ["fused(matmul multiply add relu)", "exp"]
    assert panels.offered[:4] == ["matmul multiply", "matmul multiply add", "matmul multiply add relu",
                                  "matmul multiply add relu exp"]
    together = results(run)
    assert panels.ran == ["matmul multiply add relu"]
    assert results(compiled(stack, inputs, F.exp(y), fusion=False)) == together
    assert panels.ran[1:] == ["matmul"]


@pytest.mark.parametrize("pools", [False, True], ids=["convolution", "with-pool"])
def test_convolutions_and_pools_are_anchors_too(pools: bool) -> None:
    """The pool begins a group of its own, unless the convolution's code knows it."""
    stack = stack_with(Panels("conv", known=AROUND | {"max_pool"} if pools else AROUND), Panels("max_pool"))
    F = stack.operator.open()
    host = {"x": numbers(2, 6, 6, 3), "k": numbers(3, 3, 3, 4, seed=1), "bias": numbers(4, seed=2)}
    inputs = {name: floats(F, name, *array.shape) for name, array in host.items()}
    y = F.conv(inputs["x"], inputs["k"], strides=(1, 1), padding=((1, 1), (1, 1)), dilation=(1, 1), groups=1,
               layout="NHWC")
    y = F.max_pool(F.relu(F.add(y, inputs["bias"])), window=(2, 2), strides=(2, 2), padding=((0, 0), (0, 0)),
                   dilation=(1, 1), layout="NHWC")
    run = compiled(stack, inputs, F.multiply(y, 2.0))
    apart = ["fused(conv add relu)", "fused(max_pool multiply)"]
    assert commands(run) == (["fused(conv add relu max_pool multiply)"] if pools else apart)
    alone = compiled(stack, inputs, F.multiply(y, 2.0), fusion=False)
    assert call(run, **host)["y0"].tobytes() == call(alone, **host)["y0"].tobytes()


def test_a_group_may_pass_one_that_was_refused() -> None:
    """Swish reads the product twice: with one of its readers there are two results."""
    panels = Panels("matmul", known=AROUND | {"sigmoid"}, accepts=lambda p: str(p) != "matmul add")
    stack = stack_with(panels)
    F = stack.operator.open()
    inputs = operands(F)
    x = F.add(F.matmul(inputs["a"], inputs["b"]), inputs["bias"])
    run = compiled(stack, inputs, F.multiply(x, F.sigmoid(x)))
    assert commands(run) == ["fused(matmul add sigmoid multiply)"]
    assert panels.offered[0] == "matmul add" and "matmul add sigmoid" not in panels.offered


def test_what_steps_of_a_recurrence_ask_is_asked_once() -> None:
    """Equal groups of one graph, accepted or not: library code that had to answer hundreds of times took long to
    compile for."""
    panels = Panels("matmul", accepts=lambda p: "add" not in str(p))
    stack = stack_with(panels)
    F = stack.operator.open()
    weights, bias, h = floats(F, "w", 4, 4), floats(F, "b", 4), floats(F, "h", 3, 4)
    inputs = {"w": weights, "b": bias, "h": h}
    for _ in range(6):
        h = F.tanh(F.add(F.relu(F.matmul(h, weights)), bias))
    run = compiled(stack, inputs, h)
    assert commands(run).count("fused(matmul relu)") == 6
    assert [panels.offered.count(asked) for asked in ("matmul relu add", "tanh matmul relu")] == [1, 1]


def test_what_is_read_elsewhere_stays_a_result() -> None:
    stack = stack_with(Panels("matmul"))
    F = stack.operator.open()
    inputs = operands(F)
    product = F.matmul(inputs["a"], inputs["b"])
    assert commands(compiled(stack, inputs, F.relu(product), product)) == ["matmul", "relu"]
    run = compiled(stack, inputs, F.relu(product), F.cumulative_sum(product, axis=0))
    assert sorted(commands(run)) == ["cumulative_sum", "matmul", "relu"]


def test_what_comes_before_is_offered_where_nothing_else_reads_it() -> None:
    panels = Panels("matmul")
    stack = stack_with(panels)
    F = stack.operator.open()
    inputs = operands(F)
    dropped = F.multiply(inputs["a"], 0.5)
    y = F.relu(F.matmul(F.negative(dropped), inputs["b"]))
    run = compiled(stack, inputs, y)
    assert commands(run) == ["fused(multiply negative matmul relu)"]
    assert results(run) == results(compiled(stack, inputs, y, fusion=False))
    run = compiled(stack, inputs, F.relu(F.matmul(dropped, inputs["b"])), dropped)
    assert sorted(commands(run)) == ["fused(matmul relu)", "multiply"]


def test_two_products_share_no_follower() -> None:
    """The residual joins the first of them, and the other is an input."""
    stack = stack_with(Panels("matmul"))
    F = stack.operator.open()
    inputs = operands(F)
    one, two = F.matmul(inputs["a"], inputs["b"]), F.matmul(F.negative(inputs["a"]), inputs["b"])
    run = compiled(stack, inputs, F.relu(F.add(one, two)))
    assert sorted(commands(run)) == ["fused(matmul add relu)", "fused(negative matmul)"]
    assert results(run) == results(compiled(stack, inputs, F.relu(F.add(one, two)), fusion=False))


def test_the_explanation_says_what_was_refused_and_why() -> None:
    stack = stack_with(Panels("matmul"))
    F = stack.operator.open()
    inputs = operands(F)
    text = compiled(stack, inputs, F.exp(F.matmul(inputs["a"], inputs["b"]))).explain()
    assert "[panels of matmul; " in text
    assert "; panels of matmul takes no matmul exp: it knows no exp]" in text


def test_the_code_is_that_of_the_product_by_itself() -> None:
    """Library code that does not run the product alone is not asked for more."""
    taken, other = Panels("matmul", fuses=False), Panels("matmul")
    other.name = "other"
    stack = stack_with(taken, other)
    F = stack.operator.open()
    inputs = operands(F)
    assert commands(compiled(stack, inputs, F.relu(F.matmul(inputs["a"], inputs["b"])))) == ["matmul", "relu"]
    assert not other.offered


def test_pins_of_the_product_hold_for_the_group() -> None:
    panels = Panels("matmul")
    stack = stack_with(panels)
    F = stack.operator.open()
    inputs = {name: floats(F, name, 64, 64) for name in ("a", "b")}  # which are not too small for NumPy
    y = F.relu(F.matmul(inputs["a"], inputs["b"]))
    run = compiled(stack, inputs, y)
    used = stack.engine.decider.decisions()
    assert {name for key, name in used.items() if key.startswith(("matmul", "fused"))} == {panels.name}
    assert not stack.engine.decider.obstacles(used)
    stack.engine.decider.pin({key: "numpy" for key in used if key.startswith("matmul")}, strict=True)
    assert commands(compiled(stack, inputs, y)) == ["matmul", "relu"]
    stack.engine.decider.pin(used, strict=True)
    assert commands(compiled(stack, inputs, y)) == commands(run) == ["fused(matmul relu)"]
    with pytest.warns(ResumeWarning, match="goes on by other code"):
        lost = stack_with()
        lost.engine.decider.pin(used, strict=False)
        compiled(lost, inputs, y)


def test_a_group_that_the_driver_refuses_is_offered_smaller() -> None:
    panels = Panels("matmul", builds=lambda program: len(program.steps) < 3)
    stack = stack_with(panels)
    F = stack.operator.open()
    inputs = operands(F)
    y = F.relu(F.add(F.matmul(inputs["a"], inputs["b"]), inputs["bias"]))
    run = compiled(stack, inputs, y)
    assert commands(run) == ["fused(matmul add)", "relu"]
    assert results(run) == results(compiled(stack, inputs, y, fusion=False))


@pytest.mark.filterwarnings("ignore::nnc_core.base.errors.FallbackWarning")
@pytest.mark.parametrize("codegen", [False, True], ids=["library", "nests"])
@given(seed=st.integers(0, 2**32))
@example(seed=385352343)
@MANY
def test_random_graphs_keep_every_bit(codegen: bool, seed: int) -> None:
    """Around library code that wants blocks and takes what a seed draws, on devices with and without nests."""
    stack = stack_with(*[Greedy(name, seed) for name in sorted(GREEDY)], codegen=codegen)
    assert_fused_as_apart(seed, stack)


@pytest.mark.parametrize("codegen", [False, True], ids=["library", "nests"])
def test_training_gives_the_same_bits(codegen: bool) -> None:
    """Through loops and branches, by the library code and by NumPy."""
    panels = Panels("matmul", known=AROUND | {"divide", "max"})
    stack = stack_with(panels, codegen=codegen)

    def trained(fusion: bool) -> list[np.ndarray]:  # type: ignore[type-arg]
        with nnc.use_device(stack), config.using(fusion=fusion, deterministic=True):
            x, labels = nnc.asarray(numbers(6, 5)), nnc.asarray(np.arange(6) % 3)
            weights = [nnc.asarray(numbers(*s, seed=i)) for i, s in enumerate(((5, 4), (4,), (4, 4), (4, 3)))]

            def loss(w: list[nnc.Tensor]) -> nnc.Tensor:
                h = nnc.relu(x @ w[0] + w[1])
                (h,) = nnc.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, nnc.tanh(v @ w[2] + v)), (0, h))[1:]
                return nnc.mean(nnc.cross_entropy(h @ w[3], labels))

            @nnc.jit
            def step(w: list[nnc.Tensor]) -> list[nnc.Tensor]:
                return [a - 0.1 * g for a, g in zip(w, nnc.grad(loss)(w), strict=True)]

            for _ in range(3):
                weights = step(weights)
            return [w.numpy() for w in weights]

    together, apart = trained(True), trained(False)
    assert any(" " in ran for ran in panels.ran)
    assert [w.tobytes() for w in together] == [w.tobytes() for w in apart]
