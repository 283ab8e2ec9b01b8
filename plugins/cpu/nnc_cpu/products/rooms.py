"""Memory that a product's function works in: of the stack, or of the heap where a thread's stack may not have it."""

from __future__ import annotations

from nnc_cpu.llvm.ir import FunctionWriter, Register, integer
from nnc_cpu.products.ending import LINE
from nnc_cpu.products.writing import total

MOST_ON_STACK = 1 << 17
"""Bytes of a room."""


class Rooms:
    """Writes the rooms of a function, which are aligned to lines."""

    def __init__(self, function: FunctionWriter) -> None:
        self.function = function
        self.borrowed: list[Register] = []

    def reserve(self, type: str, size: int, count: int) -> Register:
        """The address of a room for so many elements of a type, of `size` bytes each."""
        if size * count <= MOST_ON_STACK:
            return self.function.variable(type, 1, count)
        f = self.function
        room = f.call("malloc", "ptr", integer(size * count + LINE))
        with f.where(f.let(f"icmp eq {room}, null", "i1")):
            f.call_void("llvm.trap")  # systems that promise memory before it is used never come here
        self.borrowed.append(room)
        address = total(f, f.let(f"ptrtoint {room} to i64", "i64"), integer(LINE - 1))
        return f.let(f"inttoptr {f.let(f'and {address}, {-LINE}', 'i64')} to ptr", "ptr")

    def give_back(self) -> None:
        """Free what is not on the stack."""
        for room in self.borrowed:
            self.function.call_void("free", room)
