"""Hooks: functions of the user's that backward passes call with gradients."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

from nnc_core.base.errors import GradientError, OperandError
from nnc_core.symbol import show_line
from nnc_core.values.operands import value_of
from nnc_core.values.value import Adjoint, Handle, Hook, Value

_numbers = count()


class HookHandle:
    """A registered hook; `remove()` takes it away again, also from the `with` block that it may serve as."""

    def __init__(self, owner: Any, remove: Callable[[Any], None]) -> None:
        self._owner, self._remove = weakref.ref(owner), remove

    def remove(self) -> None:
        """The hook is not called any more; removing it twice does nothing."""
        owner = self._owner()
        if owner is not None:
            self._remove(owner)

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


Wrap = Callable[[Value], Handle]
"""Makes the handle that a hook is given."""


def register_hook(value: Value, hook: Hook, wrap: Wrap) -> HookHandle:
    """Call `hook` with the gradient of this value when it is complete, in every sweep that comes by: to second order
    in both."""
    if not value.tracked:
        raise GradientError(f"a hook on {value.spec}, which has no gradient", line=show_line(value.line),
                            hint="hooks go on variables and what is computed from them: nnc.variable")
    _check(hook)
    return _register(value.kept_adjoint(), "hooks", lambda g: hook(wrap(g)))


def register_accumulation_hook(t: Handle, hook: Hook, wrap: Wrap) -> HookHandle:
    """Call `hook` with the variable when a backward pass has added to its gradient."""
    value = t._value
    if not value.tracked or value.step is not None:
        raise GradientError(f"{value.spec} is no variable, so nothing is added to its gradient",
                            line=show_line(value.line), hint="register_hook works on every value with a gradient")
    _check(hook)
    handle = weakref.ref(t)  # what the tensor points at keeps the hook: it must not keep the tensor

    def with_tensor(leaf: Value) -> None:
        known = handle()
        hook(wrap(leaf) if known is None else known)

    return _register(value.kept_adjoint(), "after", with_tensor)


def _check(hook: Hook) -> None:
    if not callable(hook):
        raise OperandError(f"a hook is a function of the gradient, not {type(hook).__name__}")


def _register(adjoint: Adjoint, kind: str, hook: Hook) -> HookHandle:
    number = next(_numbers)
    getattr(adjoint, kind)[number] = hook
    return HookHandle(adjoint, lambda owner: getattr(owner, kind).pop(number, None))


def hooks_of(order: Sequence[Value]) -> Mapping[int, Hook]:
    """Hooks that the sweep over these values must call, by the id of the value."""
    return {id(v): _caller(v) for v in order if v.adjoint is not None and v.adjoint.hooks}


def _caller(v: Value) -> Hook:
    return lambda g: call_hooks(v, g)


def call_hooks(v: Value, g: Value) -> Value:
    """The gradient as the hooks of a value leave it, in the order of their registration."""
    for hook in list(v.adjoint.hooks.values()) if v.adjoint is not None else ():
        given = hook(g)
        if given is not None:
            g = _checked(given, v)
    return g


def _checked(given: Any, v: Value) -> Value:
    if not isinstance(given, Handle):
        raise GradientError(f"a hook gives {type(given).__name__} for a gradient", line=show_line(v.line),
                            hint="a tensor, or None to leave the gradient as it is")
    found = given._value
    if found.spec != v.spec or found.stack is not v.stack:
        raise GradientError(f"a hook gives {found.spec} on {found.stack.device.spec.id} for the gradient of "
                            f"{v.spec} on {v.stack.device.spec.id}", line=show_line(v.line))
    return value_of(given)
