"""Hooks of modules: functions of the user's that see what goes into a module and what comes out."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

from nnc_core.base.errors import OperandError
from nnc_core.values.hooks import HookHandle

if TYPE_CHECKING:
    from nnc_core.nn.module import Module

Hook: TypeAlias = Callable[..., Any]
BEFORE, AFTER = "_before_forward", "_after_forward"
_numbers = count()


def register(module: Module, kind: str, hook: Hook) -> HookHandle:
    """Call `hook` around forward from now on; compiled code that runs the module is traced again."""
    if not callable(hook):
        raise OperandError(f"a hook is a function, not {type(hook).__name__}")
    number = next(_numbers)
    module.__dict__[kind] = {**getattr(module, kind), number: hook}
    module._changed()

    def remove(owner: Module) -> None:
        left = {n: h for n, h in getattr(owner, kind).items() if n != number}
        if len(left) < len(getattr(owner, kind)):
            owner.__dict__[kind] = left
            owner._changed()

    return HookHandle(module, remove)


def arguments_after(module: Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The positional arguments as the hooks before forward leave them."""
    for hook in module._before_forward.values():
        given = hook(module, args)
        if given is not None:
            args = given if isinstance(given, tuple) else (given,)
    return args


def result_after(module: Module, args: tuple[Any, ...], result: Any) -> Any:
    """The result as the hooks after forward leave it."""
    for hook in module._after_forward.values():
        given = hook(module, args, result)
        if given is not None:
            result = given
    return result
