"""The arrays of a product in C-like languages: parameters of its kernels, and elements."""

from __future__ import annotations

from collections.abc import Sequence

from nnc_core.base.dtype import DType
from nnc_core.codegen import Dialect
from nnc_core.operator.products.numbers import AlongRow


def array_parameters(order: Sequence[int], dtypes: Sequence[DType], outputs: int, dialect: Dialect) -> list[str]:
    """Parameters g0, g1, ... for the arguments in order, each once; the last `outputs` arrays are written."""
    assert dialect.parameter is not None
    named: dict[int, str] = {}
    for n, (dtype, place) in enumerate(zip(dtypes, order, strict=True)):
        const = "" if n >= len(dtypes) - outputs else "const "
        named.setdefault(place, dialect.parameter.format(const=const, type=dialect.types[dtype.name], name=f"g{place}"))
    return [named[place] for place in sorted(named)]


def element(name: str, row: str, column: str, along: AlongRow) -> str:
    """The element of an operand or output of the ending."""
    steps = {"one": "", "dense": f" + {column}", "apart": f" + {column} * {name}_column"}[along]
    return f"{name}[{row} * {name}_row{steps}]"
