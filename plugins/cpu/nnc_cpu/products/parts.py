"""Products that consist of parts: one function whose tasks are those of all parts, one after the other.

The numbers that it is given are those of `plan.py`: how many parts there are, the tasks before each and before the end,
and the numbers of each part.
"""

from __future__ import annotations

from nnc_cpu.llvm.ir import FunctionWriter, integer
from nnc_cpu.products.kind import Kind
from nnc_cpu.products.numbers import names_of
from nnc_cpu.products.writing import Signature, difference, function_text, moved, parameters, product, smaller, total

SIGNATURE: Signature = (("arguments", "ptr"), ("numbers", "ptr"), ("begin", "i64"), ("end", "i64"))
"""What functions of tasks take."""


def parts_text(name: str, kind: Kind, declared: dict[str, None]) -> str:
    """The function that hands tasks on to `part`, each with the numbers of its part."""
    f = FunctionWriter(declared)
    arguments, numbers, begin, end = parameters(SIGNATURE)
    count = f.let(f"load i64, {numbers}", "i64")
    with f.loop(integer(0), count) as n:
        place = moved(f, numbers, "i64", n)
        first, last = (f.let(f"load i64, {moved(f, place, 'i64', integer(k))}", "i64") for k in (1, 2))
        low = difference(f, f.call("llvm.smax.i64", "i64", begin, first), first)
        high = difference(f, smaller(f, end, last), first)
        with f.where(f.let(f"icmp slt {low}, {high.name}", "i1")):
            before = total(f, total(f, count, integer(2)), product(f, n, integer(len(names_of(kind)))))
            own = moved(f, numbers, "i64", before)
            f.line(f"call void @part({arguments}, {own}, {low}, {high})")
    return function_text(f, name, SIGNATURE, linkage="")
