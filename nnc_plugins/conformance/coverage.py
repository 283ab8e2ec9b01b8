"""Coverage of each operator by its cases, and what is wanted of it: the table that --nnc-coverage prints.

Whether a category applies to an operator follows from its declaration and from what its cases look like; what is left
out all the same is in `EXEMPT`, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.base.dtype import DType, is_inexact
from nnc_core.operator import OPERATORS
from nnc_core.type import Op, TensorSpec, TupleSpec
from nnc_plugins.conformance.agreement import BITS, rounding
from nnc_plugins.conformance.case import MANY, Array, Case
from nnc_plugins.conformance.cases import CASES, admitted_dtypes

CATEGORIES = ("empty", "scalar", "broadcast", "views", "NaN Inf", "large", "gradient")
"""*views*: operands that are not packed; *large*: more elements than many work groups take, and a rest beside them."""
GROUPS: Mapping[str, tuple[DType, ...]] = {"bool": (dt.boolean,), "int": dt.INTEGERS, "float": dt.FLOATS,
                                           "complex": dt.COMPLEX, "storage": dt.STORAGE}  # fmt: skip
DECOMPOSED = ("lstsq", "matrix_rank", "pinv")
EXEMPT: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "empty": {"gives a part of a shape, whatever is in it": ("of_size",)},
    "scalar": {
        "a transform is along axes, and of nothing it is a copy": ("fft",),
        "codes are a row of bytes; cases give results without axes": ("depalettise",),
    },
    "NaN Inf": {
        "gives a part of a shape, whatever is in it": ("of_size",),
        "held to every bit by test_transfers": ("transfer",),
        "what LAPACK makes of NaN depends on its version: it may raise": (
            "care", "cholesky", "dare", "eig", "eigh", "eigvals", "eigvalsh", "hessenberg", "qr", "schur",
            "solve_triangular", "stein", "svd", "svdvals", "sylvester", *DECOMPOSED),
        "how far NaN spreads depends on the algorithm": ("fft", "irfft", "rfft"),
        "weights that are no numbers are refused": ("random_choice", "random_multinomial"),
    },
    "large": {
        "made of decompositions, which run on the host": DECOMPOSED,
        "gives a part of a shape, whatever is in it": ("of_size",),
    },
    "gradient": {"has no derivative, and says so": ("hessenberg", "random_gamma", "schur")},
}  # fmt: skip


class Row(NamedTuple):
    """The first case of an operator that covers each category; "-" where it does not apply, "" where it is a hole."""

    name: str
    dtypes: str
    ulps: str
    found: Mapping[str, str]

    @property
    def holes(self) -> list[str]:
        return [category for category, label in self.found.items() if not label]


@cache
def rows() -> tuple[Row, ...]:
    """The coverage of all operators, by name."""
    return tuple([row_of(OPERATORS[name], seen(OPERATORS[name])) for name in sorted(CASES)])


def row_of(op: Op, seen: Sequence[Seen]) -> Row:
    """The categories that some of its cases cover."""
    found = {category: next((s.case.label for s in seen if COVERS[category](s)), "") for category in CATEGORIES}
    for category in CATEGORIES:
        if not found[category] and not applies(op, category, seen):
            found[category] = "-"
    return Row(op.name, _dtypes(op.name), rounding(op), found)


def _dtypes(name: str) -> str:
    """Whole groups by their names, and of others each."""
    admitted = admitted_dtypes(name)
    shown: list[str] = []
    for group, members in GROUPS.items():
        mine = [d.name for d in members if d in admitted]
        shown += [group] if len(mine) == len(members) else mine
    return " ".join(shown)


class Seen:
    """A case with what it makes for one dtype, a float if it takes one."""

    def __init__(self, op: Op, case: Case) -> None:
        self.op, self.case = op, case
        dtype = next((d for d in (dt.float32, dt.float64, dt.complex64) if d in case.dtypes), case.dtypes[0])
        self.inputs = case.inputs(np.random.default_rng(0), dtype)
        values = case.attribute_values(op, dtype)
        self.attributes: dict[str, Any] = dict(zip(op.attributes, values, strict=True))
        spec = op.infer(*(TensorSpec(x.shape, x.dtype) for x in self.inputs), *values)
        results = spec.parts if isinstance(spec, TupleSpec) else (spec,)
        self.results = [part.static_shape for part in results]
        self.shapes = [x.shape for x in self.inputs] + self.results

    @property
    def main(self) -> tuple[int, ...]:
        """The shape of the first operand; of what is made from nothing or from a key that of the result."""
        return self.results[0] if "shape" in self.attributes and len(self.inputs) < 2 else self.shapes[0]

    @property
    def takes_floats(self) -> bool:
        return any([is_inexact(x.dtype) for x in self.inputs])


def seen(op: Op) -> list[Seen]:
    """All cases of an operator."""
    return [Seen(op, case) for case in CASES[op.name]]


def can_be_viewed(inputs: Iterable[Array]) -> bool:
    """Tell whether one of them may lie otherwise than packed."""
    return any([x.ndim and x.size > 1 for x in inputs])


def _is_broadcast(seen: Seen) -> bool:
    return seen.op.elementwise and len({x.shape for x in seen.inputs}) > 1


def _has_no_numbers(seen: Seen) -> bool:
    """NaN or an infinity among the operands."""
    floats = [x for x in seen.inputs if is_inexact(x.dtype)]
    return any([not np.isfinite(x.astype(np.complex128)).all() for x in floats])


COVERS: Mapping[str, Callable[[Seen], bool]] = {
    "empty": lambda seen: any([0 in shape for shape in seen.shapes]),
    "scalar": lambda seen: seen.main == (),
    "broadcast": _is_broadcast,
    "views": lambda seen: can_be_viewed(seen.inputs),
    "NaN Inf": _has_no_numbers,
    "large": lambda seen: any([prod(shape) > MANY for shape in seen.shapes]),
    "gradient": lambda seen: seen.case.smooth and any([is_inexact(d) for d in seen.case.dtypes]),
}


# ---- what applies
ANY_RANK = frozenset(("axes", "keepdims", "low", "shape", "start"))
"""Attributes of operators that take arrays without axes too, unless they go along one axis."""


def applies(op: Op, category: str, seen: Sequence[Seen]) -> bool:
    """Tell whether an operator has to have a case of a category."""
    if any([op.name in names for names in EXEMPT.get(category, {}).values()]):
        return False
    return RULES[category](op, seen)


def _takes_scalars(op: Op, seen: Sequence[Seen]) -> bool:
    along = any([isinstance(s.attributes.get("axis"), int) for s in seen])
    made = bool(op.inputs) or "shape" in op.attributes
    return op.elementwise or (made and not along and not ANY_RANK.isdisjoint(op.attributes))


def _runs_on_the_device(op: Op, seen: Sequence[Seen]) -> bool:
    return op.scalar is not None or op.nest is not None or op.decompose is not None


def _has_a_derivative(op: Op, seen: Sequence[Seen]) -> bool:
    return op.differentiable and any([s.takes_floats for s in seen])


RULES: Mapping[str, Callable[[Op, Sequence[Seen]], bool]] = {
    "empty": lambda op, seen: True,
    "scalar": _takes_scalars,
    "broadcast": lambda op, seen: op.elementwise and len(op.inputs) > 1,
    "views": lambda op, seen: bool(op.inputs),
    "NaN Inf": lambda op, seen: any([s.takes_floats for s in seen]),
    "large": _runs_on_the_device,
    "gradient": _has_a_derivative,
}


# ---- the table
def lines(measured: Mapping[str, float]) -> Iterator[str]:
    """The table of all operators, with the largest part of the allowed error that a run has seen for each."""
    yield from table(rows(), measured)
    holes = sum(len(row.holes) for row in rows())
    yield f"{len(rows())} operators, {holes} holes; - does not apply; seen: which part of the bound was used at most"


def table(some: Sequence[Row], measured: Mapping[str, float]) -> Iterator[str]:
    """A line for each row, under a head."""
    width, wide, bounds = (max(len(cell) for cell in cells)
                           for cells in zip(*[(row.name, row.dtypes, row.ulps) for row in some], strict=True))
    yield f"{'operator':{width}} {'dtypes':{wide}} {' '.join(CATEGORIES)} {'ULP':{bounds}} seen"
    for row in some:
        marks = " ".join([f"{_mark(row.found[c]):{len(c)}}" for c in CATEGORIES])
        yield f"{row.name:{width}} {row.dtypes:{wide}} {marks} {row.ulps:{bounds}} {_part(row, measured)}".rstrip()


def _part(row: Row, measured: Mapping[str, float]) -> str:
    part = measured.get(row.name)
    if part is None or row.ulps == BITS:
        return ""
    return "<1%" if 0 < part < 0.01 else f"{part:.0%}"


def _mark(label: str) -> str:
    return {"": "HOLE", "-": "-"}.get(label, "x")
