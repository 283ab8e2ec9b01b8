"""A cuDNN that does what its manual says of the backend's descriptors, by NumPy on memory of the driver of these tests,
when its streams come to it: attributes of declared kinds and counts, all that are required, tensors that fit each other
and lie packed, engines for what was finalised alone.  Its workspace is spoilt."""

from __future__ import annotations

import ctypes
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from nnc_core.base.dtype import bfloat16, float16, float32, float64
from nnc_core.operator import window_reference as reference
from tests.cuda.host_calls import checked, memory
from tests.cuda.host_driver import HostDriver

DECLARED = {
    "cudnnCreate": "handle*", "cudnnSetStream": "handle stream",
    "cudnnBackendCreateDescriptor": "int handle*", "cudnnBackendDestroyDescriptor": "handle",
    "cudnnBackendFinalize": "handle", "cudnnBackendSetAttribute": "handle int int long array",
    "cudnnBackendGetAttribute": "handle int int long long* array", "cudnnBackendExecute": "handle handle handle"}
OF_C: dict[int, Any] = {0: ctypes.c_void_p, 1: ctypes.c_int, 2: ctypes.c_bool, 3: ctypes.c_int64, 4: ctypes.c_float,
                        5: ctypes.c_double, 6: ctypes.c_void_p, 7: ctypes.c_int, 8: ctypes.c_int, 11: ctypes.c_int,
                        14: ctypes.c_int, 15: ctypes.c_void_p, 18: ctypes.c_int}
"""How C has an element of each kind."""
HANDLE, TYPE, BOOLEAN, INT64, FLOAT, DOUBLE, POINTER, CONVOLUTION, MODE, NOTE, POINTWISE, DESCRIPTOR, REDUCES = OF_C
DTYPES = {0: float32, 1: float64, 2: float16, 9: bfloat16}


class Attribute(NamedTuple):
    """Kinds of its elements, how many of them there may be, and whether it must be set."""

    kinds: tuple[int, ...]
    most: int = 1
    required: bool = True


def _convolving(first: int) -> dict[int, Attribute]:
    """Alpha, beta, the convolution, and three tensors."""
    number, other = Attribute((FLOAT, DOUBLE)), Attribute((DESCRIPTOR,))
    return {first: number, first + 1: number, **{first + n: other for n in range(2, 6)}}


TENSOR, SLIDING, POINTWISE_OF, POINTWISE_STEP, ATTENTION, GRADIENTS, BAND = 17, 1, 0, 13, 41, 43, 44
PRODUCT_OF, PRODUCT, TOTAL_OF, TOTAL, RESHAPE = 18, 19, 21, 22, 31
MADE = {POINTWISE_STEP: 753, PRODUCT: 1522, TOTAL: 1611, RESHAPE: 2201, BAND: 3006}
"""The attribute that names the result of each kind of operation."""
ENGINE, CONFIGURATION, HEURISTICS, PLAN, GRAPH, PACK = 2, 3, 4, 5, 15, 16
MOST_AXES = 8
ATTRIBUTES: dict[int, dict[int, Attribute]] = {
    POINTWISE_OF: {0: Attribute((POINTWISE,)), 1: Attribute((TYPE,)), 3: Attribute((FLOAT, DOUBLE), 1, False)},
    SLIDING: {100: Attribute((TYPE,)), 101: Attribute((CONVOLUTION,)), 106: Attribute((INT64,)),
              **{n: Attribute((INT64,), MOST_AXES) for n in (102, 103, 104, 105)}},
    ENGINE: {}, CONFIGURATION: {},
    HEURISTICS: {200: Attribute((MODE,)), 201: Attribute((DESCRIPTOR,))},
    PLAN: {400: Attribute((HANDLE,)), 401: Attribute((DESCRIPTOR,))},
    10: _convolving(700), 12: _convolving(706), 11: _convolving(712),
    POINTWISE_STEP: {750: Attribute((DESCRIPTOR,)), 751: Attribute((DESCRIPTOR,)),
                     752: Attribute((DESCRIPTOR,), 1, False), 753: Attribute((DESCRIPTOR,))},
    GRAPH: {800: Attribute((HANDLE,), 1, False), 801: Attribute((DESCRIPTOR,), 99)},
    PACK: {1000: Attribute((INT64,), 99), 1001: Attribute((POINTER,), 99), 1003: Attribute((POINTER,))},
    TENSOR: {906: Attribute((INT64,)), 901: Attribute((TYPE,)), 900: Attribute((INT64,)),
             902: Attribute((INT64,), MOST_AXES), 903: Attribute((INT64,), MOST_AXES),
             907: Attribute((BOOLEAN,), 1, False), 908: Attribute((BOOLEAN,), 1, False)},
    ATTENTION: {**{n: Attribute((DESCRIPTOR,), 1, n < 2804) for n in (*range(2800, 2806), 2811)},
                2812: Attribute((INT64,), 1, False), 2813: Attribute((INT64,), 1, False)},
    GRADIENTS: {**{n: Attribute((DESCRIPTOR,), 1, n < 2867) for n in (*range(2851, 2857), *range(2859, 2863), 2867)},
                2868: Attribute((INT64,), 1, False), 2869: Attribute((INT64,), 1, False)},
    PRODUCT_OF: {1500: Attribute((TYPE,))}, PRODUCT: {n: Attribute((DESCRIPTOR,)) for n in range(1520, 1524)},
    TOTAL_OF: {1600: Attribute((REDUCES,)), 1601: Attribute((TYPE,))},
    TOTAL: {n: Attribute((DESCRIPTOR,)) for n in range(1610, 1613)},
    RESHAPE: {n: Attribute((DESCRIPTOR,)) for n in (2200, 2201)},
    BAND: {3000: Attribute((DESCRIPTOR,)), 3005: Attribute((DESCRIPTOR,)), 3006: Attribute((DESCRIPTOR,)),
           3007: Attribute((POINTWISE,))}}
"""Attributes of each kind of descriptor."""
WAYS = {10: ("conv", 700), 12: ("conv_input_gradient", 706), 11: ("conv_kernel_gradient", 712)}
BAD, NOT_FINALIZED, NOT_SUPPORTED = 2000, 2004, 3000
WORKSPACE = 4096
KEYS = 16
"""Keys that attention goes through at once."""


class Engine(NamedTuple):
    name: str
    notes: tuple[int, ...]


UNORDERED, ON_TENSOR_CORES, PLAIN = Engine("unordered", (4,)), Engine("on tensor cores", (0,)), Engine("plain", ())


class Described:
    """A descriptor, and what was set."""

    def __init__(self, kind: int) -> None:
        self.kind, self.values, self.finalized = kind, dict[int, list[Any]](), False
        self.about: Any = None
        """The engine of a configuration, the results of heuristics."""

    def one(self, attribute: int) -> Any:
        return self.values[attribute][0]


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
        check = {TENSOR: _check_tensor, SLIDING: _check_sliding, POINTWISE_STEP: _check_pointwise, GRAPH: _check_graph,
                 ATTENTION: _check_attention, GRADIENTS: _check_gradients, PRODUCT: _check_product, TOTAL: _check_total,
                 RESHAPE: _check_reshape, HEURISTICS: self._look_up, PLAN: self._make, PACK: _check_pack,
                 **dict.fromkeys(WAYS, _check_convolution)}.get(described.kind)
        return 0 if check is None else check(described)

    def _look_up(self, heuristics: Described) -> int:
        graph = heuristics.one(201)
        if 800 not in graph.values:
            return BAD
        engines = {3: self.best, 2: self.others}[heuristics.one(200)]
        heuristics.about = [(engine, graph) for engine in engines if _is_known(graph)]
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
        tensors = {tensor.one(906): tensor for step in graph.values[801] for tensor in _tensors(step)}
        seen = {number for number, tensor in tensors.items() if not tensor.values.get(907, [False])[0]}
        assert seen == set(addresses), "an address for each tensor that is in memory"
        for number, address in addresses.items():
            tensor = tensors[number]
            if not tensor.values.get(908, [False])[0]:
                assert address % tensor.one(900) == 0, "an address is less aligned than it was said to be"
                last = address + _extent(tensor) - 1
                assert self.driver.holds(address) and self.driver.holds(last), "a tensor is not in memory"
        room = given.one(1003) or 0
        assert self.driver.holds(room) and self.driver.holds(room + WORKSPACE - 1)
        steps = tuple([_name(step) for step in graph.values[801]])
        self.calls.append((engine.name, steps))

        def run() -> None:
            memory(room, WORKSPACE, np.dtype(np.uint8)).fill(0xA5)
            _run(graph, addresses)

        self.driver._enqueue(self.stream, run)
        return 0


def _name(step: Described) -> str:
    if step.kind == POINTWISE_STEP:
        return {0: "add", 1: "multiply", 9: "subtract", 13: "exp", 100: "relu"}[step.one(750).one(0)]
    names = {ATTENTION: "attention", GRADIENTS: "gradients", PRODUCT: "product", TOTAL: "total", RESHAPE: "reshape",
             BAND: "band"}
    return names.get(step.kind) or WAYS[step.kind][0]


def _tensors(step: Described) -> list[Described]:
    """Those of a graph within it as well."""
    found = [value for values in step.values.values() for value in values if isinstance(value, Described)]
    inner = [tensor for graph in found if graph.kind == GRAPH for one in graph.values[801] for tensor in _tensors(one)]
    return [*[value for value in found if value.kind == TENSOR], *inner]


def _shape(tensor: Described) -> tuple[int, ...]:
    return tuple(tensor.values[902])


def _extent(tensor: Described) -> int:
    """Bytes from the first element to the end of the last."""
    last = sum([(n - 1) * step for n, step in zip(tensor.values[902], tensor.values[903], strict=True)])
    return int((last + 1) * DTYPES[tensor.one(901)].itemsize)


def _check_tensor(tensor: Described) -> int:
    shape, steps, size = tensor.values[902], tensor.values[903], DTYPES[tensor.one(901)].itemsize
    if len(shape) != len(steps) or min(shape) < 1 or min(steps) < 1 or tensor.one(900) % size:
        return BAD
    return 0


def _check_sliding(sliding: Described) -> int:
    return BAD if {len(sliding.values[n]) for n in (102, 103, 104, 105)} != {sliding.one(106)} else 0


def _operands(step: Described) -> tuple[Described, Described, Described, Described]:
    """The convolution, images, the kernel and results."""
    first = WAYS[step.kind][1]
    of, x, w, y = {10: (702, 704, 703, 705), 12: (708, 710, 709, 711), 11: (714, 716, 715, 717)}[step.kind]
    assert first < of
    return step.one(of), step.one(x), step.one(w), step.one(y)


def _check_convolution(step: Described) -> int:
    of, x, w, y = _operands(step)
    shapes = [_shape(one) for one in (x, w, y)]
    (n, channels, *pixels), (outputs, inputs, *window), (m, k, *counts) = shapes
    if {len(shape) for shape in shapes} != {of.one(106) + 2} or n != m or outputs != k or channels % inputs:
        return BAD
    axes = zip(pixels, window, counts, of.values[103], of.values[102], of.values[105], of.values[104], strict=True)
    for pixel, length, number, stride, dilation, before, after in axes:
        if (pixel + before + after - (length - 1) * dilation - 1) // stride + 1 != number:
            return BAD
    return 0


def _check_pointwise(step: Described) -> int:
    x, y, mode = step.one(751), step.one(753), step.one(750).one(0)
    if (mode < 13) != (752 in step.values) or _shape(x) != _shape(y):
        return BAD
    fits = mode >= 13 or all([b in (1, n) for b, n in zip(_shape(step.one(752)), _shape(x), strict=True)])
    return 0 if fits else BAD


def _check_attention(step: Described) -> int:
    query, key, value, result = (_shape(step.one(n)) for n in range(2800, 2804))
    batch, heads, rows, features = query
    fits = (key[0] == value[0] == batch and key[1] == value[1] and heads % key[1] == 0 and key[2] == value[2]
            and key[3] == features and result == (batch, heads, rows, value[3]))
    sums = step.values.get(2804)
    if sums is not None and (_shape(sums[0]) != (batch, heads, rows, 1) or DTYPES[sums[0].one(901)] != float32):
        return BAD
    return 0 if fits and _masks(step, 2811, (batch, heads, rows, key[2])) else BAD


def _masks(step: Described, first: int, scores: tuple[int, ...]) -> bool:
    """Tell whether the graph within an operation, if it has one, adds numbers to its scores, and hides what is above
    their diagonal."""
    if first not in step.values:
        return True
    at = step.one(first + 1)
    for one in step.one(first).values[801]:
        x, y = (one.one(n) for n in ((751, 753) if one.kind == POINTWISE_STEP else (3000, 3006)))
        if x.one(906) != at or {_shape(x), _shape(y)} != {scores} or not (x.one(907) and y.one(907)):
            return False
        if one.kind == POINTWISE_STEP:
            assert _name(one) == "add" and 907 not in one.one(752).values, "a bias in memory"
        else:
            assert one.kind == BAND and one.one(3007) == 303, "queries see keys up to themselves"
        at = y.one(906)
    return bool(at == step.one(first + 2))


def _check_gradients(step: Described) -> int:
    query, key, value, result, sums = (_shape(step.one(n)) for n in range(2851, 2856))
    batch, heads, rows, features = query
    fits = (key[0] == value[0] == batch and key[1] == value[1] and heads % key[1] == 0 and key[2] == value[2]
            and key[3] == features and result == (batch, heads, rows, value[3]) == _shape(step.one(2862))
            and sums == (batch, heads, rows, 1) and DTYPES[step.one(2855).one(901)] == float32
            and [_shape(step.one(n)) for n in (2859, 2860, 2861)] == [query, key, value])
    return 0 if fits and _masks(step, 2867, (batch, heads, rows, key[2])) else BAD


def _check_product(step: Described) -> int:
    """Heads of the second factor may be fewer."""
    a, b, c = (_shape(step.one(n)) for n in range(1520, 1523))
    fits = a[0] == b[0] == c[0] and a[1] == c[1] and a[1] % b[1] == 0 and (a[2], a[3], b[3]) == (c[2], b[2], c[3])
    return 0 if fits else BAD


def _check_total(step: Described) -> int:
    x, y = _shape(step.one(1610)), _shape(step.one(1611))
    return 0 if len(x) == len(y) and all([n % m == 0 for n, m in zip(x, y, strict=True)]) else BAD


def _check_reshape(step: Described) -> int:
    """Here what is written is always the transpose of matrices."""
    x, y = _shape(step.one(2200)), _shape(step.one(2201))
    return 0 if y == (*x[:2], x[3], x[2]) else BAD


def _check_graph(graph: Described) -> int:
    """Each number stands for one tensor, and what is in no memory is written before it is read, but by graphs within
    operations, which have no handle."""
    numbers = dict[int, Described]()
    written = set[int]()
    for step in graph.values[801]:
        for tensor in _tensors(step):
            if numbers.setdefault(tensor.one(906), tensor) is not tensor:
                return BAD
        if step.kind in (ATTENTION, GRADIENTS) or 800 not in graph.values:
            continue
        result = _result(step)
        read = [one for one in _tensors(step) if one is not result and one.values.get(907, [False])[0]]
        if not all([one.one(906) in written for one in read]):
            return BAD
        written.add(result.one(906))
    return 0


def _result(step: Described) -> Described:
    if step.kind in MADE:
        return step.one(MADE[step.kind])  # type: ignore[no-any-return]
    _, x, w, y = _operands(step)
    return {10: y, 12: x, 11: w}[step.kind]


def _check_pack(pack: Described) -> int:
    return 0 if len(pack.values[1000]) == len(pack.values[1001]) else BAD


def _is_known(graph: Described) -> bool:
    """Tell whether there are engines: tensors of one dtype that lie packed, channels last in all or in none; attention
    of halves with features side by side."""
    for step in graph.values[801]:
        if step.kind in (ATTENTION, GRADIENTS):
            arrays = [step.one(n) for n in (range(2800, 2804) if step.kind == ATTENTION else range(2851, 2855))]
            if any([one.one(901) not in (2, 9) or one.values[903][3] != 1 or _shape(one)[3] % 8 for one in arrays]):
                return False
            if any([step % 8 for one in arrays for step in one.values[903][:3]]):
                return False
        elif step.kind in WAYS:
            _, *arrays = _operands(step)
            orders = set.intersection(*[_orders(one) for one in arrays])
            if not orders:
                return False
    return True


def _orders(tensor: Described) -> set[str]:
    """The orders in which it lies packed."""
    shape, steps, found = _shape(tensor), tensor.values[903], set[str]()
    rank = len(shape)
    for name, order in (("last", (0, *range(2, rank), 1)), ("first", tuple(range(rank)))):
        step, fits = 1, True
        for axis in reversed(order):
            fits &= shape[axis] == 1 or steps[axis] == step
            step *= shape[axis]
        if fits:
            found.add(name)
    return found


def _run(graph: Described, addresses: dict[int, int]) -> None:
    unseen = dict[int, Any]()

    def array(tensor: Described) -> Any:
        number = tensor.one(906)
        if number in unseen:
            return unseen[number]
        dtype = DTYPES[tensor.one(901)]
        flat = memory(addresses[number], _extent(tensor) // dtype.itemsize, dtype)
        strides = [step * dtype.itemsize for step in tensor.values[903]]
        return np.lib.stride_tricks.as_strided(flat, _shape(tensor), strides)

    def store(tensor: Described, values: Any) -> None:
        if tensor.values.get(907, [False])[0]:
            unseen[tensor.one(906)] = values.astype(DTYPES[tensor.one(901)])
        else:
            array(tensor)[...] = values.astype(DTYPES[tensor.one(901)])

    for step in graph.values[801]:
        if step.kind == ATTENTION:
            _attend(step, array, store)
        elif step.kind == GRADIENTS:
            _attend_back(step, array, store)
        else:
            store(_result(step), _COMPUTED.get(step.kind, _convolved)(step, array))


def _pointwise(step: Described, array: Any) -> Any:
    wide = DTYPES[step.one(750).one(1)]
    x = array(step.one(751)).astype(wide)
    other = array(step.one(752)).astype(wide) if 752 in step.values else None
    return {"add": np.add, "multiply": np.multiply, "subtract": np.subtract, "exp": lambda x, _: np.exp(x),
            "relu": lambda x, _: np.maximum(x, 0)}[_name(step)](x, other)


def _product(step: Described, array: Any) -> Any:
    a, b = (array(step.one(n)).astype(DTYPES[step.one(1523).one(1500)]) for n in (1520, 1521))
    return a @ np.repeat(b, a.shape[1] // b.shape[1], 1)


def _total(step: Described, array: Any) -> Any:
    assert step.one(1612).one(1600) == 0, "a sum"
    x, shape = array(step.one(1610)).astype(DTYPES[step.one(1612).one(1601)]), _shape(step.one(1611))
    for axis, (n, m) in enumerate(zip(x.shape, shape, strict=True)):
        x = x.reshape(*x.shape[:axis], m, n // m, *x.shape[axis + 1 :]).sum(axis + 1)
    return x


def _reshaped(step: Described, array: Any) -> Any:
    return array(step.one(2200)).swapaxes(-1, -2)


def _banded(step: Described, array: Any) -> Any:
    x = array(step.one(3000)).copy()
    x[..., np.triu(np.ones(x.shape[-2:], bool), 1)] = array(step.one(3005))[0, 0, 0, 0]
    return x


_COMPUTED = {POINTWISE_STEP: _pointwise, PRODUCT: _product, TOTAL: _total, RESHAPE: _reshaped, BAND: _banded}


def _convolved(step: Described, array: Any) -> Any:
    """By the operators' references, channels first."""
    of, x, w, y = _operands(step)
    way, first = WAYS[step.kind]
    wide = DTYPES[of.one(100)]
    slide = [of.values[103], list(zip(of.values[105], of.values[104], strict=True)), of.values[102]]
    groups, order = _shape(x)[1] // _shape(w)[1], {2: "NCHW", 3: "NCDHW"}[of.one(106)]
    given = [array(one).astype(wide) for one in {10: (x, w), 12: (y, w), 11: (x, y)}[step.kind]]
    size = {10: [], 12: [_shape(x)[2:]], 11: [_shape(w)[2:]]}[step.kind]
    assert step.one(first + 1) == 0
    return getattr(reference, way)(*given, *size, *slide, groups, order) * wide.type(step.one(first))


def _changed(step: Described, first: int, scores: Any, array: Any) -> Any:
    """Scores through the graph within an operation."""
    if first not in step.values:
        return scores
    found = {step.one(first + 1): scores}

    def within(tensor: Described) -> Any:
        return found[tensor.one(906)] if tensor.one(906) in found else array(tensor)

    for one in step.one(first).values[801]:
        found[_result(one).one(906)] = _COMPUTED[one.kind](one, within)
    return found[step.one(first + 2)]


def _attend(step: Described, array: Any, store: Any) -> None:
    """By blocks of keys, whose largest scores are subtracted: one of -inf at the beginning leaves NaN."""
    query, key, value = (array(step.one(n)).astype(np.float32) for n in range(2800, 2803))
    times = query.shape[1] // key.shape[1]
    key, value = np.repeat(key, times, 1), np.repeat(value, times, 1)
    scores = query @ key.swapaxes(-1, -2) * array(step.one(2805)).astype(np.float32)
    scores = _changed(step, 2811, scores, array)
    largest, total, result = np.float32(-np.inf), np.float32(0), np.float32(0)
    for begin in range(0, scores.shape[-1], KEYS):
        some, of = scores[..., begin : begin + KEYS], value[..., begin : begin + KEYS, :]
        now = np.maximum(largest, some.max(-1, keepdims=True))
        left, weights = np.exp(largest - now), np.exp(some - now)
        total, result = total * left + weights.sum(-1, keepdims=True), result * left + weights @ of
        largest = now
    store(step.one(2803), result / total)
    if 2804 in step.values:
        store(step.one(2804), largest + np.log(total))


def _attend_back(step: Described, array: Any, store: Any) -> None:
    query, key, value, result, sums, cotangent = (
        array(step.one(n)).astype(np.float32) for n in (*range(2851, 2856), 2862))
    n, kept, keys, _ = key.shape
    times, scale = query.shape[1] // kept, array(step.one(2856)).astype(np.float32)
    key, value = np.repeat(key, times, 1), np.repeat(value, times, 1)
    weights = np.exp(_changed(step, 2867, query @ key.swapaxes(-1, -2) * scale, array) - sums)
    shift = (result * cotangent).sum(-1, keepdims=True)
    of_scores = weights * (cotangent @ value.swapaxes(-1, -2) - shift) * scale
    store(step.one(2859), of_scores @ key)
    for number, left, right in ((2860, of_scores, query), (2861, weights, cotangent)):
        each = left.swapaxes(-1, -2) @ right
        store(step.one(number), each.reshape(n, kept, times, keys, -1).sum(2))
