"""Writing one function of LLVM IR as text: values, blocks and loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import NamedTuple


class Register(NamedTuple):
    """A value in a register: its name or a constant, the type of an element, and the number of elements: 1 for what
    is the same in all lanes, which is kept as a scalar."""

    name: str
    type: str
    lanes: int = 1

    @property
    def full(self) -> str:
        """Its type as LLVM writes it."""
        return self.type if self.lanes == 1 else f"<{self.lanes} x {self.type}>"

    def __str__(self) -> str:
        """With its type, as an operand."""
        return f"{self.full} {self.name}"


class FunctionWriter:
    """The blocks of one function; `declared` gathers the intrinsics and functions of the module that it calls."""

    def __init__(self, declared: dict[str, None]) -> None:
        self.declared = declared
        self.lines: list[str] = []
        self.variables: list[str] = []
        """What is reserved on the stack, at the beginning of the first block."""
        self.block = "entry"
        self._numbers = count()

    def fresh(self, prefix: str = "v") -> str:
        """A name that is not taken."""
        return f"{prefix}{next(self._numbers)}"

    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def let(self, text: str, type: str, lanes: int = 1) -> Register:
        """The value of an instruction."""
        value = Register("%" + self.fresh(), type, lanes)
        self.line(f"{value.name} = {text}")
        return value

    def call(self, name: str, result: str, *operands: Register, lanes: int = 1) -> Register:
        """A call of an intrinsic or of a function of the C library, declared where it is not yet."""
        full = Register("", result, lanes).full
        self.declared[f"declare {full} @{name}({', '.join(x.full for x in operands)})"] = None
        return self.let(f"call {full} @{name}({', '.join(map(str, operands))})", result, lanes)

    def call_void(self, name: str, *operands: Register) -> None:
        self.declared[f"declare void @{name}({', '.join(x.full for x in operands)})"] = None
        self.line(f"call void @{name}({', '.join(map(str, operands))})")

    # ---- lanes
    def spread(self, value: Register, lanes: int) -> Register:
        """The same scalar in all lanes."""
        if value.lanes == lanes:
            return value
        if not value.name.startswith("%"):
            elements = ", ".join([str(value)] * lanes)
            return Register(f"<{elements}>", value.type, lanes)
        vector = f"<{lanes} x {value.type}>"
        first = self.let(f"insertelement {vector} poison, {value}, i64 0", value.type, lanes)
        return self.let(f"shufflevector {first}, {vector} poison, <{lanes} x i32> zeroinitializer", value.type, lanes)

    def lane(self, value: Register, number: int) -> Register:
        return self.let(f"extractelement {value}, i64 {number}", value.type)

    def shuffled(self, a: Register, b: Register, which: Sequence[int]) -> Register:
        """Lanes of two vectors, which are counted through."""
        numbers = ", ".join([f"i32 {k}" for k in which])
        return self.let(f"shufflevector {a}, {b}, <{len(which)} x i32> <{numbers}>", a.type, len(which))

    def any(self, condition: Register) -> Register:
        """Tell whether a condition holds in a lane."""
        if condition.lanes == 1:
            return condition
        return self.call(f"llvm.vector.reduce.or.v{condition.lanes}i1", "i1", condition)

    def backwards(self, x: Register) -> Register:
        """The lanes in reverse."""
        return self.shuffled(x, x._replace(name="poison"), range(x.lanes - 1, -1, -1))

    # ---- variables
    def variable(self, type: str, lanes: int = 1, length: int = 1) -> Register:
        """A pointer to memory of the stack for values that change, which LLVM makes registers."""
        name = "%" + self.fresh("s")
        full = Register("", type, lanes).full
        self.variables.append(f"  {name} = alloca {full if length == 1 else f'[{length} x {full}]'}, align 64")
        return Register(name, "ptr")

    def get(self, variable: Register, type: str, lanes: int = 1) -> Register:
        return self.let(f"load {Register('', type, lanes).full}, {variable}", type, lanes)

    def set(self, variable: Register, value: Register) -> None:
        self.line(f"store {value}, {variable}")

    # ---- blocks
    def begin(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block = label

    @contextmanager
    def loop(self, start: Register, stop: Register, step: int = 1) -> Iterator[Register]:
        """Repeat the block with a counter from `start` in steps for as long as it is below `stop`."""
        label = self.fresh("loop")
        before, counter, following = self.block, f"%{label}.i", f"%{label}.n"
        self.line(f"br label %{label}")
        self.begin(label)
        self.line(f"{counter} = phi i64 [{start.name}, %{before}], [{following}, %{label}.latch]")
        self.line(f"%{label}.c = icmp slt i64 {counter}, {stop.name}")
        self.line(f"br i1 %{label}.c, label %{label}.body, label %{label}.end")
        self.begin(f"{label}.body")
        yield Register(counter, "i64")
        self.line(f"br label %{label}.latch")
        self.begin(f"{label}.latch")
        self.line(f"{following} = add nsw i64 {counter}, {step}")
        self.line(f"br label %{label}")
        self.begin(f"{label}.end")

    @contextmanager
    def where(self, condition: Register) -> Iterator[None]:
        """Run the block only where a scalar condition holds."""
        label = self.fresh("if")
        self.line(f"br {condition}, label %{label}, label %{label}.end")
        self.begin(label)
        yield
        self.line(f"br label %{label}.end")
        self.begin(f"{label}.end")


def integer(number: int, bits: int = 64) -> Register:
    """A constant."""
    return Register(str(number), f"i{bits}")


def suffix(type: str) -> str:
    """The type in the names of intrinsics."""
    return {"float": "f32", "double": "f64"}.get(type, type)
