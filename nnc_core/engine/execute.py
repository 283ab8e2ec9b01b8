"""Eager execution: one operator on arrays that are there, now."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial, wraps
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.config import config
from nnc_core.base.errors import DeviceMemoryError, Error, as_error
from nnc_core.base.fast_path import CLOSED_BY
from nnc_core.base.layout import Layout
from nnc_core.base.line import user_line
from nnc_core.device import NO_VIEWS, Array, Device, HostArray, Kernel, SerialStream, origin
from nnc_core.device.host import download
from nnc_core.engine.build import KernelBuilder, Prepared
from nnc_core.engine.noted import say_noted
from nnc_core.operator import OPERATORS
from nnc_core.operator.control import CONTROL, PICK, TOGETHER
from nnc_core.shape import show_operands
from nnc_core.type import Attributes, Op, TensorSpec, TupleSpec

_COPY = OPERATORS["copy"]


Method = TypeVar("Method", bound=Callable[..., Any])


def for_the_users_line(method: Method) -> Method:
    """Work that the method enqueues is for the user's line that runs now, unless it is for another already."""

    @wraps(method)
    def named(*args: Any) -> Any:
        if origin.get() is not None:
            return method(*args)
        token = origin.set(user_line())
        try:
            return method(*args)
        finally:
            origin.reset(token)

    return cast(Method, named)


def runs_as_compiled() -> bool:
    """Tell whether operators run the commands that a graph would, so that the bits are the same."""
    return bool(CLOSED_BY) and config.deterministic


Way: TypeAlias = "Callable[[Sequence[Array]], Array]"


class Launched(NamedTuple):
    """A command made ready for arrays that lie as its layouts say."""

    op: Op
    command: Command
    kernel: Kernel
    sizes: tuple[int, ...]
    """Bytes of each output."""
    workspace: int
    several: bool
    """Whether the operator has several results."""


class Executor:
    """Runs operators one at a time on one device."""

    def __init__(self, device: Device, builder: KernelBuilder,
                 run_control: Callable[[Op, Sequence[Array], Attributes, Any], Array] | None = None) -> None:
        self.device, self.builder, self.run_control = device, builder, run_control
        self.views = NO_VIEWS not in device.spec.features

    def run(self, op: Op, arrays: Sequence[Array], attributes: Attributes, spec: TensorSpec) -> Array:
        """The result, by the device's own eager kernel if it has one, by a prepared command otherwise; of an operator
        that has several results a tuple of them.  Under `config.deterministic` always by the command that a graph of
        this operator would run."""
        if op is PICK:
            return arrays[0][attributes[0]]
        if op is TOGETHER:
            return tuple(arrays)
        if op.name in CONTROL:
            assert self.run_control is not None
            return self.run_control(op, arrays, attributes, spec)
        eager = None if runs_as_compiled() else self.device.eager.get(op.name)
        if eager is not None:
            try:
                result = eager(*arrays, *attributes)
            except Error as error:
                layouts = [self.device.layout_of(a) for a in arrays]
                operands = show_operands(op, [TensorSpec(x.shape, x.dtype) for x in layouts], attributes)
                error.locate(operator=op.name, operands=operands, device=self.device.spec.id)
                raise
            except (MemoryError, ValueError) as error:
                if not isinstance(error, MemoryError) and not _is_beyond_addresses(spec):
                    raise
                if self.device.trim():
                    return self.run(op, arrays, attributes, spec)
                raise DeviceMemoryError(str(error), operator=op.name, device=self.device.spec.id) from error
            if result is not NotImplemented:
                return result
        return self.prepare(op, [self.device.layout_of(a) for a in arrays], attributes, spec)(arrays)

    def prepare(self, op: Op, layouts: Sequence[Layout], attributes: Attributes, spec: TensorSpec) -> Way:
        """The way in which an operator without an eager kernel runs, now that its result is known: a view of the first
        operand, or a command.  It holds for all arrays that lie so, for as long as `version` is the same."""
        if _is_beyond_addresses(spec):  # code has no room for such numbers
            raise DeviceMemoryError(f"{spec} is more than any memory holds", operator=op.name,
                                    device=self.device.spec.id)
        if op.view is not None and self.views:
            seen = op.view(layouts[0], *attributes)
            if seen is not None:
                return lambda arrays: self.device.array(self.device.buffer_of(arrays[0]), seen)
        return self._command(op, layouts, attributes, spec)

    @property
    def version(self) -> int:
        """Another number whenever commands may have other code than before."""
        self.builder.decider.look_for_more()
        return self.builder.decider.version

    def _command(self, op: Op, layouts: Sequence[Layout], attributes: Attributes, spec: TensorSpec) -> Way:
        several = isinstance(spec, TupleSpec)
        outs = tuple([part.layout() for part in (spec.parts if isinstance(spec, TupleSpec) else (spec,))])
        command = Command(op.name, attributes, tuple(layouts), outs)
        kernel, workspace = self._built(op, command)
        sizes = tuple([max(out.nbytes, 1) for out in outs])
        at_once = isinstance(self.device.default_stream, SerialStream)
        return partial(self._launch if at_once else self._enqueue,
                       Launched(op, command, kernel, sizes, workspace, several))

    @for_the_users_line
    def _built(self, op: Op, command: Command) -> Prepared:
        return self.builder.prepare(op, command)

    @for_the_users_line
    def _enqueue(self, ready: Launched, arrays: Sequence[Array]) -> Array:
        return self._launch(ready, arrays)

    def _launch(self, ready: Launched, arrays: Sequence[Array]) -> Array:
        device, command = self.device, ready.command
        buffers = [device.buffer_of(a) for a in arrays]
        try:
            targets = device.allocate_each(ready.sizes)
            scratch = [device.allocate(ready.workspace)] if ready.workspace else []
            ready.kernel.launch([*buffers, *targets, *scratch])
        except Error as error:
            say_noted(error, ready.op, command)
            error.locate(operator=ready.op.name, operands=str(command), device=device.spec.id)
            raise
        except Exception as error:  # of a plugin's own, as in compiled graphs
            known = as_error(error)
            known.locate(operator=ready.op.name, operands=str(command), device=device.spec.id)
            raise known from error
        if not ready.several:
            return device.array(targets[0], command.outputs[0])
        return tuple([device.array(target, out) for target, out in zip(targets, command.outputs, strict=True)])

    def claims(self, op: Op, arrays: Sequence[Array], attributes: Attributes, spec: TensorSpec) -> bool:
        """Tell whether the device runs a composite whole."""
        as_compiled = runs_as_compiled()
        kernel = None if as_compiled else self.device.eager.get(op.name)
        if kernel is not None:
            claims = getattr(kernel, "claims", None)
            if claims is None or claims(*arrays, *attributes):
                return True
        if not self.device.all_backends(op.name):
            return False
        layouts = tuple([self.device.layout_of(a) for a in arrays])
        if as_compiled:  # graphs decide about composites before they know where anything lies
            layouts = tuple([Layout.packed(x.shape, x.dtype) for x in layouts])
        outs = tuple([part.layout() for part in (spec.parts if isinstance(spec, TupleSpec) else (spec,))])
        return self.builder.decider.claims(op, Command(op.name, attributes, layouts, outs))

    def pack(self, array: Array) -> Array:
        """The same elements in C order at the start of a buffer."""
        layout = self.device.layout_of(array)
        if layout.offset == 0 and layout.contiguous:
            return array
        return self.duplicate(array, layout)

    def duplicate(self, array: Array, layout: Layout | None = None) -> Array:
        """The same elements in memory of their own."""
        copied = self._copied_quickly(array)
        if copied is not None:
            return copied
        layout = layout or self.device.layout_of(array)
        return self._command(_COPY, [layout], (), TensorSpec(layout.shape, layout.dtype))([array])

    def aligned(self, array: Array) -> Array:
        """An array that compiled code is to overwrite from now on, or a copy where it does not lie well: what eager
        code has made may lie where vectors cross lines of caches, at each call."""
        if not self.device.is_aligned(array):
            with suppress(DeviceMemoryError):  # then it stays where it is
                return self.duplicate(array)
        return array

    def _copied_quickly(self, array: Array) -> Array | None:
        """A copy of a small array in the host's memory; None elsewhere."""
        seen = self.device.expose(array)
        if seen is None:
            return None
        self.device.default_stream.synchronize()
        return self.device.place_quickly(seen)

    def upload(self, host: HostArray) -> Array:
        """A copy of a host array on the device."""
        packed = np.asarray(host, order="C")
        placed = self.device.place_quickly(packed)
        return self._place(packed) if placed is None else placed

    @for_the_users_line
    def _place(self, packed: HostArray) -> Array:
        return self.device.place(packed)

    def seen(self, array: Array) -> Any:
        """A host array to be read only, in C order: the array's own memory where the host sees it."""
        found = self.device.expose(array)
        if found is None or not found.flags.c_contiguous:
            return self.download(array)
        self.device.default_stream.synchronize()
        return found

    def download(self, array: Array) -> Any:
        """A host copy; waits for the work that makes the array."""
        seen = self.device.expose(array)
        if seen is None:
            return self._download(array)
        self.device.default_stream.synchronize()
        return seen.copy()

    @for_the_users_line
    def _download(self, array: Array) -> Any:
        layout = self.device.layout_of(array)
        return download(self.device, self.device.buffer_of(array), layout)


def _is_beyond_addresses(spec: TensorSpec) -> bool:
    """Tell whether the elements cannot even be counted in 64 bits, which NumPy says by a ValueError."""
    parts = spec.parts if isinstance(spec, TupleSpec) else (spec,)
    return any([max((x.nbytes, *x.static_shape)) > sys.maxsize for x in parts])
