"""A trace compiled for the sizes of a call, ready to be called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nnc_core.base.errors import Error
from nnc_core.recording.compilation import compile_graph
from nnc_core.recording.compiled import CompiledGraph
from nnc_core.symbol import Body
from nnc_core.tracing.donation import array_to_overwrite, give_up
from nnc_core.tracing.traced import Traced
from nnc_core.type import Dim, is_static, substitute
from nnc_core.values.evaluation import evaluate
from nnc_core.values.modes import gradients
from nnc_core.values.tensor import Tensor
from nnc_core.values.tree import LEAF, Structure, unflatten
from nnc_core.values.value import Value


class Compilation:
    """Ready to be called: everything that does not change from call to call has been done."""

    def __init__(self, traced: Traced, run: CompiledGraph, leaves: tuple[Any, ...], numbers: Mapping[str, int]) -> None:
        self.traced, self.run, self.numbers = traced, run, numbers
        self.stack, self.writes, self.outputs = traced.stack, traced.writes, traced.outputs
        specs = {k: run.graph.outputs[k].spec for k in self.outputs}
        self._made = [(run.stack_of(k), s if is_static(s.shape) else None) for k, s in specs.items()]
        self.arguments = [f"arg{i}" for i in range(len(traced.shapes))]
        donated = run.donated
        self.taken = tuple([(k, cell) for k, cell in traced.cells if k in donated])
        self.lent = tuple([(k, cell) for k, cell in traced.cells if k not in donated])
        self._roaming = [(cell, traced.elsewhere.get(k, traced.stack)) for k, cell in traced.cells if cell.roams]
        self.locks = Locks([cell._lock for cell in sorted({c for _, c in self.taken}, key=id)])
        held = {cell: traced.graph.inputs[k].spec for k, cell in traced.cells}
        self._puts = [(k, cell, run.stack_of(k), held[cell]) for k, cell in self.writes]
        """With the spec of the trace, one object, so that the next call sees at once that it is the same."""
        self.pure = not (traced.cells or traced.outside or traced.guards or len(traced.captured))
        self._run_in_order = run.in_order(self.arguments, self.outputs) if self.pure else None
        """Of calls that read arguments alone."""
        self.single = traced.structure.kind is None and leaves == (None,)
        self.plain = _plain_kind(traced.structure) if all([x is None for x in leaves]) else None
        """`tuple` or `list`, if the result is one of tensors."""
        self.leaves = leaves
        self.body: Body | None = None
        """The graph as one differentiable step, made when somebody differentiates it."""

    @classmethod
    def of(cls, traced: Traced, numbers: Mapping[str, int]) -> Compilation:
        """A trace, for these sizes."""
        stack = traced.stack
        graph = stack.graph.specialise(traced.graph, numbers) if numbers else traced.graph
        leaves = tuple([substitute(x, numbers) if isinstance(x, Dim) else x for x in traced.leaves])
        return cls(traced, compile_graph(graph, stack, on=traced.elsewhere), leaves, numbers)

    def is_current(self) -> bool:
        """Nothing that the trace depends on has changed, nor the choice of backends."""
        return self.run.version == self.stack.engine.decider.version and (self.pure or self.traced.is_current())

    def is_differentiated(self) -> bool:
        """It reads a variable from outside, whose gradient may be asked: the function must run as it is written."""
        if not gradients.get():
            return False
        traced = self.traced
        for _, cell in traced.cells:
            if cell.tracked:
                return True
        return any([t._value.tracked for _, t in traced.outside])

    def call(self, arrays: Sequence[Any]) -> Any:
        """The function's result for these argument arrays."""
        if self._run_in_order is not None:
            return self.results(self._run_in_order(arrays))
        return self._call(dict(zip(self.arguments, arrays, strict=True)), {}, {})

    def call_donating(self, tensors: Sequence[Tensor], labels: Mapping[int, str]) -> Any:
        """The same, with tensors by their number that give up their memory; labels are what they are called."""
        given = {k: t._value.array for i, (k, t) in enumerate(zip(self.arguments, tensors, strict=True))
                 if i not in labels}
        donated = {f"arg{i}": tensors[i] for i in labels}
        result = self._call(given, donated, {f"arg{i}": label for i, label in labels.items()})
        for i, label in labels.items():
            give_up(tensors[i], self.run.graph.name, label)
        return result

    def _call(self, given: dict[str, Any], donated: Mapping[str, Tensor], labels: Mapping[str, str]) -> Any:
        with self.locks:
            given |= self.state(take=False)
            for k, tensor in donated.items():
                given[k] = array_to_overwrite(tensor) if k in self.run.donated else tensor._value.array
            for k, cell in self.taken:
                given[k] = cell.take()
            try:
                arrays = self.run.run(given)
            except Error as error:
                self._mark_lost(error, given, donated, labels)
                raise
            for k, cell, stack, spec in self._puts:
                cell.put(Value(arrays[k], stack, spec))
        return self.results([arrays[k] for k in self.outputs])

    def _mark_lost(self, error: Error, given: Mapping[str, Any], donated: Mapping[str, Tensor],
                   labels: Mapping[str, str]) -> None:
        """Mark as lost and name in the error what the call had begun to overwrite; it had copies of shared arrays."""
        name, begun = self.run.graph.name, error.lost & self.run.donated
        cells = [cell for k, cell in self.taken if k in begun and not cell._shared]
        arguments = [k for k, tensor in donated.items() if k in begun and given[k] is tensor._value.array]
        for cell in cells:
            cell.lose(f"a call of {name!r} failed")
        for k in arguments:
            give_up(donated[k], name, labels[k], lost=True)
        error.lost = frozenset([*[cell.name or "a cell" for cell in cells], *[labels[k] for k in arguments]])
        if error.lost:
            error.message += f"; the call had begun to overwrite {', '.join(sorted(error.lost))}, now lost"

    def state(self, take: bool) -> dict[str, Any]:
        """The arrays that are read from outside; of cells that will be overwritten only if they are taken too."""
        for cell, stack in self._roaming:
            if cell.stack is not stack:
                cell.move(stack)
        given = {k: cell.lend().array for k, cell in self.lent}
        for k, tensor in self.traced.outside:
            if tensor._value.array is None:
                evaluate([tensor._value])
            given[k] = tensor._value.array
        return given | {k: cell.lend().array for k, cell in self.taken} if take else given

    def results(self, arrays: Sequence[Any]) -> Any:
        """The function's result, of the arrays of its outputs."""
        if self.single:
            [array], [(stack, spec)] = arrays, self._made
            return Tensor(Value(array, stack, spec))
        tensors = [Tensor(Value(array, stack, spec))
                   for array, (stack, spec) in zip(arrays, self._made)]  # noqa: B905 as many, at each call
        if self.plain is not None:
            return self.plain(tensors)
        made = iter(tensors)
        return unflatten(self.traced.structure, iter([next(made) if x is None else x for x in self.leaves]))


def _plain_kind(structure: Structure) -> type | None:
    """`tuple` or `list`, if it is one of leaves alone."""
    return structure.kind if structure.kind in (tuple, list) and set(structure.parts) == {LEAF} else None


class Locks:
    """Those of cells that are overwritten, always taken in one order: two calls must not overwrite one cell at once."""

    def __init__(self, locks: Sequence[Any]) -> None:
        self._take = [lock.acquire for lock in locks]
        self._release = [lock.release for lock in locks]

    def __enter__(self) -> None:
        taken = 0
        try:
            for take in self._take:
                take()
                taken += 1
        except BaseException:  # somebody interrupts while it waits
            for release in self._release[:taken]:
                release()
            raise

    def __exit__(self, *_: object) -> None:
        for release in self._release:
            release()
