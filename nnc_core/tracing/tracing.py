"""Running a function once on symbols, with or without names for sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from nnc_core.base.errors import ShapeError, SymbolicDimensionError
from nnc_core.graph.bodies import called_functions
from nnc_core.tracing.baked import baked, states, warn
from nnc_core.tracing.captured import CapturedNames
from nnc_core.tracing.captures import asks_for_int, captures
from nnc_core.tracing.dimensions import Shapes, Sizes, answered_by
from nnc_core.tracing.signature import Arguments, Parameters
from nnc_core.tracing.traced import Traced, finish, recorded
from nnc_core.type import TensorSpec
from nnc_core.values.data_dependent import DataDependentError
from nnc_core.values.modes import tracing
from nnc_core.values.tensor import Tensor
from nnc_core.values.trace import Trace
from nnc_core.values.value import Value


@dataclass(frozen=True)
class TraceSpec:
    """A function to trace, and options of its compilation."""

    f: Callable[..., Any]
    face: Callable[..., Any]
    """The function as users know it, where f only calls it."""
    name: str
    parameters: Parameters
    named_dims: bool
    static_alloc: bool
    static_shape: bool
    warned: list[bool] = field(default_factory=list)
    """Not empty once the user was warned of what compiled code does not do again."""

    def roots(self, arguments: Arguments) -> list[Any]:
        """Starting points of the search for what the code reads by name."""
        return [self.face, *arguments.objects]

    def asks_for_int(self, arguments: Arguments) -> bool:
        """True if the code asks if something is an int, which no size with a name is."""
        return asks_for_int(self.roots(arguments))

    def labels(self, arguments: Arguments) -> list[str]:
        """Names of the tensors among the arguments."""
        labels = self.parameters.labels(arguments.structure)
        return [label for x, label in zip(arguments.leaves, labels, strict=True) if isinstance(x, Tensor)]

    def donated(self, arguments: Arguments) -> dict[int, str]:
        """The donated ones among the tensors, by number, with what they are called."""
        chosen = self.parameters.donated
        if not chosen:
            return {}
        structure = arguments.structure
        places = zip(arguments.leaves, self.parameters.arguments(structure), self.parameters.labels(structure),
                     strict=True)
        tensors = [(place, label) for x, place, label in places if isinstance(x, Tensor)]
        return {i: label for i, (place, label) in enumerate(tensors) if place in chosen}

    def _tell(self, said: list[str]) -> None:
        """A warning, once for this function."""
        if said and not self.warned:
            self.warned.append(True)
            warn(self.name, said)

    def trace(self, arguments: Arguments, shapes: Shapes, sizes: Sizes | None, because: str) -> Traced:
        """The graph for arguments of these shapes, whose names have these sizes.

        Raises what the function raises; DataDependentError where no graph can be compiled.
        """
        traced, said = self._traced(arguments, shapes, sizes, because)
        self._tell(said)
        return traced

    def _traced(self, arguments: Arguments, shapes: Shapes, sizes: Sizes | None,
                because: str) -> tuple[Traced, list[str]]:
        trace = Trace(self.name, lambda: self.labels(arguments))
        symbols = [trace.argument(t._value, TensorSpec(shape, t.dtype))
                   for t, shape in zip(arguments.tensors, shapes, strict=True)]
        args, kwargs = arguments.rebuilt(symbols)
        roots = self.roots(arguments)
        walk = captures(roots)
        names, drawn = CapturedNames(walk.found, walk.stored), states(walk)
        try:
            with nullcontext() if sizes is None else answered_by(sizes):
                with tracing(trace):
                    result = self.f(*args, **kwargs)
                order = recorded(trace, result)
                after = captures(roots, but=code_of_callbacks(order))
                guarded = [getattr(g.read, "__self__", None) for g in trace.guards]
                said = baked(after, names.settle(after.found, guarded, trace.looked_at), drawn)
                donated = list(self.donated(arguments))
                return finish(trace, result, order, shapes, sizes, donated, because, names), said
        except (ShapeError, SymbolicDimensionError) as error:
            if trace.counts and sizes is None:  # perhaps the sizes that depend on data do not fit: eager will tell
                raise DataDependentError(error.message, line=error.line) from error
            raise
        finally:
            trace.ended = True


def code_of_callbacks(order: Iterable[Value]) -> list[Any]:
    """Python that the graph calls each time it runs: what it reads and changes is its own affair."""
    steps = [v for v in order if v.step is not None]
    code = [getattr(f, name, None) for f in called_functions(steps) for name in ("fn", "vjp")]
    return [f for f in code if f is not None]
