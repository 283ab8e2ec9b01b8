"""Eager updates compiled: one program for all parameters, where that changes no bit.

An update that comes for the third time with the same settings is compiled if all its operators are exact, as those of
SGD and Adam are: any right code gives the same.  Updates with settings that are functions, by rules of the user's, or
that somebody watches run operator by operator.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from nnc_core.base.errors import Error, FallbackWarning
from nnc_core.base.fast_path import CLOSED_BY, is_watched
from nnc_core.base.line import users_frame
from nnc_core.device import REPRODUCIBLE
from nnc_core.operator import PLACEHOLDER
from nnc_core.stacks import Stack
from nnc_core.tracing.jit import Jitted
from nnc_core.values.modes import current_trace, lazy, sweeps
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

if TYPE_CHECKING:
    from nnc_core.optim.minimisers.minimiser import Minimiser

STEPPED = 2
"""How often an update runs operator by operator before it is compiled.  Settings that change again and again, as a rate
that a loop lowers, are waited for twice as long each time."""
_PACKAGE = __name__.partition(".")[0]

_updating: ContextVar[Minimiser | None] = ContextVar("nnc_updating", default=None)


class CompiledUpdates:
    """The updates of one minimiser with the settings of now."""

    def __init__(self) -> None:
        self._kind: tuple[Stack, str] | None = None
        self._left, self._waits = STEPPED, STEPPED
        """How many more updates run operator by operator, and how many did of this kind."""
        self._found: Jitted | None = None

    def find(self, kind: tuple[Stack, str], gradients: Mapping[str, Tensor]) -> Jitted | None:
        """The compiled update; None if this one runs operator by operator."""
        if kind != self._kind:
            self._kind, self._left, self._found = kind, self._waits, None
        if not self._left:
            self._waits *= 2
            self._found = _compiled(gradients)
        self._left -= 1
        return self._found


_UPDATES: WeakKeyDictionary[Minimiser, CompiledUpdates] = WeakKeyDictionary()


def ran_compiled(minimiser: Minimiser, settings: tuple[Any, ...], gradients: Mapping[str, Tensor]) -> bool:
    """Make an eager update, under `no_grad`, by a program; False if it is to be made operator by operator."""
    stack = _common_stack(minimiser, gradients)
    if stack is None or not _is_plain(type(minimiser), settings):
        return False
    known = _UPDATES.get(minimiser)
    if known is None:
        known = _UPDATES[minimiser] = CompiledUpdates()
    token = _updating.set(minimiser)
    try:
        program = known.find((stack, repr(settings)), gradients)
        if program is not None:
            program(gradients)
    finally:
        _updating.reset(token)
    return program is not None


def _update(gradients: Mapping[str, Tensor]) -> None:
    """The update of the minimiser in turn, which what was traced of it does not keep alive."""
    minimiser = _updating.get()
    assert minimiser is not None
    minimiser._update(gradients, None)


def _common_stack(minimiser: Minimiser, gradients: Mapping[str, Tensor]) -> Stack | None:
    """The stack of everything, of nnc's own layers, whose code gives the same bits; None where there is another, or
    where steps are recorded, differentiated or watched."""
    if lazy.get() or current_trace.get() is not None or sweeps.get() or (CLOSED_BY and is_watched()):
        return None
    stack = minimiser.step.stack
    values = [g._value for g in gradients.values()]
    if any([v.__class__ is not Value or v.array is None or v.stack is not stack for v in values]):
        return None
    if any([p.stack is not stack for p in minimiser.parameters.values()]):
        return None
    return stack if REPRODUCIBLE in stack.device.spec.features and stack.is_plain else None


def _is_plain(kind: type[Minimiser], settings: Iterable[Any]) -> bool:
    """Tell whether the rule is nnc's, and all settings are numbers and texts."""
    return kind.__module__.partition(".")[0] == _PACKAGE and all(
        [x is None or isinstance(x, (int, float, str)) or (x.__class__ is tuple and _is_plain(kind, x))
         for x in settings])


def _compiled(gradients: Mapping[str, Tensor]) -> Jitted | None:
    """The update as one program; None where one of its operators may give other bits there."""
    made = Jitted(_update, named_dims=False)
    try:
        nodes = made.lower(gradients).graph.nodes
    except Error as error:
        warnings.warn(f"this update is not compiled but made step by step: {error}", FallbackWarning,
                      stacklevel=users_frame())
        return None
    return made if all([node.op.exact or node.op is PLACEHOLDER for node in nodes]) else None
