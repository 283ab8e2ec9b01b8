"""A cuDNN that does what its manual says of the backend's descriptors, by NumPy on memory of the driver of these tests,
when its streams come to it: attributes of declared kinds and counts, all that are required, tensors that fit each other
and lie packed, engines for what was finalised alone.  Its workspace is spoilt."""

from __future__ import annotations

from itertools import count
from typing import Any, NamedTuple

import numpy as np

from tests.cuda.host_calls import checked, memory
from tests.cuda.host_cudnn_checks import (
    BAD,
    NOT_FINALIZED,
    NOT_SUPPORTED,
    check_attention,
    check_convolution,
    check_gradients,
    check_graph,
    check_pack,
    check_pointwise,
    check_product,
    check_reshape,
    check_sliding,
    check_tensor,
    check_total,
    is_known,
)
from tests.cuda.host_cudnn_descriptors import (
    ATTENTION,
    ATTRIBUTES,
    CONFIGURATION,
    DESCRIPTOR,
    ENGINE,
    GRADIENTS,
    GRAPH,
    HANDLE,
    HEURISTICS,
    INT64,
    NOTE,
    OF_C,
    PACK,
    PLAN,
    POINTWISE_STEP,
    PRODUCT,
    RESHAPE,
    SLIDING,
    TENSOR,
    TOTAL,
    WAYS,
    Described,
    extent_of,
    name_of,
    tensors_of,
)
from tests.cuda.host_cudnn_runs import run_graph
from tests.cuda.host_driver import HostDriver

DECLARED = {
    "cudnnCreate": "handle*", "cudnnSetStream": "handle stream",
    "cudnnBackendCreateDescriptor": "int handle*", "cudnnBackendDestroyDescriptor": "handle",
    "cudnnBackendFinalize": "handle", "cudnnBackendSetAttribute": "handle int int long array",
    "cudnnBackendGetAttribute": "handle int int long long* array", "cudnnBackendExecute": "handle handle handle"}
WORKSPACE = 4096


class Engine(NamedTuple):
    name: str
    notes: tuple[int, ...]


UNORDERED, ON_TENSOR_CORES, PLAIN = Engine("unordered", (4,)), Engine("on tensor cores", (0,)), Engine("plain", ())


class FakeCudnn:
    """The functions of cuDNN that are called."""

    def __init__(self, driver: HostDriver) -> None:
        self.driver, self._numbers = driver, count(100)
        self.described: dict[int, Described] = {}
        self.stream = 0
        self.best: list[Engine] = [UNORDERED, ON_TENSOR_CORES, PLAIN]
        self.others: list[Engine] = [PLAIN]
        self.refused: set[str] = set()
        """Engines that no plan can be made with."""
        self.calls: list[tuple[str, tuple[str, ...]]] = []
        """The engines of executions, and their operations."""

    def cudnnGetLastErrorString(self, message: Any, size: Any) -> None:  # noqa: N802
        message.value = b"as the stand-in says"

    def __getattr__(self, name: str) -> Any:
        if name not in DECLARED:
            raise AttributeError(name)

        def call(*arguments: Any) -> int:
            arrays = DECLARED[name].endswith("array")
            given = checked(name, DECLARED[name].removesuffix(" array"), arguments[:-1] if arrays else arguments)
            return int(getattr(self, f"_{name}")(*given, *([arguments[-1]._obj] if arrays else [])))

        return call

    def _cudnnCreate(self, handle: Any) -> int:  # noqa: N802
        handle.value = 77
        return 0

    def _cudnnSetStream(self, handle: int, stream: int) -> int:  # noqa: N802
        self.stream = stream
        return 0 if handle == 77 else BAD

    def _cudnnBackendCreateDescriptor(self, kind: int, handle: Any) -> int:  # noqa: N802
        assert kind in ATTRIBUTES
        handle.value = next(self._numbers)
        self.described[handle.value] = Described(kind)
        return 0

    def _cudnnBackendDestroyDescriptor(self, handle: int) -> int:  # noqa: N802
        del self.described[handle]
        return 0

    def _cudnnBackendSetAttribute(self, handle: int, attribute: int, kind: int, number: int,  # noqa: N802
                                  elements: Any) -> int:
        described = self.described[handle]
        wanted = ATTRIBUTES[described.kind].get(attribute)
        if wanted is None or kind not in wanted.kinds or not 1 <= number <= wanted.most or described.finalized:
            return BAD
        assert len(elements) == number and elements._type_ is OF_C[kind], "elements are of another kind"
        values = list(elements)
        if kind == DESCRIPTOR:
            values = [self.described[value] for value in values]
            if not all([value.finalized for value in values]):
                return NOT_FINALIZED
        if kind == HANDLE and values != [77]:
            return BAD
        described.values[attribute] = values
        return 0

    def _cudnnBackendFinalize(self, handle: int) -> int:  # noqa: N802
        described = self.described[handle]
        missing = [n for n, one in ATTRIBUTES[described.kind].items() if one.required and n not in described.values]
        if missing or described.finalized:
            return BAD
        described.finalized = True
        check = {TENSOR: check_tensor, SLIDING: check_sliding, POINTWISE_STEP: check_pointwise, GRAPH: check_graph,
                 ATTENTION: check_attention, GRADIENTS: check_gradients, PRODUCT: check_product, TOTAL: check_total,
                 RESHAPE: check_reshape, HEURISTICS: self._look_up, PLAN: self._make, PACK: check_pack,
                 **dict.fromkeys(WAYS, check_convolution)}.get(described.kind)
        return 0 if check is None else check(described)

    def _look_up(self, heuristics: Described) -> int:
        graph = heuristics.one(201)
        if 800 not in graph.values:
            return BAD
        engines = {3: self.best, 2: self.others}[heuristics.one(200)]
        heuristics.about = [(engine, graph) for engine in engines if is_known(graph)]
        return 0

    def _make(self, plan: Described) -> int:
        plan.about = plan.one(401).about
        return NOT_SUPPORTED if plan.about[0].name in self.refused else 0

    def _cudnnBackendGetAttribute(self, handle: int, attribute: int, kind: int, number: int, found: Any,  # noqa: N802
                                  elements: Any) -> int:
        described = self.described[handle]
        if not described.finalized or len(elements) != number or elements._type_ is not OF_C[kind]:
            return NOT_FINALIZED
        if attribute in (202, 300):
            assert kind == DESCRIPTOR
            values = described.about if attribute == 202 else [described.about]
            for one, value in zip(elements, values, strict=False):
                target = self.described[one]
                assert target.kind == {202: CONFIGURATION, 300: ENGINE}[attribute]
                target.about, target.finalized = value, True
            found.value = len(values)
            return 0
        values = {(ENGINE, 1303, NOTE): lambda: described.about[0].notes,
                  (PLAN, 402, INT64): lambda: [WORKSPACE]}[described.kind, attribute, kind]()
        found.value = len(values)
        elements[: min(len(values), number)] = values[:number]
        return 0

    def _cudnnBackendExecute(self, handle: int, plan: int, pack: int) -> int:  # noqa: N802
        assert handle == 77
        (engine, graph), given = self.described[plan].about, self.described[pack]
        assert self.described[plan].finalized and given.finalized
        addresses = dict(zip(given.values[1000], given.values[1001], strict=True))
        tensors = {tensor.one(906): tensor for step in graph.values[801] for tensor in tensors_of(step)}
        seen = {number for number, tensor in tensors.items() if not tensor.values.get(907, [False])[0]}
        assert seen == set(addresses), "an address for each tensor that is in memory"
        for number, address in addresses.items():
            tensor = tensors[number]
            if not tensor.values.get(908, [False])[0]:
                assert address % tensor.one(900) == 0, "an address is less aligned than it was said to be"
                last = address + extent_of(tensor) - 1
                assert self.driver.holds(address) and self.driver.holds(last), "a tensor is not in memory"
        room = given.one(1003) or 0
        assert self.driver.holds(room) and self.driver.holds(room + WORKSPACE - 1)
        steps = tuple([name_of(step) for step in graph.values[801]])
        self.calls.append((engine.name, steps))

        def run() -> None:
            memory(room, WORKSPACE, np.dtype(np.uint8)).fill(0xA5)
            run_graph(graph, addresses)

        self.driver._enqueue(self.stream, run)
        return 0
