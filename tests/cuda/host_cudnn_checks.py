"""What the cuDNN of these tests looks at when a descriptor is finalised, and for which graphs it has engines."""

from __future__ import annotations

from nnc_core.base.dtype import float32
from tests.cuda.host_cudnn_descriptors import (
    ATTENTION,
    BAND,
    DTYPES,
    GRADIENTS,
    POINTWISE_STEP,
    WAYS,
    Described,
    name_of,
    operands_of,
    result_of,
    shape_of,
    tensors_of,
)

BAD, NOT_FINALIZED, NOT_SUPPORTED = 2000, 2004, 3000


def check_tensor(tensor: Described) -> int:
    shape, steps, size = tensor.values[902], tensor.values[903], DTYPES[tensor.one(901)].itemsize
    if len(shape) != len(steps) or min(shape) < 1 or min(steps) < 1 or tensor.one(900) % size:
        return BAD
    return 0


def check_sliding(sliding: Described) -> int:
    return BAD if {len(sliding.values[n]) for n in (102, 103, 104, 105)} != {sliding.one(106)} else 0


def check_convolution(step: Described) -> int:
    of, x, w, y = operands_of(step)
    shapes = [shape_of(one) for one in (x, w, y)]
    (n, channels, *pixels), (outputs, inputs, *window), (m, k, *counts) = shapes
    if {len(shape) for shape in shapes} != {of.one(106) + 2} or n != m or outputs != k or channels % inputs:
        return BAD
    axes = zip(pixels, window, counts, of.values[103], of.values[102], of.values[105], of.values[104], strict=True)
    for pixel, length, number, stride, dilation, before, after in axes:
        if (pixel + before + after - (length - 1) * dilation - 1) // stride + 1 != number:
            return BAD
    return 0


def check_pointwise(step: Described) -> int:
    x, y, mode = step.one(751), step.one(753), step.one(750).one(0)
    if (mode < 13) != (752 in step.values) or shape_of(x) != shape_of(y):
        return BAD
    fits = mode >= 13 or all([b in (1, n) for b, n in zip(shape_of(step.one(752)), shape_of(x), strict=True)])
    return 0 if fits else BAD


def check_attention(step: Described) -> int:
    query, key, value, result = (shape_of(step.one(n)) for n in range(2800, 2804))
    batch, heads, rows, features = query
    fits = (key[0] == value[0] == batch and key[1] == value[1] and heads % key[1] == 0 and key[2] == value[2]
            and key[3] == features and result == (batch, heads, rows, value[3]))
    sums = step.values.get(2804)
    if sums is not None and (shape_of(sums[0]) != (batch, heads, rows, 1) or DTYPES[sums[0].one(901)] != float32):
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
        if x.one(906) != at or {shape_of(x), shape_of(y)} != {scores} or not (x.one(907) and y.one(907)):
            return False
        if one.kind == POINTWISE_STEP:
            assert name_of(one) == "add" and 907 not in one.one(752).values, "a bias in memory"
        else:
            assert one.kind == BAND and one.one(3007) == 303, "queries see keys up to themselves"
        at = y.one(906)
    return bool(at == step.one(first + 2))


def check_gradients(step: Described) -> int:
    query, key, value, result, sums = (shape_of(step.one(n)) for n in range(2851, 2856))
    batch, heads, rows, features = query
    fits = (key[0] == value[0] == batch and key[1] == value[1] and heads % key[1] == 0 and key[2] == value[2]
            and key[3] == features and result == (batch, heads, rows, value[3]) == shape_of(step.one(2862))
            and sums == (batch, heads, rows, 1) and DTYPES[step.one(2855).one(901)] == float32
            and [shape_of(step.one(n)) for n in (2859, 2860, 2861)] == [query, key, value])
    return 0 if fits and _masks(step, 2867, (batch, heads, rows, key[2])) else BAD


def check_product(step: Described) -> int:
    """Heads of the second factor may be fewer."""
    a, b, c = (shape_of(step.one(n)) for n in range(1520, 1523))
    fits = a[0] == b[0] == c[0] and a[1] == c[1] and a[1] % b[1] == 0 and (a[2], a[3], b[3]) == (c[2], b[2], c[3])
    return 0 if fits else BAD


def check_total(step: Described) -> int:
    x, y = shape_of(step.one(1610)), shape_of(step.one(1611))
    return 0 if len(x) == len(y) and all([n % m == 0 for n, m in zip(x, y, strict=True)]) else BAD


def check_reshape(step: Described) -> int:
    """Here what is written is always the transpose of matrices."""
    x, y = shape_of(step.one(2200)), shape_of(step.one(2201))
    return 0 if y == (*x[:2], x[3], x[2]) else BAD


def check_graph(graph: Described) -> int:
    """Each number stands for one tensor, and what is in no memory is written before it is read, but by graphs within
    operations, which have no handle."""
    numbers = dict[int, Described]()
    written = set[int]()
    for step in graph.values[801]:
        for tensor in tensors_of(step):
            if numbers.setdefault(tensor.one(906), tensor) is not tensor:
                return BAD
        if step.kind in (ATTENTION, GRADIENTS) or 800 not in graph.values:
            continue
        result = result_of(step)
        read = [one for one in tensors_of(step) if one is not result and one.values.get(907, [False])[0]]
        if not all([one.one(906) in written for one in read]):
            return BAD
        written.add(result.one(906))
    return 0


def check_pack(pack: Described) -> int:
    return 0 if len(pack.values[1000]) == len(pack.values[1001]) else BAD


def is_known(graph: Described) -> bool:
    """Tell whether there are engines: tensors of one dtype that lie packed, channels last in all or in none; attention
    of halves with features side by side."""
    for step in graph.values[801]:
        if step.kind in (ATTENTION, GRADIENTS):
            arrays = [step.one(n) for n in (range(2800, 2804) if step.kind == ATTENTION else range(2851, 2855))]
            if any([one.one(901) not in (2, 9) or one.values[903][3] != 1 or shape_of(one)[3] % 8 for one in arrays]):
                return False
            if any([step % 8 for one in arrays for step in one.values[903][:3]]):
                return False
        elif step.kind in WAYS:
            _, *arrays = operands_of(step)
            orders = set.intersection(*[_orders(one) for one in arrays])
            if not orders:
                return False
    return True


def _orders(tensor: Described) -> set[str]:
    """The orders in which it lies packed."""
    shape, steps, found = shape_of(tensor), tensor.values[903], set[str]()
    rank = len(shape)
    for name, order in (("last", (0, *range(2, rank), 1)), ("first", tuple(range(rank)))):
        step, fits = 1, True
        for axis in reversed(order):
            fits &= shape[axis] == 1 or steps[axis] == step
            step *= shape[axis]
        if fits:
            found.add(name)
    return found
