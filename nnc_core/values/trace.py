"""A function being traced: its symbols, what it reads and writes outside, and what it must be traced again for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nnc_core.base.errors import ConcretizationError, Error, LeakedTraceError
from nnc_core.shape import Shape, Specs
from nnc_core.symbol import postorder, show_line, user_line
from nnc_core.type import TensorSpec
from nnc_core.values.modes import current_trace
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Handle, Value

if TYPE_CHECKING:
    from nnc_core.values.cell import Cell

HINT = ("nnc.where or nnc.cond to choose by data, nnc.while_loop to repeat; static_argnums for an argument that Python "
        "has to know, and is traced again for")


class Guard(NamedTuple):
    """A Python value that the traced code depends on, and how it is read again before each call."""

    read: Callable[[], Any]
    value: Any

    def holds(self) -> bool:
        """True if it reads as it did."""
        return unchanged(self.read(), self.value)

    def change(self) -> str:
        """A description of the change."""
        return f"{self}" if isinstance(self.value, Value) else f"{self}: {self.value!r} -> {self.read()!r}"

    def __str__(self) -> str:
        """"version of Linear": guards are read by methods called _read_version and the like."""
        owner, name = getattr(self.read, "__self__", None), getattr(self.read, "__name__", "a value")
        if isinstance(owner, Rebound):
            return "elements, which Python looked at, of a tensor from outside"
        what = name.removeprefix("_read_").replace("_", " ")
        return what if owner is None else f"{what} of {type(owner).__name__}"


def unchanged(now: Any, then: Any) -> bool:
    """Equal, of the same type, and floats to the bit: 1, 1.0 and True are traced differently, so are 0.0 and -0.0."""
    if now is then:
        return True
    if type(now) is not type(then):
        return False
    if isinstance(now, float):
        return bool(now.hex() == then.hex())
    if isinstance(now, tuple):
        return len(now) == len(then) and all(map(unchanged, now, then))
    return not isinstance(now, (Tensor, np.ndarray)) and bool(now == then)


class Rebound:
    """The value that a tensor points at: values never change, so that the same one has the same elements."""

    def __init__(self, tensor: Handle) -> None:
        self.tensor = tensor

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rebound) and self.tensor is other.tensor

    __hash__ = None  # type: ignore[assignment]

    def read(self) -> Value:
        return self.tensor._value


class Trace:
    """A record of what happens while a function is traced.

    `name` is the function's; `arguments` gives the names of its symbols, in the order in which they were made, when an
    error has to speak of them.
    """

    depth = 0
    """How many bodies of control flow it is inside of: what depends on several traces belongs to the innermost."""

    def __init__(self, name: str = "the function", arguments: Callable[[], Sequence[str]] = tuple) -> None:
        self.ended = False
        self.line = user_line()
        self.name = name
        self.arguments = arguments
        self.symbols: list[Value] = []
        self.given: dict[int, Handle] = {}
        """Handles of the arguments: where the function runs by itself they are its caller's."""
        self.inside: dict[int, Value] = {}
        """Values that came about meanwhile, of symbols of traces around or of arrays of the host."""
        self.seen: dict[int, Handle] = {}
        """Handles of outside values by the value's id: read anew at each call."""
        self.local: dict[int, Value] = {}
        """Values recorded meanwhile that depend on no symbol: constants of the graph, nothing from outside."""
        self.cells: dict[Cell, Value] = {}
        self.now: dict[Cell, Value] = {}
        self.guards: list[Guard] = []
        self._read: set[tuple[int, str]] = set()
        self.counts = False
        """Whether there are sizes that depend on data."""
        self._specs: dict[Shape, Specs] = {}
        self.effects: list[Value] = []
        """What is computed although nothing may need it: callbacks with effects, in the order in which they came."""

    def size_counted(self) -> None:
        """A size that depends on data came about."""
        self.counts = True

    def size_read(self, v: Value) -> None:
        """Python asks for the shape of a value: calls with other shapes are traced for themselves."""

    def symbol(self, like: Value, spec: TensorSpec | None = None) -> Value:
        """An argument like this value, or with another spec."""
        made = Value(None, like.stack, like.spec if spec is None else spec, None, False, self)
        self.symbols.append(made)
        return made

    def argument(self, like: Value, spec: TensorSpec | None = None) -> Tensor:
        """The handle of an argument like this value."""
        made = Tensor(self.symbol(like, spec))
        self.given[id(made)] = made
        return made

    def handed_on(self, tensor: Tensor) -> Tensor:
        """Another handle of a tensor, for a function that may not change it."""
        made = Tensor(tensor._value)
        self.given[id(made)] = made
        return made

    def note(self, tensor: Handle) -> None:
        """A tensor that is no symbol is used."""
        if id(tensor._value) not in self.local:
            self.seen.setdefault(id(tensor._value), tensor)

    def made(self, value: Value) -> None:
        """A value was recorded that depends on no symbol, or on symbols of a trace around this one."""
        if value.trace is None:
            self.local[id(value)] = value
        elif value.trace is not self:
            self.inside[id(value)] = value

    # ---- in-place changes
    def owns(self, tensor: Handle) -> bool:
        """True if a handle was made here, so that nobody outside can see it point at another value."""
        v = tensor._value
        made = v.trace is self or id(v) in self.local or id(v) in self.inside
        return made and id(tensor) not in self.given

    def let_go(self, tensor: Handle) -> None:
        """A handle is about to point at another value: what is read at each call is the value that it had."""
        v = tensor._value
        if self.seen.get(id(v)) is tensor:
            self.seen[id(v)] = Tensor(v)

    def read(self, cell: Cell) -> Tensor:
        if cell not in self.now:
            held = cell.lend()
            self.cells[cell] = self.now[cell] = Value(None, held.stack, held.spec, None, False, self)
        return Tensor(self.now[cell])

    def uses(self, cell: Cell) -> bool:
        """The cell was read or written here, or in a trace around this one."""
        return cell in self.now

    def write(self, cell: Cell, value: Value) -> None:
        if cell not in self.cells:
            self.read(cell)
        self.now[cell] = value

    def specs_of(self, shape: Shape) -> Specs:
        """The specs that a layer has inferred in this trace."""
        known = self._specs.get(shape)
        if known is None:
            known = self._specs[shape] = {}
        return known

    # ---- what Python has looked at
    def guard(self, read: Callable[[], Any]) -> Any:
        """A Python value that the traced code depends on: it is read again before each call."""
        value = read()
        key = id(getattr(read, "__self__", read)), getattr(read, "__name__", "")
        if key not in self._read:
            self._read.add(key)
            self.guards.append(Guard(read, value))
        return value

    def concretized(self, tensor: Tensor) -> None:
        """Python looks at the elements of a tensor that is no symbol: the trace holds as long as every tensor from
        outside that they were computed from points at the same value."""
        if tensor._value.step is None:
            self.note(tensor)
        for v in postorder([tensor._value]):
            outside = self.seen.get(id(v))
            if outside is None:
                continue
            if v.borrowed:
                raise self.refusal(v, "what is in memory that others may change,")
            if not self.looked_at(outside):
                self.guards.append(Guard(Rebound(outside).read, v))

    def looked_at(self, tensor: Handle) -> bool:
        """True if Python has looked at the elements of this tensor from outside."""
        return any(getattr(g.read, "__self__", None) == Rebound(tensor) for g in self.guards)

    # ---- what a symbol cannot do
    def refusal(self, v: Value, what: str = "the value") -> Error:
        """The error for an operation on a symbol whose trace has ended, or for a question that it has no answer to."""
        made = "" if v.line is None else f", made at {show_line(v.line)},"
        if self.ended:
            return LeakedTraceError(
                f"a symbolic tensor {v.spec}{made} outlived {self.name!r}, the function that was traced",
                line=show_line(user_line()), hint="return it from the function instead of storing it outside")
        return ConcretizationError(
            f"{what} of a symbol {v.spec}{made} was asked for while {self.name!r} is traced; it depends on "
            f"{self._sources(v)}", line=show_line(user_line()), hint=HINT)

    def _sources(self, v: Value) -> str:
        """The arguments and cells that a value was computed from."""
        names = list(self.arguments())
        known = {id(s): f"argument `{names[i]}`" if i < len(names) else "an argument"
                 for i, s in enumerate(self.symbols)}
        known |= {id(s): f"cell {cell.name!r}" for cell, s in self.cells.items()}
        found = dict.fromkeys(known[id(x)] for x in postorder([v]) if id(x) in known)
        return " and ".join(found) or "what is traced"

    def __repr__(self) -> str:
        return f"<trace of {self.name} at {show_line(self.line)}>"


def guarded(read: Callable[[], Any]) -> Any:
    """Read a Python value that compiled code must be traced again for when it changes."""
    trace = current_trace.get()
    return read() if trace is None else trace.guard(read)
