"""Symbols of unknown shape resolved: what was recorded runs again for the shapes of its placeholders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from weakref import WeakKeyDictionary

from nnc_core.base.errors import Error, ShapeError
from nnc_core.symbol import called_at, postorder, show_line
from nnc_core.type import TensorSpec
from nnc_core.values.modes import deferred
from nnc_core.values.unshaped import Declaration, Made, RecordedCall, Unshaped, resolving
from nnc_core.values.value import Value

Placeholders = Callable[[Unshaped], Value]
"""Gives the placeholder of known shape that stands for one of unknown shape."""
Replaced = Callable[[Made, Made], None]


class Shapes:
    """Resolves symbols for one assignment of shapes to placeholders.

    What was made of a call is kept with it, by what its inputs are, so that shapes that come again cost nothing.
    With `replaced` it is what is assigned now: frozen symbols stay what they are, and `replaced` is told what stood
    for a call before, and what does now.
    """

    def __init__(self, placeholders: Placeholders, given: Mapping[Unshaped, Value] | None = None,
                 replaced: Replaced | None = None) -> None:
        self.placeholders, self.replaced = placeholders, replaced
        self._known: WeakKeyDictionary[Unshaped, Value] = WeakKeyDictionary(given or {})

    def resolve(self, v: Unshaped) -> Value:
        """The symbol of known shape that stands for one of unknown shape."""
        found = self._known.get(v)
        if found is not None:
            return found
        for x in postorder([v], leaf=self._is_known):
            if isinstance(x, Unshaped) and x not in self._known:
                self._known[x] = self._one(x)
        return self._known[v]

    def _is_known(self, x: Value) -> bool:
        return not isinstance(x, Unshaped) or x in self._known or (self.replaced is not None and x.pinned is not None)

    def _one(self, v: Unshaped) -> Value:
        if self.replaced is not None and v.pinned is not None:
            return v.pinned
        if v.declared is not None:
            return self.placeholders(v)
        call: RecordedCall = v.step
        inputs = [self._input(x) for x in call.inputs]
        results = call.found.get(self._key(call, inputs))
        if results is None:
            _check_numbers(v, self.placeholders)
            results = self._run(v, call, inputs)
            call.found.put(self._key(call, inputs), results)
        if self.replaced is not None:
            former, call.now = call.now, Made(inputs, results)
            if former is not None and former.results is not results:
                self.replaced(former, call.now)
        return results[v.index]

    def _input(self, x: Value) -> Value:
        return self.resolve(x) if isinstance(x, Unshaped) else x

    def _key(self, call: RecordedCall, inputs: list[Value]) -> tuple[Value, ...]:
        return (*inputs, *[self.resolve(x) for x in call.hidden])

    def _run(self, v: Unshaped, call: RecordedCall, inputs: list[Value]) -> list[Value]:
        watched = _Watched(self, call)
        try:
            results = call.context.copy().run(_again, watched, call, inputs)
            return [self._input(x) for x in results]
        except Error as error:
            error.locate(operator=call.name, line=show_line(call.line))
            error.symbols = error.symbols or self._named([*v.leaves, *call.hidden])
            raise

    def _named(self, leaves: Iterable[Unshaped]) -> str:
        """Placeholders with the specs that they have here."""
        return ", ".join(f"{x.declared.name} {self.resolve(x).spec}" for x in dict.fromkeys(leaves)
                         if x.declared is not None)


class _Watched:
    """Resolves for one call that runs again, and notes what it reads besides its inputs."""

    def __init__(self, shapes: Shapes, call: RecordedCall) -> None:
        self.shapes, self.call = shapes, call

    def resolve(self, v: Unshaped) -> Value:
        found = self.shapes.resolve(v)
        if v not in self.call.hidden and v not in self.call.inputs:
            self.call.hidden.append(v)
        return found


def _again(watched: _Watched, call: RecordedCall, inputs: list[Value]) -> list[Value]:
    """Run a call on symbols of known shape.  Functions of nnc record what they make without symbols too, so that graphs
    hold steps and not arrays; the user's run as they are written."""
    resolving.set(watched)
    with nullcontext() if call.opaque else deferred(keep_graph=True):
        return called_at(call.line, call.run, inputs)


def _check_numbers(v: Unshaped, placeholders: Placeholders) -> None:
    """ShapeError if Python had read a size, before this was written, that is another one now."""
    for leaf in v.leaves:
        declared: Declaration | None = leaf.declared
        read = None if declared is None else declared.read_for(v.step.serial)
        if declared is None or read is None:
            continue
        spec = placeholders(leaf).spec
        if read.spec != spec:
            raise ShapeError(f"Python had read the shape of {declared.name!r} before this was written, when it was "
                             f"{read.spec}, at {show_line(read.line)}; now it is {spec}, and what was made of the "
                             "number would not follow", operator=v.step.name, line=show_line(v.step.line),
                             hint='declare the size by a name: nnc.var_arr("x", ("n", 2))')


def placeholder_like(v: Unshaped, spec: TensorSpec, names: WeakKeyDictionary[Value, str]) -> Value:
    """The placeholder of that shape which stands for v, always the same for as long as it is kept."""
    declared = v.declared
    assert declared is not None

    def make() -> Value:
        made = Value(None, v.stack, spec, None, False, v.trace)
        names[made] = declared.name
        return made

    return declared.of_spec.find(spec, make)
