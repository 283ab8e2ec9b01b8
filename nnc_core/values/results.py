"""The number of results of a call before it runs: told by the annotation of the function, or by its arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args, get_origin, get_type_hints

from nnc_core.type import Dim, DimLike
from nnc_core.values.tensor import Tensor
from nnc_core.values.tree import tree_map

ONE = object()
"""Stands for one tensor."""
SEVERAL = object()
"""Stands for as many tensors as the shapes say."""
Given = Mapping[str, Any]


def results_of(f: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """A structure with something in the place of each tensor that f gives for these arguments; None if nobody can say,
    or if it gives something else."""
    plain = inspect.unwrap(f)
    rules = OF_USERS if plain.__module__.startswith(_TAKE_FUNCTIONS) else RULES
    rule = rules.get(plain.__name__)
    if rule is not None:
        bound = inspect.signature(plain).bind(*args, **kwargs)
        bound.apply_defaults()
        return rule(bound.arguments)
    try:
        declared = get_type_hints(plain, localns={"Dim": Dim, "DimLike": DimLike}).get("return")
    except NameError:  # a name that is there for type checkers alone
        return None
    return _structure(declared)


def _structure(kind: Any) -> Any:
    if kind is Tensor:
        return ONE
    if isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields"):
        parts = [_structure(part) for part in get_type_hints(kind).values()]
        return None if None in parts or SEVERAL in parts else kind(*parts)
    if get_origin(kind) is tuple and Ellipsis not in get_args(kind):
        parts = [_structure(part) for part in get_args(kind)]
        return None if None in parts or SEVERAL in parts else tuple(parts)
    return SEVERAL if kind in (tuple[Tensor, ...], list[Tensor]) else None


# ---- by the arguments
def _sections(name: str) -> Callable[[Given], Any]:
    def rule(given: Given) -> Any:
        sections = given[name]
        if isinstance(sections, int):
            return [ONE] * sections
        return [ONE] * (len(sections) + 1) if isinstance(sections, Sequence) else SEVERAL

    return rule


def _each(name: str, kind: Callable[[Sequence[Any]], Any], alone: bool = False) -> Callable[[Given], Any]:
    """One for each of the arguments `*name`; where `alone`, one by itself for a single one."""
    return lambda given: ONE if alone and len(given[name]) == 1 else kind([ONE] * len(given[name]))


def _flagged(*flags: str) -> Callable[[Given], Any]:
    """One, and one more for each flag that is set."""

    def rule(given: Given) -> Any:
        more = sum(bool(given[flag]) for flag in flags)
        return (ONE,) * (1 + more) if more else ONE

    return rule


# ---- by what the user's functions give
def _scanned(f: Any, carry: Any, xs: Any) -> Any:
    """(carry, y) of a step on the first of xs."""
    return f(carry, tree_map(lambda x: x[0], xs))


def _tangents(given: Given) -> Any:
    result = given["f"](*given["primals"])
    return result, result


def _along(axis: Any) -> Any:
    """One for one axis; without axes nobody knows how many there are."""
    if axis is None or isinstance(axis, int):
        return SEVERAL if axis is None else ONE
    return (ONE,) * len(axis)


RULES: dict[str, Callable[[Given], Any]] = {
    **dict.fromkeys(("split", "array_split", "hsplit", "vsplit", "dsplit"), _sections("indices_or_sections")),
    **dict.fromkeys(("atleast_1d", "atleast_2d", "atleast_3d"), _each("arrays", tuple, alone=True)),
    **dict.fromkeys(("meshgrid", "broadcast_arrays"), _each("arrays", list)), "ix_": _each("args", tuple),
    **dict.fromkeys(("max_pool1d", "max_pool2d", "max_pool3d", "adaptive_max_pool"), _flagged("with_indices")),
    **dict.fromkeys(("cummax", "cummin"), _flagged("return_indices")), "average": _flagged("returned"),
    "unique": _flagged("return_index", "return_inverse", "return_counts"),
    "unique_consecutive": _flagged("return_inverse", "return_counts"),
    "intersect1d": lambda given: (ONE,) * 3 if given["return_indices"] else ONE,
    "gradient": lambda given: _along(given["axis"]),
    "unravel_index": lambda given: (ONE,) * (1 if isinstance(given["shape"], int) else len(given["shape"])),
}
"""By the name of a function: structures of results that its annotation leaves open."""
_TAKE_FUNCTIONS = ("nnc_core.control.", "nnc_core.algodiff.")
OF_USERS: dict[str, Callable[[Given], Any]] = {
    "while_loop": lambda given: tuple(given["carried"]),
    "cond": lambda given: given["true_fn"](*given["operands"]),
    "case_of": lambda given: tuple(given["branches"][0](*given["operands"])),
    "scan": lambda given: (given["init"], _scanned(given["f"], given["init"], given["xs"])[1]),
    "foreach": lambda given: given["f"](tree_map(lambda x: x[0], given["xs"]), given["states"]),
    "map": lambda given: given["f"](tree_map(lambda x: x[0], given["xs"])),
    "jvp": _tangents, "jacobianv": lambda given: given["f"](given["x"]), "hessianv": lambda given: given["x"],
    "gradhessianv": lambda given: (given["x"], given["x"]),
    "gradients": lambda given: [ONE] * len(given["wrt"]),
}
"""The same of functions that take the user's: what these give says it."""
