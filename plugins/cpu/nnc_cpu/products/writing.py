"""Instructions that all writers of a product's functions need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from nnc_cpu.llvm.ir import FunctionWriter, Register, integer

Signature: TypeAlias = Sequence[tuple[str, str]]


def parameters(signature: Signature) -> list[Register]:
    return [Register(f"%{name}", type) for name, type in signature]


def function_text(f: FunctionWriter, name: str, signature: Signature, linkage: str = "internal ") -> str:
    """The function that has been written."""
    given = ", ".join([f"{type} %{name}" for name, type in signature])
    head = f"define {linkage}void @{name}({given}) #0 {{"
    return "\n".join([head, "entry:", *f.variables, *f.lines, "  ret void", "}"]) + "\n"


def moved(f: FunctionWriter, pointer: Register, type: str, by: Register, lanes: int = 1) -> Register:
    """The address so many elements, or vectors, further on."""
    return f.let(f"getelementptr {Register('', type, lanes).full}, {pointer}, {by}", "ptr")


def product(f: FunctionWriter, a: Register, b: Register) -> Register:
    return f.let(f"mul {a}, {b.name}", "i64")


def total(f: FunctionWriter, a: Register, b: Register) -> Register:
    return f.let(f"add {a}, {b.name}", "i64")


def difference(f: FunctionWriter, a: Register, b: Register) -> Register:
    return f.let(f"sub {a}, {b.name}", "i64")


def split(f: FunctionWriter, x: Register, by: Register) -> tuple[Register, Register]:
    """(x modulo a number, x divided by it)."""
    return f.let(f"urem {x}, {by.name}", "i64"), f.let(f"udiv {x}, {by.name}", "i64")


def places_in(f: FunctionWriter, number: Register, lengths: Sequence[Register]) -> list[Register]:
    """The place on each axis of what has this number in row-major order; the first axis needs no length."""
    places: list[Register] = []
    for length in reversed(lengths):
        place, number = split(f, number, length)
        places.append(place)
    return [number, *reversed(places)]


def smaller(f: FunctionWriter, a: Register, b: Register) -> Register:
    return f.call("llvm.smin.i64", "i64", a, b)


def loaded(f: FunctionWriter, pointer: Register, type: str, lanes: int, size: int, mask: Register | None) -> Register:
    """A vector that is aligned to its elements."""
    vector = Register("zeroinitializer", type, lanes)
    if mask is None:
        return f.let(f"load {vector.full}, {pointer}, align {size}", type, lanes)
    return f.call(f"llvm.masked.load.v{lanes}{suffix(type)}.p0", type, pointer, integer(size, 32), mask, vector,
                  lanes=lanes)


def store(f: FunctionWriter, value: Register, pointer: Register, size: int, mask: Register | None) -> None:
    if mask is None:
        f.line(f"store {value}, {pointer}, align {size}")
    else:
        f.call_void(f"llvm.masked.store.v{value.lanes}{suffix(value.type)}.p0", value, pointer, integer(size, 32), mask)


def suffix(type: str) -> str:
    """A type as names of intrinsics have it."""
    return {"float": "f32", "double": "f64"}.get(type, type)


def prefetch(f: FunctionWriter, place: Register) -> None:
    """Have the line of a place come into the second cache, if there is memory at all."""
    f.call_void("llvm.prefetch.p0", place, integer(0, 32), integer(2, 32), integer(1, 32))


def prefetch_to_write(f: FunctionWriter, place: Register) -> None:
    """Have the line of a place come into the first cache as one that no other processor has."""
    f.call_void("llvm.prefetch.p0", place, integer(1, 32), integer(3, 32), integer(1, 32))


def lanes_below(f: FunctionWriter, count: Register, lanes: int) -> Register:
    """The lanes whose number is below a count."""
    numbers = Register("<" + ", ".join([f"i64 {k}" for k in range(lanes)]) + ">", "i64", lanes)
    return f.let(f"icmp slt {numbers}, {f.spread(count, lanes).name}", "i1", lanes)


def either(f: FunctionWriter, condition: Register, true: Callable[[], None], false: Callable[[], None]) -> None:
    """Run one of two blocks."""
    with f.where(condition):
        true()
    with f.where(f.let(f"xor {condition}, true", "i1")):
        false()
