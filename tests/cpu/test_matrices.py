"""Linear algebra by addresses against NumPy's own calls, to the bit; what has no result; loops that need no Python."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.command import Command
from nnc_core.base.dtype import DTYPES
from nnc_core.base.layout import Layout
from nnc_core.device import Kernel
from nnc_core.errors import LinAlgError
from nnc_core.operator import OPERATORS
from nnc_core.type import TensorSpec, TupleSpec
from nnc_cpu import blas
from nnc_cpu.backends import NumpyKernel
from nnc_cpu.matrices.backend import Matrices
from nnc_cpu.matrices.kernel import MatrixCompiler, divided, workspace
from nnc_cpu.matrices.plan import PLANS
from nnc_cpu.memory import array_in, layout_of
from tests.cpu.machine_code.running import HOSTS, run
from tests.cpu.native.runs import Captured, loops_need_no_python, on, repeated, same_bits

Values = np.ndarray[Any, Any]
FLOATS = ("float32", "float64", "complex64", "complex128")
SQUARE = ("inv", "cholesky", "eigvalsh", "eigvals", "det", "slogdet", "eigh", "eig", "lu", "svdvals")
CASES: list[tuple[str, tuple[Any, ...], tuple[tuple[int, ...], ...]]] = [
    *[(name, (), (shape,)) for name in SQUARE for shape in ((1, 1), (5, 5), (2, 3, 4, 4), (40, 8, 8), (1, 33, 33))],
    *[(name, (), (shape,)) for name in ("lu", "svdvals") for shape in ((3, 7), (2, 6, 2))],
    *[("svd", (full,), (shape,)) for full in (False, True) for shape in ((4, 4), (2, 3, 5), (6, 2))],
    *[("qr", (mode,), (shape,)) for mode in ("reduced", "complete") for shape in ((4, 4), (2, 3, 5), (6, 2))],
    *[("solve", (), shapes) for shapes in (((5, 5), (5, 3)), ((40, 4, 4), (40, 4, 1)), ((3, 4, 4), (4, 2)),
                                           ((4, 4), (2, 3, 4, 2)), ((1, 4, 4), (3, 4, 2)))],
    *[("solve_triangular", (lower, unit), shapes) for lower in (False, True) for unit in (False, True)
      for shapes in (((5, 5), (5, 3)), ((2, 70, 70), (70, 1)), ((4, 4), (3, 4, 2)))],
]  # fmt: skip


class Never(Kernel):
    """Is not run."""

    def bind(self, *given: Any) -> Any:
        raise AssertionError("the command was left to others")


class Left(Kernel):
    """Notes that it was run."""

    def __init__(self, command: Command) -> None:
        self.kernel, self.times = NumpyKernel(command), 0

    def bind(self, *given: Any) -> Any:
        self.times += 1
        return self.kernel.bind(*given)


@cache
def compiler(host: str) -> MatrixCompiler:
    return MatrixCompiler(HOSTS[host])


def command_of(name: str, attributes: tuple[Any, ...], arrays: list[Values]) -> Command:
    spec = OPERATORS[name].infer(*[TensorSpec(x.shape, x.dtype) for x in arrays], *attributes)
    outs = tuple([part.layout() for part in (spec.parts if isinstance(spec, TupleSpec) else (spec,))])
    return Command(name, attributes, tuple(map(layout_of, arrays)), outs)


def matrices(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Values:
    """Positive definite but for rounding, if they are square."""
    rng = np.random.default_rng(seed)
    a = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    if shape[-1] == shape[-2]:
        a = a @ np.conj(np.swapaxes(a, -1, -2)) + shape[-1] * np.eye(shape[-1]) + 0.1 * a
    return np.array(a if DTYPES[dtype].kind == "c" else a.real, dtype)


def results(kernel: Kernel, command: Command, arrays: list[Values], nbytes: int) -> list[Values]:
    outs = [np.full(y.shape, 7, y.dtype) for y in command.outputs]
    run(kernel, [*arrays, *outs, np.zeros(-(-nbytes // 16), np.complex128)])  # LAPACK wants whole elements
    return outs


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("name", "attributes", "shapes"), CASES)
@pytest.mark.parametrize("host", ["here", "any of its kind"])
def test_it_gives_the_bits_of_numpys_calls(host: str, name: str, attributes: tuple[Any, ...],
                                           shapes: tuple[tuple[int, ...], ...], dtype: str) -> None:
    arrays = [matrices(shape, dtype, seed) for seed, shape in enumerate(shapes)]
    command = command_of(name, attributes, arrays)
    plan = PLANS[name](command)
    kernel = compiler(host).kernel(command, Never())
    found = results(kernel, command, arrays, workspace(command, plan))
    wanted = [np.empty(y.shape, y.dtype) for y in command.outputs]
    NumpyKernel(command).bind_arrays([*arrays, *wanted])()
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.tobytes() == theirs.tobytes(), (ours, theirs)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", ["eigh", "eig", "svd"])
def test_of_equally_large_components_it_takes_that_of_the_reference(name: str, dtype: str) -> None:
    """Which is the largest, rounding says."""
    a = np.array([[[0, -1j], [1j, 0]], [[0, 1j], [-1j, 0]], [[2, 0], [0, -1]], [[0, 0], [0, 0]]], dtype)
    command = command_of(name, (False,) if name == "svd" else (), [a])
    found = results(compiler("here").kernel(command, Never()), command, [a], workspace(command, PLANS[name](command)))
    wanted = [np.empty(y.shape, y.dtype) for y in command.outputs]
    NumpyKernel(command).bind_arrays([a, *wanted])()
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.tobytes() == theirs.tobytes(), (ours, theirs)
    vectors = found[0] if name == "svd" else found[1]
    largest = np.take_along_axis(vectors, np.argmax(np.abs(vectors), -2, keepdims=True), -2)
    np.testing.assert_allclose(largest, np.abs(largest), atol=1e-6)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", ["inv", "cholesky", "eigh", "lu"])
def test_threads_share_a_stack(name: str, threads: int) -> None:
    """Pieces that are not equally long; whoever finds a matrix without a result, the command is left to others once."""
    a = matrices((21, 50, 24, 24), "float32")
    command = command_of(name, (), [a])
    plan = PLANS[name](command)
    assert divided(command, plan).pieces > 1
    with nnc.config.using(threads=threads):
        found = results(compiler("here").kernel(command, Never()), command, [a], workspace(command, plan))
        a[7, 3, 5:] = np.nan
        a[20, 49, 5:] = np.nan
        left = Left(command)
        if name in ("eigh", "lu", "cholesky"):
            with suppress(LinAlgError):
                results(compiler("here").kernel(command, left), command, [a], workspace(command, plan))
            assert left.times == 1
    wanted = [np.empty(y.shape, y.dtype) for y in command.outputs]
    NumpyKernel(command).bind_arrays([matrices((21, 50, 24, 24), "float32"), *wanted])()
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("name", ["inv", "cholesky", "eigh", "lu"])
def test_matrices_lie_anywhere(name: str) -> None:
    """Transposed ones, one of the stack in two, and results among others."""
    whole = matrices((6, 5, 5), "float32")
    x = whole[::2].swapaxes(-1, -2)
    command = command_of(name, (), [x])
    out, *others = command.outputs
    wide = Layout((3, *out.shape[1:]), out.dtype, 8, tuple([2 * s for s in out.strides]))
    command = command._replace(inputs=(Layout(x.shape, x.dtype, 0, x.strides),), outputs=(wide, *others))
    plan = PLANS[name](command)
    room = np.zeros(wide.extent, np.uint8)
    outs = [np.full(y.shape, 7, y.dtype) for y in others]
    scratch = np.zeros(workspace(command, plan) // 8, np.int64).view(np.uint8)
    buffers = [whole.reshape(-1).view(np.uint8), room, *[y.reshape(-1).view(np.uint8) for y in outs], scratch]
    compiler("here").kernel(command, Never()).bind(buffers)()  # type: ignore[arg-type]
    packed = command_of(name, (), [np.ascontiguousarray(x)])
    wanted = [np.empty(y.shape, y.dtype) for y in packed.outputs]
    NumpyKernel(packed).bind_arrays([np.ascontiguousarray(x), *wanted])()
    for ours, theirs in zip([array_in(room, wide), *outs], wanted, strict=True):
        assert ours.tobytes() == theirs.tobytes()


@pytest.mark.parametrize(("shape", "dtype"), [((0, 0), "float32"), ((0, 3, 3), "float32"), ((3, 3), "float16")])
def test_what_it_leaves_to_others(shape: tuple[int, ...], dtype: str) -> None:
    x = Layout.packed(shape, DTYPES[dtype])
    assert Matrices("inv", NumpyKernel).refuse(Command("inv", (), (x,), (x,))) is not None


def test_stacks_that_are_broadcast_by_parts_are_left_to_others() -> None:
    a, b = matrices((2, 1, 3, 3), "float64"), matrices((5, 3, 2), "float64")
    reason = Matrices("solve", NumpyKernel).refuse(command_of("solve", (), [a, b]))
    assert reason is not None and "broadcast" in reason


def test_matrices_that_several_threads_are_worth_are_left_to_others() -> None:
    x = Layout.packed((4096, 4096), DTYPES["float64"])
    reason = Matrices("inv", NumpyKernel).refuse(Command("inv", (), (x,), (x,)))
    assert reason is not None and "threads" in reason


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize(("name", "spoilt"), [("lu", 0), ("solve_triangular", 0), ("solve_triangular", 1)])
def test_what_is_not_finite_is_eliminated_by_others(name: str, spoilt: int, bad: float) -> None:
    arrays, attributes = [matrices((3, 4, 4), "float64")], ()
    if name == "solve_triangular":
        arrays, attributes = [*arrays, matrices((3, 4, 2), "float64", 1)], (True, False)
    arrays[spoilt][1, 2, 1] = bad
    command = command_of(name, attributes, arrays)
    left = Left(command)
    found = results(compiler("here").kernel(command, left), command, arrays, workspace(command, PLANS[name](command)))
    wanted = [np.empty(y.shape, y.dtype) for y in command.outputs]
    NumpyKernel(command).bind_arrays([*arrays, *wanted])()
    assert left.times == 1
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("bad", [0.0, np.nan, np.inf])
@pytest.mark.parametrize("name", ["det", "slogdet"])
def test_determinants_are_there_whatever_the_elements(name: str, bad: float) -> None:
    a = matrices((3, 4, 4), "float64")
    a[1, 2] = bad
    command = command_of(name, (), [a])
    found = results(compiler("here").kernel(command, Never()), command, [a], workspace(command, PLANS[name](command)))
    wanted = [np.empty(y.shape, y.dtype) for y in command.outputs]
    NumpyKernel(command).bind_arrays([a, *wanted])()
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("count", [1, 15, 16, 17, 33, 1050])
def test_no_piece_of_a_stack_is_empty(count: int) -> None:
    x = Layout.packed((count, 80, 80), DTYPES["float64"])
    pieces, each, _ = divided(command := Command("inv", (), (x,), (x,)), PLANS["inv"](command))
    assert (pieces - 1) * each < count <= pieces * each
    assert (pieces > 1) == (count > 1)


def test_others_run_what_has_gaps_with_scratch_memory_of_their_own() -> None:
    whole = matrices((4, 4), "float64")
    whole[2, 1] = np.nan
    command = command_of("lu", (), [whole.T])
    outs = [np.empty(y.shape, y.dtype) for y in command.outputs]
    scratch = np.zeros(workspace(command, PLANS["lu"](command)) // 8, np.int64)
    buffers = [x.reshape(-1).view(np.uint8) for x in (whole, *outs, scratch)]
    compiler("here").kernel(command, NumpyKernel(command)).bind(buffers)()
    for ours, theirs in zip(outs, OPERATORS["lu"].reference(whole.T), strict=True):  # type: ignore[misc]
        np.testing.assert_allclose(ours, theirs)


# ---- programs
def spoiled(name: str) -> Values:
    """Matrices of which the second has no result."""
    a = matrices((3, 4, 4), "float32")
    if name in ("inv", "solve"):
        a[1, 2] = a[1, 1]
    elif name == "cholesky":
        a[1] = -a[1]
    elif name == "solve_triangular":
        a[1, 3, 3] = 0
    else:
        a[1, 0, 2] = np.nan
    return a


FAILING: dict[str, Callable[[Any], Any]] = {
    "inv": nnc.linalg.inv, "cholesky": nnc.linalg.cholesky, "eigvalsh": nnc.linalg.eigvalsh,
    "svd": lambda a: nnc.linalg.svd(a)[1], "solve": lambda a: nnc.linalg.solve(a, a),
    "solve_triangular": lambda a: nnc.linalg.solve_triangular(a, a, lower=True)}


@pytest.mark.parametrize("name", FAILING)
def test_what_has_no_result_is_the_error_of_eager_code_with_its_line(name: str) -> None:
    f, good, bad = FAILING[name], matrices((3, 4, 4), "float32"), spoiled(name)
    with pytest.raises(LinAlgError) as eager:
        f(nnc.asarray(bad))
    device = Captured()
    with on(device):
        compiled = nnc.jit(lambda a: nnc.exp(f(a)) + 1)
        before = compiled(nnc.asarray(good)).numpy()
        for _ in range(2):
            with pytest.raises(LinAlgError) as found:
                compiled(nnc.asarray(bad))
            assert found.value.message == eager.value.message
            assert found.value.hint == eager.value.hint
            assert "test_matrices.py" in str(found.value.line)
        np.testing.assert_array_equal(compiled(nnc.asarray(good)).numpy(), before)
    assert device.in_machine_code and device.guarded


def test_a_loop_ends_with_the_round_that_has_no_result() -> None:
    """State that was written before is as it was."""
    device = Captured()
    with on(device):
        state = nnc.Cell(nnc.zeros(3))

        @nnc.jit
        def f(a: Any, falls: Any) -> Any:
            state.write(state.read() + 1)
            return repeated(20, lambda a: a - falls + 0 * nnc.linalg.cholesky(a), a)

        a = nnc.asarray(matrices((3, 3), "float64"))
        f(a, nnc.zeros((3, 3), dtype=a.dtype))
        with pytest.raises(LinAlgError, match="not positive definite"):
            f(a, nnc.eye(3, dtype=a.dtype))
        np.testing.assert_array_equal(state.read().numpy(), [1, 1, 1])
    assert device.in_machine_code


ROUNDS: dict[str, Callable[[Any], Any]] = {
    "cholesky": lambda c: c + 0.1 * nnc.linalg.cholesky(c), "solve": lambda c: c + nnc.linalg.solve(c, c),
    "inv": lambda c: c + nnc.linalg.inv(c), "det": lambda c: c / nnc.abs(nnc.linalg.det(c)) ** 0.25 * 2,
    "slogdet": lambda c: c + nnc.linalg.slogdet(c)[1] * 0.01, "qr": lambda c: c + nnc.linalg.qr(c)[0],
    "svd": lambda c: c + nnc.linalg.svd(c)[1] * 0.01, "eigh": lambda c: c + nnc.linalg.eigh(c)[0] * 0.01,
    "eigvals": lambda c: c + nnc.real(nnc.linalg.eigvals(c)) * 0.01,
    "vectors": lambda c: c + nnc.abs(nnc.linalg.eig(c)[1]) * 0.01,
    "complex vectors": lambda c: c + nnc.abs(nnc.linalg.eigh(c + 1j * (c @ c))[1]) * 0.01,
    "complex svd": lambda c: c + nnc.real(nnc.linalg.svd(c + 1j * (c @ c))[2]) * 0.01,
    "lu": lambda c: c + nnc.linalg.lu(c)[1] * 0.01,
    "triangular": lambda c: c + nnc.linalg.solve_triangular(c, c, lower=True),
    "sort": lambda c: nnc.sort(c, axis=0) * 1.01, "argsort": lambda c: c + nnc.argsort(c, axis=1, descending=True),
    "lexsort": lambda c: c + nnc.lexsort(nnc.stack([c, nnc.round(c)])),
    "complex sort": lambda c: c + nnc.real(nnc.sort_complex(nnc.round(c) + 1j * c)) * 0.01,
    "median": lambda c: c + nnc.median(c, axis=0), "quantile": lambda c: c + nnc.quantile(c, 0.3),
    "bincount": lambda c: c + nnc.bincount(nnc.reshape(c, (-1,)).astype(nnc.int64) % 5, length=5)[0]}


@pytest.mark.parametrize("name", ROUNDS)
def test_rounds_of_loops_need_no_python(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    loops_need_no_python(ROUNDS[name], matrices((4, 4), "float32"), monkeypatch)


@pytest.mark.parametrize("name", ROUNDS)
def test_rounds_give_what_python_gives(name: str) -> None:
    def f(a: Any) -> Any:
        return repeated(5, ROUNDS[name], a)

    same_bits(f, [matrices((4, 4), "float32")], [matrices((4, 4), "float32", 1)])


@pytest.mark.parametrize("name", ROUNDS)
def test_modes_agree_to_the_bit(name: str) -> None:
    a = matrices((4, 4), "float64")
    with nnc.config.using(deterministic=True, compile_at_once=True):
        eager = ROUNDS[name](nnc.asarray(a)).numpy()
        compiled = nnc.jit(ROUNDS[name])(nnc.asarray(a)).numpy()
        with nnc.deferred():
            deferred = ROUNDS[name](nnc.asarray(a))
        assert eager.tobytes() == compiled.tobytes() == deferred.numpy().tobytes()


def test_a_blas_with_threads_in_the_way_is_held_to_one(monkeypatch: pytest.MonkeyPatch) -> None:
    count = blas.thread_count()
    if count is None:
        pytest.skip("NumPy has another BLAS here")
    given: list[int] = []
    noting = blas.ThreadCount(blas.GET(lambda: 4), blas.SET(given.append))
    monkeypatch.setattr(blas, "thread_count", lambda: noting)
    for n, wanted in ((4, []), (40, [1, 4])):
        a = matrices((n, n), "float64")
        command = command_of("inv", (), [a])
        kernel = compiler("here").kernel(command, Never())
        results(kernel, command, [a], workspace(command, PLANS["inv"](command)))
        assert given == wanted
