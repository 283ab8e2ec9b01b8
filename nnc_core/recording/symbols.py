"""Assigned symbols: what has a value, since when, and what has to be computed again."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary, WeakSet

from nnc_core.base.errors import Error, ExecutionError, ShapeError, SymbolValueError, UnassignedError
from nnc_core.base.line import HOUSE
from nnc_core.device import Array
from nnc_core.operator.control import TRIPS, is_tape
from nnc_core.recording.shapes import Shapes, placeholder_like
from nnc_core.recording.sizes import baked, has_names, numbered, solved
from nnc_core.symbol import Line, postorder, show_line, user_line
from nnc_core.type import Attributes, Dim, TensorSpec, TupleSpec, any_data_dependent, is_data_dependent, is_static
from nnc_core.values.data_dependent import names_in, unresolved_counts, with_resolved_sizes
from nnc_core.values.evaluation import evaluate
from nnc_core.values.modes import computing
from nnc_core.values.running import run_now
from nnc_core.values.unshaped import Made, Unshaped, text_of, unknown_shape
from nnc_core.values.value import Value

if TYPE_CHECKING:
    from nnc_core.symbols.symbolic import SymbolicGenerator


class Known(NamedTuple):
    """The value of a symbol, and when it was assigned or computed."""

    stamp: int
    array: Array


class Symbols:
    """The trace that assigned symbols belong to: it never ends.  Keeps what has been evaluated, as long as it lives.

    A computed value is valid if it is younger than what it was computed from, and that is valid.  Arrays are never
    overwritten, so that values, snapshots and iopairs share them.
    """

    ended = False
    depth = 0

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.clock = 0
        self.changes = 0
        """Counts what can make values invalid: assignments, draws, releases, restorations."""
        self.names: WeakKeyDictionary[Value, str] = WeakKeyDictionary()
        self.known: WeakKeyDictionary[Value, Known] = WeakKeyDictionary()
        self.frozen: WeakSet[Value] = WeakSet()
        self.generators: WeakKeyDictionary[Value, SymbolicGenerator] = WeakKeyDictionary()
        """Of random keys: where the next one comes from."""
        self.sizes_read: WeakKeyDictionary[Value, Line | None] = WeakKeyDictionary()
        """Placeholders whose declared sizes, or sizes made of them, Python has been given, and where."""
        self._found_valid: WeakKeyDictionary[Value, int] = WeakKeyDictionary()
        self.shapes = 0
        """Counts what can make symbols of unknown shape stand for others: assignments of other shapes, and freezing."""
        self._resolved = -1
        self.evaluations = 0
        """How many operators have been run: what incremental evaluation saves can be seen."""

    # ---- symbols of unknown shape
    def standing_for(self, v: Value) -> Value:
        """The value itself; of a symbol of unknown shape what stands for it with what is assigned."""
        if not isinstance(v, Unshaped):
            return v
        with self.lock:
            if self._resolved != self.shapes:
                self._resolved, self._now = self.shapes, Shapes(self._placeholder_now, replaced=self._replace)
            return self._now.resolve(v)

    def _placeholder_now(self, v: Unshaped) -> Value:
        assert v.declared is not None
        if v.declared.now is None:
            raise UnassignedError(f"the symbol {text_of(v)} has no value", hint="nnc.assign(symbol, value) before eval")
        return v.declared.now

    def _replace(self, former: Made, now: Made) -> None:
        """Drop the arrays of what stood for a call before, with other shapes: nobody asks for them."""
        kept = {id(x) for x in (*former.inputs, *now.results)}
        for x in postorder(former.results, kept):
            if id(x) not in kept and x.step is not None and x not in self.frozen:
                self.known.pop(x, None)

    def spec_now(self, v: Unshaped) -> TensorSpec:
        """The spec that the user's code asks for, which is known once all is assigned."""
        if any(leaf.declared is not None and leaf.declared.now is None for leaf in v.leaves):
            raise unknown_shape(v)
        spec = self.standing_for(v).spec
        for leaf in v.leaves:
            if leaf.declared is not None and leaf.declared.now is not None:
                leaf.declared.read()
        return spec

    def assign_shape(self, v: Unshaped, array: Array) -> None:
        """Give a placeholder of unknown shape a value, and with it the shape."""
        assert v.declared is not None
        with self.lock:
            former, placeholder = v.declared.now, placeholder_like(v, _spec_of(array), self.names)
            if placeholder is not former:
                v.declared.becomes(placeholder)
                self.shapes += 1
                if former is not None:
                    self.known.pop(former, None)
            self.assign(placeholder, array)

    def invalidate(self, v: Value) -> None:
        """Let a value, and what depends on it, be evaluated anew; an assigned one is as if it were assigned again."""
        with self.lock:
            known = self.known.get(v)
            if v.step is None and known is not None:
                self.put(v, known.array)
            elif v.step is not None:
                self.known.pop(v, None)
            self.changes += 1

    def pin(self, v: Value, standing: Value) -> None:
        """Freeze what stands for a value."""
        with self.lock:
            self.frozen.add(standing)
            if isinstance(v, Unshaped):
                v.pinned = standing
                self.shapes += 1

    def unpin(self, v: Value) -> None:
        """Let a value follow what it depends on again."""
        with self.lock:
            if isinstance(v, Unshaped):
                standing, v.pinned = v.pinned, None
                self.shapes += 1
                if standing is not None:
                    self.frozen.discard(standing)
            else:
                self.frozen.discard(v)

    # ---- sizes that Python reads
    def size_read(self, v: Value) -> None:
        """The user's code asks for the shape of a value: what it makes of the numbers cannot follow another size."""
        if v.__class__ is Unshaped:
            return  # noted where the spec is asked for
        frame = sys._getframe(2)
        while frame.f_code.co_filename.endswith("/values/tensor.py") and frame.f_back is not None:
            frame = frame.f_back
        if frame.f_code.co_filename.startswith(HOUSE):
            return
        for x in postorder([v]):
            if x.step is None and x.trace is self and is_static(x.shape):
                self.sizes_read.setdefault(x, user_line())

    def put(self, v: Value, array: Array) -> None:
        """Give a value, younger than every other."""
        with self.lock:
            self.clock += 1
            self.known[v] = Known(self.clock, array)

    def assign(self, v: Value, array: Array) -> None:
        """Give a placeholder a value."""
        with self.lock:
            self.put(v, array)
            self.changes += 1

    def ancestors(self, values: Iterable[Value]) -> list[Value]:
        """The symbols that these values depend on, inputs first; a frozen one is an end."""
        frozen = self.frozen
        order = postorder(values, leaf=lambda v: v.trace is None or v in frozen)
        return [v for v in order if v.trace is not None]

    def evaluate(self, outputs: Sequence[Value]) -> int:
        """Draw what is random, then run what has no value or an old one; how many operators that were."""
        with self.lock:
            order = self.ancestors([*self._counts(outputs), *outputs])
            self._draw(order)
            sizes = self._sizes(order)
            before = self.evaluations
            for v in order:
                if v in self.frozen:
                    continue
                if v.step is None:
                    self._check_assigned(v)
                elif self._is_old(v):
                    self.put(v, self._compute(v, sizes))
                if any_data_dependent():
                    sizes.update(_counted(v, self.known[v].array))
            self._found_valid.update(dict.fromkeys([v for v in outputs if v.trace is not None], self.changes))
            return self.evaluations - before

    def _counts(self, outputs: Sequence[Value]) -> list[Value]:
        """Counts of the sizes that these values need without being computed from what is counted."""
        if not any_data_dependent():
            return []
        order = postorder(outputs, leaf=lambda v: v.array is not None or v in self.frozen)
        recorded = [v for v in order if v.step is not None]
        resolved = {name for v in recorded if v.op.data_dependent for name in names_in(v.spec)}
        others = [v for v in recorded if not v.op.data_dependent]
        counts = [c for v in others for c in unresolved_counts(v.attributes) if c.trace is self]
        return list({str(c.shape[0]): c for c in counts if not resolved.issuperset(names_in(c.spec))}.values())

    def is_valid(self, v: Value) -> bool:
        """True if the value is there and not older than what it depends on."""
        with self.lock:
            if v.trace is None:
                return True
            if self._found_valid.get(v) == self.changes:
                return True
            valid = all(x in self.known and (x in self.frozen or not self._is_old(x)) for x in self.ancestors([v]))
            if valid:
                self._found_valid[v] = self.changes
            return valid

    def _is_old(self, v: Value) -> bool:
        known = self.known.get(v)
        return known is None or any(self.known[x].stamp > known.stamp for x in v.inputs if x.trace is not None)

    def _check_assigned(self, v: Value) -> None:
        if v.trace is not self:
            raise SymbolValueError(f"a symbol {v.spec} of a traced function has no value here",
                                   hint="eval takes what was built on nnc.var_arr and nnc.var_elt")
        if v not in self.known:
            raise UnassignedError(f"the symbol {self.names.get(v, '?')!r} {v.spec} has no value",
                                  hint="nnc.assign(symbol, value) before eval")

    def _draw(self, order: Iterable[Value]) -> None:
        for v in order:
            generator = self.generators.get(v)
            if generator is not None and v not in self.frozen:
                with computing():
                    key = generator.draw()
                    evaluate([key])
                self.assign(v, key.array)

    def _sizes(self, order: Iterable[Value]) -> dict[str, int]:
        """The numbers of named dimensions, from what is assigned."""
        return solved((f"symbol {self.names.get(v, '?')!r}", v.shape, tuple(self.known[v].array.shape))
                      for v in order if v.step is None and v in self.known and not is_static(v.shape))

    def _compute(self, v: Value, sizes: Mapping[str, int]) -> Array:
        self.evaluations += 1
        try:
            inputs = [self._input(x, sizes) for x in v.inputs]
            attributes = self._attributes(v, [x.spec for x in inputs], sizes)
            with computing():
                spec = v.stack.shape.infer(v.op, tuple([x.spec for x in inputs]), attributes)
                return run_now(v.op, inputs, attributes, spec, v.stack)
        except Error as error:
            error.locate(operator=v.op.name, line=show_line(v.line))
            raise
        except Exception as error:
            raise ExecutionError(f"{type(error).__name__}: {error}", operator=v.op.name,
                                 device=v.stack.device.spec.id, line=show_line(v.line)) from error

    def _input(self, x: Value, sizes: Mapping[str, int]) -> Value:
        if x.trace is None:
            order = postorder([x], leaf=lambda v: v.array is not None) if sizes and x.array is None else ()
            if any(has_names(v.attributes) for v in order):
                return _of_sizes(order, sizes)
            evaluate([x])
            return x
        array = self.known[x].array
        spec = _spec_of(array)
        if is_tape(x.spec):  # as long as a loop has run: the way back goes by that, not by the number
            spec = TensorSpec((TRIPS, *spec.shape[1:]), spec.dtype)
        return Value(array, x.stack, spec)

    def _attributes(self, v: Value, given: Sequence[TensorSpec], sizes: Mapping[str, int]) -> Attributes:
        """With numbers for named dimensions; ShapeError if they hold a size that was declared and is another now."""
        held = baked(v.op, v.attributes, [x.spec for x in v.inputs], given)
        if held:
            raise ShapeError(f"{held} was recorded for {', '.join(str(x.spec) for x in v.inputs)} and is used for "
                             f"{', '.join(map(str, given))}", hint="declare the symbol with a nnc.Dim for that size")
        return _with_numbers(v, sizes)


def _with_numbers(v: Value, sizes: Mapping[str, int]) -> Attributes:
    """The attributes of a step with numbers for names: sizes of symbols, and counts of what depends on no symbol."""
    attributes = v.attributes
    if any_data_dependent():
        evaluate([c for c in unresolved_counts(attributes) if c.trace is None])
        attributes = with_resolved_sizes(attributes, v.stack)
    if sizes and has_names(attributes):
        attributes = numbered(attributes, sizes, v.stack)
    return attributes


def _of_sizes(order: Sequence[Value], sizes: Mapping[str, int]) -> Value:
    """The last of these values, which depend on no symbol, for the sizes that symbols have now."""
    made: dict[int, Value] = {}
    for v in order:
        made[id(v)] = v
        if v.array is None:
            inputs = [made[id(x)] for x in v.inputs]
            attributes = _with_numbers(v, sizes)
            with computing():
                spec = v.stack.shape.infer(v.op, tuple([x.spec for x in inputs]), attributes)
                array = run_now(v.op, inputs, attributes, spec, v.stack)
            made[id(v)] = Value(array, v.stack, _spec_of(array))
    return made[id(order[-1])]


def _counted(v: Value, array: Array) -> dict[str, int]:
    """The sizes that depend on data, as this value tells them."""
    shape = () if isinstance(array, tuple) else array.shape
    return {str(d): n for d, n in zip(v.shape, shape, strict=False)
            if isinstance(d, Dim) and is_data_dependent(str(d)) and str(d) in d.names}


def _spec_of(array: Array) -> TensorSpec:
    """Spec of an array, or of the tuple of arrays that an operator with several results gives."""
    if isinstance(array, tuple):
        return TupleSpec(tuple(map(_spec_of, array)))
    return TensorSpec(tuple(array.shape), array.dtype)


SYMBOLS = Symbols()
