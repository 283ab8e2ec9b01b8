"""State of the modes that decide when a node runs, in context variables: threads and coroutines are separate."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from nnc_core.device import Device, DeviceSpec
from nnc_core.stacks import Stack, default_stack, stack_for

if TYPE_CHECKING:
    from nnc_core.values.trace import Trace

NOW, KEPT, FORGOTTEN, RECENT = 0, 1, 2, 3
"""Operations run now; are recorded, and keep their history; lose it when they have been computed; keep what is recent
of it."""
lazy: ContextVar[int] = ContextVar("nnc_lazy", default=NOW)
gradients: ContextVar[bool] = ContextVar("nnc_gradients", default=True)
sweeps: ContextVar[int] = ContextVar("nnc_sweeps", default=0)
"""How many functions that take gradients are running around this code."""
current_trace: ContextVar[Trace | None] = ContextVar("nnc_trace", default=None)
_stepwise: ContextVar[bool] = ContextVar("nnc_step_by_step", default=False)
_evaluation: ContextVar[object] = ContextVar("nnc_evaluation", default=None)
"""Where `evaluating` was entered: the outermost trace, or "outside" of any; None where it was not."""
_stack: ContextVar[Stack | None] = ContextVar("nnc_stack", default=None)


@contextmanager
def deferred(active: bool = True, *, keep_graph: bool | None = None) -> Iterator[None]:
    """Operations are recorded and shapes checked here; values are computed when somebody looks.

    What was recorded can be exported for as long as its results live, computed or not.  A loop that carries tensors
    and computes them in every round keeps the last 256 of its rounds or a few times as many; the rest is freed, unless
    a gradient may be asked through it.  keep_graph=True: all rounds are kept.  keep_graph=False: a value forgets how it
    came about as soon as it has been computed.  active=False: operations in the block run now.
    """
    mode = RECENT if keep_graph is None else KEPT if keep_graph else FORGOTTEN
    token = lazy.set(mode if active else NOW)
    try:
        yield
    finally:
        lazy.reset(token)


@contextmanager
def computing() -> Iterator[None]:
    """The opposite of `deferred`: operations run now."""
    token = lazy.set(NOW)
    try:
        yield
    finally:
        lazy.reset(token)


@contextmanager
def tracing(trace: Trace | None) -> Iterator[None]:
    """Record the operations of this block in a trace, which notes cells and tensors from outside.  None: they run now
    and belong to no trace, whatever is traced or deferred around."""
    tokens = current_trace.set(trace), lazy.set(NOW if trace is None else KEPT)
    try:
        yield
    finally:
        current_trace.reset(tokens[0])
        lazy.reset(tokens[1])


@contextmanager
def no_grad() -> Iterator[None]:
    """Nothing is remembered for gradients."""
    token = gradients.set(False)
    try:
        yield
    finally:
        gradients.reset(token)


@contextmanager
def step_by_step() -> Iterator[None]:
    """Run operators one by one ahead, and in functions that take gradients, so that the bits do not depend on how many
    calls came before: what a run promises that may go on from a file."""
    token = _stepwise.set(True)
    try:
        yield
    finally:
        _stepwise.reset(token)


def is_step_by_step() -> bool:
    """Tell whether `step_by_step` asks for it here."""
    return _stepwise.get()


@contextmanager
def evaluating() -> Iterator[None]:
    """Modules that are called here compute as in evaluation (dropout off, running statistics used and left alone);
    what each is set to stays, so that it may train elsewhere at the same time."""
    token = _evaluation.set(_outermost_trace() or "outside")
    try:
        yield
    finally:
        _evaluation.reset(token)


def is_evaluating() -> bool:
    """True if this code is within `evaluating`."""
    return _evaluation.get() is not None


def always_evaluates() -> bool:
    """True if it is so each time that what is being traced is called: `evaluating` is part of the function."""
    entered = _evaluation.get()
    return entered is not None and entered is _outermost_trace()


def _outermost_trace() -> Trace | None:
    trace = current_trace.get()
    while getattr(trace, "around", None) is not None:
        trace = trace.around  # type: ignore[union-attr]
    return trace


@contextmanager
def use_device(device: str | Device | DeviceSpec | Stack) -> Iterator[None]:
    """The device of arrays made without naming one, by its id or kind: `with nnc.use_device("cpu:0"):`.

    Arrays that exist stay where they are (`x.to(device)` moves one).
    """
    token = _stack.set(stack_for(device))
    try:
        yield
    finally:
        _stack.reset(token)


def current_stack() -> Stack:
    return _stack.get() or default_stack()


def stack_named(device: str | Device | DeviceSpec | Stack) -> Stack:
    """The stack of a device: the current one where it is of that name, since a device may have several, of other
    layers."""
    stack, id = _stack.get(), getattr(device, "id", device)
    return stack if stack is not None and stack.device.spec.id == id else stack_for(device)


def is_deferred_mode() -> bool:
    """True where operations are recorded, to be computed later: inside `deferred`."""
    return lazy.get() != NOW
