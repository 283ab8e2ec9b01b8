"""Sizes that depend on data, and copies between devices, inside compiled graphs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import FallbackWarning, NotSupportedError, ShapeError
from nnc_core.recording.staged import AT_ONCE, KEPT, StagedProgram
from nnc_core.type import is_data_dependent
from tests.support import same
from tests.tensors.faults import fails
from tests.tensors.values.data_dependent import HOST, OTHER, arrays


# ---- compiled
def _c28(x: nnc.Tensor) -> list[nnc.Tensor]:
    return [x[x > 2] * 2, nnc.flatnonzero(x > 1), nnc.sum(x)]


def test_c28_mask_and_indices_in_one_compiled_graph(device: str) -> None:
    x = nnc.asarray(HOST)
    with nnc.deferred():
        outputs = dict(zip("abc", _c28(x), strict=True)) | {"d": nnc.grad(lambda x: nnc.sum(x[x > 2] ** 2))(x)}
    run = nnc.export({"x": x}, outputs).compile(device)
    assert isinstance(run.program, StagedProgram)
    for host in (HOST, HOST - 3, HOST * 0, HOST + 9, HOST):
        found = run(x=host)
        y = nnc.asarray(host)
        same([found[k].numpy() for k in "abc"], arrays(*_c28(y)))
        np.testing.assert_allclose(found["d"].numpy(), np.where(host > 2, 2 * host, 0))


def test_c29_static_parts_around_a_mask(device: str) -> None:
    def f(x: nnc.Tensor) -> nnc.Tensor:
        chosen = nnc.tanh(x * 2)[x > 0]
        return nnc.sum(chosen * nnc.sum(chosen)) + nnc.sum(x)

    jitted = nnc.jit(f)
    for host in (HOST, -HOST, HOST):
        x = nnc.asarray(host)
        same(arrays(jitted(x)), arrays(f(x)))
    assert jitted.traces == 1


def test_counting_after_counting(device: str) -> None:
    def f(x: nnc.Tensor) -> list[nnc.Tensor]:
        chosen = x[x > -2]
        again = chosen[chosen > 1]
        return [chosen, again * 2, nnc.unique_values(again), nnc.unique_inverse(chosen).inverse_indices]

    jitted = nnc.jit(f)
    for host in (HOST, HOST - 1):
        x = nnc.asarray(host)
        same(arrays(*jitted(x)), arrays(*f(x)))
    text = jitted.lower(nnc.asarray(HOST)).explain()
    assert "stage 2" in text and text.count("runs on the host and breaks the program") == 3


def test_a_part_is_compiled_once_for_each_size_and_the_oldest_goes(device: str) -> None:
    jitted = nnc.jit(lambda x: x[x > 0] + 1)
    x = nnc.asarray(np.linspace(-1, 1, 50, dtype=np.float32))
    run = jitted.lower(x).program
    (part,) = [p for parts in run.parts for p in parts if p.names]
    for shift in (0.0, 0.5, 0.0, 0.5):
        jitted(x + shift)
    assert len(part.compiled) == 2
    kept = part.for_sizes({part.names[0]: 25})
    for k in [k for k in range(KEPT + 4) for _ in range(2)]:
        found = jitted(nnc.asarray(np.where(np.arange(50) < k, 1, -1).astype(np.float32)))
        assert found.shape == (k,)
    assert len(part.compiled) == KEPT and kept not in part.compiled.values()


def _everything(x: nnc.Tensor, total: nnc.Cell, generator: nnc.Generator) -> Any:
    """Steps of every kind on a counted size, some with several results, and results that could be views."""
    def loss(x: nnc.Tensor) -> nnc.Tensor:
        y = x[x > 0]
        last, rows = nnc.scan(lambda c, v: (c + nnc.sin(v), c * v), nnc.asarray(0.0), y)
        tame = nnc.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, nnc.tanh(a) + i), (nnc.asarray(0), y))[1]
        either = nnc.cond(last > 1, lambda y: y * 2, lambda y: y - 1, y)
        return nnc.sum(rows) + nnc.sum(tame) + nnc.sum(either) + nnc.sum(nnc.vmap(nnc.square)(y))

    value, slope = nnc.value_and_grad(loss)(x)
    y = x[x > 0]
    total += nnc.sum(y)
    return value, slope, y, y[:, None], generator.normal(y.shape), nnc.reshape(x, (4, 5)), total.read()


def test_sizes_that_are_new_at_each_call_run_operator_by_operator_until_they_come_again(device: str) -> None:
    x = nnc.asarray(np.random.default_rng(0).normal(size=20).astype(np.float32))
    shifts = np.linspace(-1, 1, AT_ONCE + 6).repeat(2).tolist()

    def calls(make: Callable[..., Any]) -> list[Any]:
        total, generator = nnc.Cell(nnc.zeros(())), nnc.Generator(3)
        f = make(lambda x: _everything(x, total, generator))
        return [[y.numpy() for y in f(x + shift)] for shift in shifts]

    for found, wanted in zip(calls(nnc.jit), calls(lambda f: f), strict=True):
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_new_sizes_are_compiled_when_they_come_again(device: str) -> None:
    jitted = nnc.jit(lambda x: x[x > 0] * 2)
    ramp = np.arange(40, dtype=np.float32)
    (part,) = [p for stage in jitted.lower(nnc.asarray(ramp)).program.parts for p in stage if p.names]
    for k in range(AT_ONCE + 5):
        assert jitted(nnc.asarray(ramp - k)).tolist() == (2 * (ramp - k)[ramp > k]).tolist()
        assert len(part.compiled) == min(k + 1, AT_ONCE)
    for k in (AT_ONCE, AT_ONCE + 1):
        assert jitted(nnc.asarray(ramp - k)).tolist() == (2 * (ramp - k)[ramp > k]).tolist()
    assert len(part.compiled) == AT_ONCE + 2


def test_derivatives_of_ones_own_on_counted_sizes(device: str) -> None:
    f = nnc.custom_vjp(nnc.round).defvjp(lambda x: (nnc.round(x), x), lambda x, g: (g * x,))
    x = nnc.asarray([-1.0, 2.0, 3.0])
    slope = nnc.jit(nnc.grad(lambda x: nnc.sum(f(x[x > 0]))))
    assert slope(x).tolist() == [0, 2, 3] and slope(x + 2).tolist() == [1, 4, 5]


def test_a_deferred_way_back_through_a_loop_on_counted_sizes(device: str) -> None:
    """Also where the size is learnt between the loop and the way back."""
    def loss(x: nnc.Tensor, looked_at: bool) -> nnc.Tensor:
        y = x[x > 0]
        z = nnc.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * a), (nnc.asarray(0), y))[1]
        if looked_at:
            assert y.shape == (2,)
        return nnc.sum(z)

    x = nnc.asarray([-1.0, 1.5, 0.5])
    for looked_at in (False, True):
        with nnc.deferred():
            found = nnc.grad(loss)(x, looked_at)
        np.testing.assert_allclose(found.numpy(), [0, 8 * 1.5**7, 8 * 0.5**7], rtol=1e-6)


def test_cells_are_read_and_written_around_masks(device: str) -> None:
    cell = nnc.Cell(nnc.asarray(np.float32(1.0)), "total")

    @nnc.jit
    def f(x: nnc.Tensor) -> nnc.Tensor:
        cell.write(cell.read() + nnc.sum(x[x > 2]))
        return x[x > 2] * cell.read()

    x = nnc.asarray(HOST)
    assert f(x).tolist() == [36, 36, 60] and cell.read().item() == 12
    assert f(x).tolist() == [69, 69, 115] and cell.read().item() == 23


def test_a_staged_graph_looks_like_any_other(device: str) -> None:
    x = nnc.asarray(HOST)
    with nnc.deferred():
        y = nnc.sum(x[x > 0])
    graph = nnc.export({"x": x}, {"x": x, "y": y})
    run = graph.compile(device)
    with fails(TypeError, "missing x", line=False):
        run()
    with fails(ValueError, "float32[2]", line=False):
        run(x=nnc.ones(2))
    assert "not compiled" not in str(run.memory_plan) and run.memory_plan.peak >= 0
    found = run(x=x)
    assert found["y"].item() == 11 and found["x"].tolist() == HOST.tolist()
    assert run.memory_plan.commands > 0 and run.memory_plan.ratio >= 1.0
    assert any(t.command == "nonzero" for t in run.profile(x=x).timings)
    assert run.donated == frozenset() and list(run.graph.inputs) == ["x"]
    given = run.admit({"x": x})
    assert list(run.run(given)) == ["x", "y"]


def test_exported_after_computing(device: str) -> None:
    x = nnc.asarray(HOST)
    with nnc.deferred():
        y = nnc.sum(x[x > 0]) * 2
    assert y.item() == 22
    run = nnc.export({"x": x}, {"y": y}).compile(device)
    assert run(x=HOST + 1)["y"].item() == 2 * (HOST + 1)[HOST > -1].sum()


def test_a_graph_file_keeps_sizes_by_data(device: str, tmp_path: Path) -> None:
    x = nnc.asarray(HOST)
    with nnc.deferred():
        y = x[x > 0] * 2
        z = nnc.unique_values(y)
    nnc.save_graph(nnc.export({"x": x}, {"y": y, "z": z}), tmp_path / "graph.nnc")
    found = nnc.load_graph(tmp_path / "graph.nnc").compile(device)(x=HOST + 1)
    wanted = (HOST + 1)[HOST > -1] * 2
    same([found["y"].numpy(), found["z"].numpy()], [wanted, np.unique(wanted)])


def test_named_dimensions_beside_sizes_by_data(device: str) -> None:
    x = nnc.var_arr("x", (nnc.Dim("rows"), 3))
    run = nnc.export({"x": x}, {"y": x[x > 0] * 2, "s": nnc.sum(x, axis=0)}).compile(device)
    for host in (HOST, np.concatenate([HOST, HOST])):
        found = run(x=host)
        same([found["y"].numpy(), found["s"].numpy()], [host[host > 0] * 2, host.sum(0)])


def test_an_input_may_have_a_size_by_data(x: nnc.Tensor, device: str) -> None:
    with nnc.deferred():
        y = x[x > 2]
        z = nnc.sum(y * 2)
    run = nnc.export({"y": y}, {"z": z}).compile(device)
    assert any(is_data_dependent(str(d)) for d in run.graph.inputs["y"].shape)
    assert run(y=np.ones(5, np.float32))["z"].item() == 10


def test_two_calls_of_one_graph_in_one_function(device: str) -> None:
    x = nnc.asarray(HOST)
    with nnc.deferred():
        y = x[x > 0] * 2
    run = nnc.export({"x": x}, {"y": y}).compile(device)

    def f(x: nnc.Tensor) -> nnc.Tensor:
        return nnc.sum(run(x=x)["y"]) + nnc.sum(run(x=x - 1)["y"])

    wanted = 2 * HOST[HOST > 0].sum() + 2 * (HOST - 1)[HOST > 1].sum()
    assert f(x).item() == wanted and nnc.jit(f)(x).item() == wanted
    np.testing.assert_array_equal(nnc.grad(f)(x).numpy(), np.where(HOST > 1, 4, np.where(HOST > 0, 2, 0)))


def test_several_results_beside_a_size_that_nobody_knows(x: nnc.Tensor) -> None:
    """A tuple of specs stays one when told sizes are put in."""
    with nnc.deferred():
        found = nnc.nonzero(x)[0]
        pair = (nnc.TensorSpec((), "float32"), nnc.TensorSpec((4,), "float32"))
        total, each = nnc.callback(lambda a: (a.sum(), a + 1), pair, nnc.asarray([1.0, 2.0, 3.0, 4.0]))
        summed, doubled = nnc.scan(lambda s, v: (s + v, 2 * v), nnc.asarray(0.0), each)
    assert (total.item(), summed.item(), doubled.tolist()) == (10, 14, [4, 6, 8, 10])
    assert found.is_deferred


def _looped(body: Callable[[Any, Any], Any]) -> Callable[[nnc.Tensor], Any]:
    return lambda x: nnc.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, body(i, x)), (nnc.asarray(0), x))[1]


COUNTING: dict[str, tuple[Callable[[nnc.Tensor], Any], type[Exception], str]] = {
    "mask": (_looped(lambda i, x: x + nnc.sum(x[x > 2])), NotSupportedError, "'the body .*' counts elements, by"),
    "shapes": (_looped(lambda i, x: x + nnc.sum(nnc.ones(4) * nnc.bincount((x > 1).astype("int64").ravel()[:4] + 2))),
               ShapeError, "try: n#[0-9]+ is counted when it runs: length="),
    "scan": (lambda x: nnc.scan(lambda c, r: (c + nnc.sum(r[r > 1]), None), nnc.asarray(0.0), x)[0],
             NotSupportedError, "'the body .*' counts elements, by nonzero"),
    "branch": (lambda x: nnc.cond(x[0, 0] > 1e9, lambda x: nnc.sum(x), lambda x: nnc.sum(x[x > 1]), x),
               NotSupportedError, "'branch 1 .*' counts elements, by nonzero"),
}  # fmt: skip


@pytest.mark.parametrize("name", COUNTING)
def test_loops_that_count_run_eagerly_and_are_refused_where_they_are_recorded(name: str, device: str) -> None:
    f, kind, said = COUNTING[name]
    wanted = f(nnc.asarray(HOST)).numpy()
    compiled = nnc.jit(f)
    with pytest.warns(FallbackWarning, match="runs operator by operator"):
        np.testing.assert_allclose(compiled(nnc.asarray(HOST)).numpy(), wanted)
    np.testing.assert_allclose(compiled(nnc.asarray(HOST)).numpy(), wanted)
    with nnc.deferred(), pytest.raises(kind, match=said):
        f(nnc.asarray(HOST))


# ---- several devices in one graph
def _there_and_back(x: nnc.Tensor) -> nnc.Tensor:
    there = (x * 2).to(OTHER)
    return nnc.sum((there * there + 1).to(x.device.id) * x)


def test_parts_on_two_devices(device: str) -> None:
    x = nnc.asarray(HOST)
    with nnc.deferred():
        there = (x * 2).to(OTHER)
        outputs = {"there": there + 1, "y": _there_and_back(x), "g": nnc.grad(_there_and_back)(x)}
    graph = nnc.export({"x": x}, outputs)
    wanted = {"there": HOST * 2 + 1, "y": np.sum((4 * HOST**2 + 1) * HOST), "g": 12 * HOST**2 + 1}
    for places, where in (({}, device), ({"place1": OTHER}, OTHER)):
        run = graph.compile(device, places=places)
        found = run(x=HOST)
        assert {k: t.device.id for k, t in found.items()} == {"there": where, "y": device, "g": device}
        for k, t in found.items():
            np.testing.assert_allclose(t.numpy(), wanted[k], rtol=1e-6)
    assert run.stack_of("there").device.spec.id == OTHER
    assert f"copied from {device} to {OTHER}" in run.explain()


def test_jit_over_two_devices(device: str) -> None:
    x, elsewhere = nnc.asarray(HOST), nnc.asarray(HOST + 1, device=OTHER)

    @nnc.jit
    def f(x: nnc.Tensor) -> tuple[nnc.Tensor, ...]:
        moved = x.to(OTHER)
        chosen = moved[elsewhere > 1]
        return moved + elsewhere, chosen, chosen.to(x.device.id) * 2

    for host in (HOST, HOST * 2):
        a, b, c = f(nnc.asarray(host))
        same(arrays(a, b, c), [host + HOST + 1, host[HOST > 0], host[HOST > 0] * 2])
        assert [t.device.id for t in (a, b, c)] == [OTHER, OTHER, device]
    g = nnc.jit(nnc.grad(_there_and_back))(x)
    np.testing.assert_allclose(g.numpy(), 12 * HOST**2 + 1, rtol=1e-6)
    second = nnc.jit(nnc.hessian(_there_and_back))(x)
    np.testing.assert_allclose(second.numpy().reshape(6, 6), np.diag((24 * HOST).ravel()), rtol=1e-6)


def test_constants_are_made_on_each_device(device: str) -> None:
    def f(x: nnc.Tensor) -> list[nnc.Tensor]:
        three = nnc.full((3,), 3.0)
        return [x * three, x.to(OTHER) * nnc.full((3,), 3.0, device=OTHER), nnc.full((3,), 3.0).to(OTHER)]

    found = nnc.jit(f)(nnc.asarray(HOST))
    same(arrays(*found), [HOST * 3, HOST * 3, np.full(3, 3, np.float32)])
    assert [t.device.id for t in found] == [device, OTHER, OTHER]


def test_devices_that_do_not_fit_are_named(device: str) -> None:
    F = nnc.stack_for(device).operator.open()
    x = F.placeholder("x", nnc.TensorSpec((2,), np.dtype(np.float32)))
    y = F.add(F.transfer(x, source=device, target=OTHER), x)
    with fails(ValueError, device, OTHER, line=False):
        nnc.SymbolicGraph({"x": x}, {"y": y}).compile(device)


SLICES = [slice(None, 3), slice(0, 2), slice(-2, None), slice(-7, None), slice(4, None), slice(1, -1), slice(None, -5),
          slice(2, 9), slice(1, 2)]  # fmt: skip


@pytest.mark.parametrize("key", SLICES, ids=map(str, SLICES))
def test_slices_are_clipped_to_what_was_counted(key: slice) -> None:
    f = lambda x: nnc.nonzero(x)[0][key]  # noqa: E731
    compiled = nnc.jit(f)
    for given in ([1.0, 0, 1, 0, 2], [0.0] * 4, [1.0] * 6):
        x, wanted = nnc.asarray(given), np.flatnonzero(given)[key].tolist()
        assert f(x).tolist() == compiled(x).tolist() == wanted
        with nnc.deferred():
            late = f(x)
        assert late.tolist() == wanted


def test_clipped_slices_beside_other_keys() -> None:
    for f in (lambda x: nnc.argwhere(x)[:2, 0], lambda x: nnc.argwhere(x)[:2, [1, 0]], lambda x: nnc.argwhere(x)[1:],
              lambda x: x[x > 0].at[:4].set(9.0), lambda x: nnc.grad(lambda y: nnc.sum(y[y > 0][:2] ** 2))(x)):
        for x in (nnc.eye(3), nnc.zeros((3, 3))):
            np.testing.assert_array_equal(nnc.jit(f)(x).numpy(), f(x).numpy())


def test_a_clipped_slice_is_written_alone() -> None:
    with pytest.raises(NotSupportedError, match="whose length depends on data, beside others"):
        nnc.jit(lambda x: nnc.argwhere(x).at[:2, 0].set(0))(nnc.eye(3))
