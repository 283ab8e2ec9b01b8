"""The cases through the OpenCL C dialect, on the first device found; no plugin is involved."""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from nnc_core.base.dtype import DTYPES
from nnc_core.base.loopnest import LoopNest
from nnc_core.codegen import OPENCL, interpret, render_program
from tests.codegen.asked import parameters
from tests.codegen.functions import ALL, interpreted, nest_of, points
from tests.codegen.nests import Case, Values, Writer, agree, as_bytes, at
from tests.codegen.test_nests import CASES

LOOSER = 16.0  # units in the last place that OpenCL grants its own functions (pow)
Runner = Callable[[LoopNest, Sequence[Values]], None]


def intel_library() -> str | None:
    """The driver's library inside the pip package, if it is installed."""
    try:
        files = importlib.metadata.files("intel-opencl-rt") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    return next((str(file.locate().resolve()) for file in files if file.name == "libintelocl.so"), None)


def first_device(cl: Any) -> Any:
    """A CPU that computes float64 and subnormal numbers, or None; there divisions are exact as well."""
    try:
        found = [device for platform in cl.get_platforms() for device in platform.get_devices()]
    except cl.Error:
        return None
    cpus = [d for d in found if d.type & cl.device_type.CPU and d.single_fp_config & cl.device_fp_config.DENORM]
    return next((device for device in cpus if "cl_khr_fp64" in device.extensions), None)


@pytest.fixture(scope="module")
def context() -> Any:
    cl = pytest.importorskip("pyopencl", reason="pyopencl is not installed")
    library = intel_library()
    if library is not None and "OCL_ICD_VENDORS" not in os.environ:
        with pytest.MonkeyPatch.context() as patch:  # read at the first query of platforms
            patch.setenv("OCL_ICD_VENDORS", library)
            device = first_device(cl)
    else:
        device = first_device(cl)
    if device is None:
        pytest.skip("no OpenCL CPU here that computes float64 and subnormal numbers")
    return cl.Context([device])


@pytest.fixture(scope="module")
def opencl(context: Any, request: pytest.FixtureRequest) -> Runner:
    return runner(context, {asked["case"].nest: f"case_{place}" for place, asked in enumerate(parameters(request))})


@pytest.fixture(scope="module")
def expansions(context: Any, request: pytest.FixtureRequest) -> Runner:
    cases = [(asked["function"], asked["name"]) for asked in parameters(request)]
    return runner(context, {nest_of(*case): f"expansion_{place}" for place, case in enumerate(cases)})


def runner(context: Any, names: dict[LoopNest, str]) -> Runner:
    """Build all nests as one program; the result runs one, with the range rounded up."""
    import pyopencl as cl

    rounded = context.devices[0].single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
    options = ["-cl-fp32-correctly-rounded-divide-sqrt"] if rounded else []
    source = render_program({name: nest for nest, name in names.items()}, OPENCL)
    program = cl.Program(context, source).build(options=options)
    queue = cl.CommandQueue(context)

    def run(nest: LoopNest, arrays: Sequence[Values]) -> None:
        flags = cl.mem_flags.READ_WRITE
        buffers = [cl.Buffer(context, flags, max(array.nbytes, 1)) for array in arrays]
        flat = [array.reshape(-1).view(np.uint8) for array in arrays]
        for buffer, array in zip(buffers, flat, strict=True):
            if array.size:
                cl.enqueue_copy(queue, buffer, array)
        kernel = cl.Kernel(program, names[nest])
        kernel(queue, (-(-max(nest.points, 1) // 64) * 64,), None, *buffers)
        for buffer, array in zip(buffers, flat, strict=True):
            if array.size:
                cl.enqueue_copy(queue, array, buffer)
        queue.finish()

    return run


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_opencl(case: Case, opencl: Runner) -> None:
    arrays = case.copies()
    opencl(case.nest, arrays)
    allowed = max(case.ulp, LOOSER) if case.ulp else 0.0
    Case(case.nest, case.arrays, case.expected, case.labels, allowed, case.loose_sign).check(arrays)


@pytest.mark.parametrize(("function", "name"), ALL)
def test_expansions_follow_the_interpreter(function: str, name: str, expansions: Runner) -> None:
    xs = points(function, DTYPES[name])
    result = np.zeros_like(xs[0])
    expansions(nest_of(function, name), [*xs, result])
    assert agree(result, interpreted(function, name)).all()


def test_nothing_is_contracted(context: Any) -> None:
    """a * b + c * b and a folded sum of products are rounded after each operation; a dot is not."""
    rng = np.random.default_rng(0)
    a, b, c = (rng.standard_normal(64).astype(np.float32) for _ in range(3))
    n = Writer("products", (64,), [(np.float32, False)] * 3 + [(np.float32, True)])
    x, y, z = (n.load(place, at({0: 1}, 1)) for place in range(3))
    products = [n.op("multiply", np.float32, factor, y) for factor in (x, z)]
    n.store(3, n.op("add", np.float32, *products), at({0: 1}, 1))
    nests = {n.build(): "products"} | {folded(kind): kind for kind in ("sum", "dot")}
    run = runner(context, nests)
    elementwise, summed, fused = nests
    out = np.zeros(64, np.float32)
    run(elementwise, [a, b, c, out])
    np.testing.assert_array_equal(out, a * b + c * b)
    for nest in (summed, fused):
        results = [np.zeros(1, np.float32) for _ in range(2)]
        run(nest, [a, b, results[0]])
        interpret(nest, [as_bytes(array) for array in (a, b, results[1])])
        np.testing.assert_array_equal(*results)


def folded(kind: str) -> LoopNest:
    """The sum of products, or their dot."""
    n = Writer(kind, (1,), [(np.float32, False)] * 2 + [(np.float32, True)])
    n.stage(64)
    x, y = (n.load(place, at({1: 1}, 1)) for place in range(2))
    product = x if kind == "dot" else n.op("multiply", np.float32, x, y)
    total = n.reduce(kind, product, np.float32, y if kind == "dot" else None)
    n.stage()
    n.store(2, total)
    return n.build()
