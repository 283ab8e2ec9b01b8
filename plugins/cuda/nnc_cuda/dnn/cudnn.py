"""cuDNN 9 through ctypes: its backend, which `cudnn-frontend` wraps as well.

A problem is described as a graph of operations; heuristics name engines for it, of which the first is taken that
promises what is asked of it here and can be made a plan.  Whatever it does not support is a plan that there is none of.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ctypes import addressof, byref, c_float, c_void_p
from threading import Lock
from typing import Any, NamedTuple

from nnc_core.base.cache import LRU
from nnc_core.base.dtype import float32
from nnc_core.base.errors import PluginError
from nnc_cuda.dnn.descriptors import (
    DESCRIPTOR,
    HANDLE,
    HEURISTICS_MODE,
    INT64,
    NUMERICAL_NOTE,
    POINTER,
    Descriptor,
    ElementKind,
    check,
    described,
)
from nnc_cuda.dnn.graphs import host_numbers_of, operations_of
from nnc_cuda.dnn.interface import Convolution, Problem
from nnc_cuda.dnn.operations import GRAPH, GRAPH_OPERATIONS
from nnc_cuda.driver import CudaError, Driver
from nnc_cuda.vendor import load, opened

ENGINE, CONFIGURATION, HEURISTICS, PLAN, PACK = 2, 3, 4, 5, 16
"""Descriptors: CUDNN_BACKEND_ENGINE_DESCRIPTOR, _ENGINECFG_, _ENGINEHEUR_, _EXECUTION_PLAN_, _VARIANT_PACK_."""
GRAPH_HANDLE = 800
HEURISTICS_MODE_OF, HEURISTICS_GRAPH, HEURISTICS_RESULTS = 200, 201, 202
CONFIGURATION_ENGINE, ENGINE_NOTES = 300, 1303
PLAN_HANDLE, PLAN_CONFIGURATION, PLAN_WORKSPACE = 400, 401, 402
PACK_NUMBERS, PACK_POINTERS, PACK_WORKSPACE = 1000, 1001, 1003
"""CUDNN_ATTR_OPERATIONGRAPH_HANDLE; CUDNN_ATTR_ENGINEHEUR_MODE, _OPERATION_GRAPH, _RESULTS;
CUDNN_ATTR_ENGINECFG_ENGINE; CUDNN_ATTR_ENGINE_NUMERICAL_NOTE; CUDNN_ATTR_EXECUTION_PLAN_HANDLE, _ENGINE_CONFIG,
_WORKSPACE_SIZE; CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, _DATA_POINTERS, _WORKSPACE."""
BEST, FALLBACK = 3, 2
"""CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK."""
TENSOR_CORE, DOWN_CONVERTED, SUMS_OF_HALVES, BY_FOURIER, UNORDERED, WINOGRAD = 0, 1, 2, 3, 4, (5, 6, 7, 8)
"""CUDNN_NUMERICAL_NOTE_TENSOR_CORE, _DOWN_CONVERT_INPUTS, _REDUCED_PRECISION_REDUCTION, _FFT, _NONDETERMINISTIC;
_WINOGRAD and those of its tiles."""
NOTES = 16
"""Notes of an engine, at most."""
CANDIDATES = 24
"""Engines that are looked at for a problem, at most, of those that a mode names."""
MOST_WORKSPACE = 256 << 20
"""Bytes of workspace from which on an engine is left out."""
NO_MEMORY = (4003, 4004)
"""CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, _DEVICE_ALLOCATION_FAILED."""
KEPT = 512
"""Plans that are kept; programs keep theirs for as long as they live."""


class Target(NamedTuple):
    """The attributes by which graphs, heuristics and plans are told the device."""

    graph: Sequence[tuple[int, ElementKind, Sequence[Any]]] = ()
    heuristics: Sequence[tuple[int, ElementKind, Sequence[Any]]] = ()
    plan: Sequence[tuple[int, ElementKind, Sequence[Any]]] = ()


def made_plan(functions: Any, target: Target, problem: Problem) -> Descriptor | None:
    """The first execution plan for a problem that keeps what is promised; None where there is none."""
    try:
        operations = operations_of(functions, problem)
        graph = described(functions, GRAPH, *target.graph, (GRAPH_OPERATIONS, DESCRIPTOR, operations))
    except CudaError as error:
        _raise_if_out_of_memory(error)
        return None
    for configuration in _configurations(functions, target, graph):
        if not _keeps_promises(configuration, problem):
            continue
        try:
            plan = described(functions, PLAN, *target.plan, (PLAN_CONFIGURATION, DESCRIPTOR, (configuration,)))
        except CudaError as error:
            _raise_if_out_of_memory(error)
            continue
        if plan.values(PLAN_WORKSPACE, INT64, 1)[0] <= MOST_WORKSPACE:
            return plan
    return None


def _raise_if_out_of_memory(error: CudaError) -> None:
    """Anything else is said of the problem: the library has no code for it."""
    if error.code in NO_MEMORY:
        raise error


def _configurations(functions: Any, target: Target, graph: Descriptor) -> Iterator[Descriptor]:
    """Engines with their settings, the best first, then those that are there for want of better."""
    for mode in (BEST, FALLBACK):
        try:
            found = described(functions, HEURISTICS, (HEURISTICS_GRAPH, DESCRIPTOR, (graph,)),
                              (HEURISTICS_MODE_OF, HEURISTICS_MODE, (mode,)), *target.heuristics)
            yield from found.descriptors(HEURISTICS_RESULTS, CONFIGURATION, CANDIDATES)
        except CudaError as error:
            _raise_if_out_of_memory(error)


def _keeps_promises(configuration: Descriptor, problem: Problem) -> bool:
    """Tell whether an engine gives the same bits each time, adds halves up in float32 and rounds no factors that are
    to be taken as they are."""
    engine = configuration.descriptors(CONFIGURATION_ENGINE, ENGINE, 1)[0]
    notes = set(engine.values(ENGINE_NOTES, NUMERICAL_NOTE, NOTES))
    unwanted = {UNORDERED, SUMS_OF_HALVES, BY_FOURIER, DOWN_CONVERTED, *WINOGRAD}
    if isinstance(problem, Convolution) and problem.x.dtype == float32:
        unwanted = unwanted - {DOWN_CONVERTED} if problem.tf32 else unwanted | {TENSOR_CORE}
    return not notes & unwanted


class CudnnPlan:
    """An execution plan.  Any thread may bind it."""

    def __init__(self, cudnn: Cudnn, plan: Descriptor, problem: Problem) -> None:
        alone = host_numbers_of(problem)
        self.cudnn, self.plan, self._numbers = cudnn, plan, [*range(1, len(problem.arrays) + 1), *alone]
        self.workspace = int(plan.values(PLAN_WORKSPACE, INT64, 1)[0])
        self._alone = [c_float(number) for number in alone.values()]

    def bind(self, addresses: Sequence[int], workspace: int) -> BoundCudnnPlan:
        pointers = [*addresses, *map(addressof, self._alone)]
        pack = described(
            self.cudnn.functions, PACK, (PACK_NUMBERS, INT64, self._numbers), (PACK_POINTERS, POINTER, pointers),
            (PACK_WORKSPACE, POINTER, (workspace or None,)))
        return BoundCudnnPlan(self, pack)


class BoundCudnnPlan:
    """A plan and its pack of addresses."""

    def __init__(self, plan: CudnnPlan, pack: Descriptor) -> None:
        self._plan, self._pack = plan, pack

    def enqueue(self, stream: int) -> None:
        self._plan.cudnn.execute(self._plan.plan, self._pack, stream)


class Cudnn:
    """The library on one device."""

    def __init__(self, driver: Driver, functions: Any) -> None:
        """`functions`: the library, or something that has its functions."""
        self.driver, self.functions, self.handle = driver, functions, c_void_p()
        self._plans: LRU[Problem, CudnnPlan | None] = LRU(KEPT)
        self._lock = Lock()
        with driver.current():
            check(functions, "cudnnCreate", functions.cudnnCreate(byref(self.handle)))
        handle = self.handle.value
        self.target = Target(graph=[(GRAPH_HANDLE, HANDLE, (handle,))], plan=[(PLAN_HANDLE, HANDLE, (handle,))])

    def plan(self, problem: Problem) -> CudnnPlan | None:
        return self._plans.find(problem, lambda: self._planned(problem))

    def _planned(self, problem: Problem) -> CudnnPlan | None:
        with self.driver.current():
            found = made_plan(self.functions, self.target, problem)
        return None if found is None else CudnnPlan(self, found, problem)

    def execute(self, plan: Descriptor, pack: Descriptor, stream: int) -> None:
        """Enqueue a plan; the handle has one stream at a time."""
        f = self.functions
        with self._lock, self.driver.current():
            check(f, "cudnnSetStream", f.cudnnSetStream(self.handle, c_void_p(stream)))
            check(f, "cudnnBackendExecute", f.cudnnBackendExecute(self.handle, plan.handle, pack.handle))


def open_dnn(driver: Driver) -> Cudnn | None:
    """cuDNN on a device; None where there is none, for it is optional, or where it fails, which is said once."""
    try:
        functions = load("cudnn")
    except PluginError:
        return None
    return opened("convolutions and attention run", lambda: Cudnn(driver, functions))
