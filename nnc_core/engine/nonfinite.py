"""NaN mode: who made the first NaN or infinity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.dtype import float64, is_complex, is_float, is_inexact
from nnc_core.base.errors import NonfiniteError
from nnc_core.base.layout import Layout
from nnc_core.device import Buffer, Device, HostArray, Launch
from nnc_core.device.host import download
from nnc_core.symbol import Number

Located = tuple[Layout, Buffer]


class Nonfinite(NamedTuple):
    """The elements of an array that are not finite: how many NaNs and infinities, and the index of the first."""

    nans: int
    infinities: int
    size: int
    first: tuple[int, ...]

    def __str__(self) -> str:
        said = [f"{self.nans} NaN"] * bool(self.nans) + [f"{self.infinities} infinite"] * bool(self.infinities)
        return f"{' and '.join(said)} of {self.size} elements, the first at {list(self.first)}"


def _found(host: HostArray, mode: str) -> Nonfinite | None:
    nans, infinities = np.isnan(host), np.isinf(host)
    wanted = nans if mode == "nan" else nans | infinities
    if not wanted.any():
        return None
    first = tuple(int(i) for i in np.unravel_index(int(np.argmax(wanted)), host.shape))
    return Nonfinite(int(nans.sum()), int(infinities.sum()), host.size, first)


class Watch:
    """Looks at the operands of one command before it runs, and at its results afterwards.

    A result is at fault if it has a NaN where no operand has one, or (mode "nonfinite") an infinity where all operands
    are finite.  Numbers among the attributes count as operands: padding with -inf is no fault.
    """

    def __init__(self, device: Device, mode: str, attributes: Sequence[Any], hosts: Sequence[HostArray]) -> None:
        self.device, self.mode = device, mode
        self.operands = tuple(map(describe, hosts))
        given = [a.value if isinstance(a, Number) else a for a in attributes]
        numbers = [np.asarray(a) for a in given if isinstance(a, (float, np.generic))]
        floats = [x for x in (*hosts, *numbers) if is_inexact(x.dtype)]
        self.had_nan = any(np.isnan(x).any() for x in floats)
        self.had_any = any(not np.isfinite(x).all() for x in floats)

    @classmethod
    def of(cls, device: Device, mode: str, attributes: Sequence[Any], operands: Sequence[Located]) -> Watch:
        """A watch over operands on the device, which are waited for."""
        return cls(device, mode, attributes, [download(device, buffer, layout) for layout, buffer in operands])

    def check(self, layout: Layout, buffer: Buffer) -> None:
        """NonfiniteError if this result is at fault; the caller says which operator and line it was."""
        if not self.had_nan and is_inexact(layout.dtype):
            self.check_host(download(self.device, buffer, layout))

    def check_host(self, result: HostArray) -> None:
        """NonfiniteError if this result is at fault."""
        if self.had_nan or not is_inexact(result.dtype):
            return
        found = _found(result, "nan" if self.had_any else self.mode)
        if found is not None:
            what = "NaN" if found.nans else "an infinity"
            raise NonfiniteError(f"the result has {what} that no operand has: {found}",
                                 operands="; ".join(self.operands) or None, device=self.device.spec.id,
                                 hint='keep the operands where the operator is finite (clip, where), or set '
                                      'nnc.config.check_nan = "off"')


def describe(host: HostArray) -> str:
    """Dtype, shape and range of an array in words."""
    text = f"{host.dtype}[{','.join(map(str, host.shape))}]"
    if not host.size:
        return text
    if is_complex(host.dtype):
        odd = _found(host, "nonfinite")
        return text if odd is None else f"{text}, {odd}"
    if not is_float(host.dtype):
        return f"{text} from {host.min()} to {host.max()}"
    finite = host[np.isfinite(host)].astype(float64)
    odd = _found(host, "nonfinite")
    parts = [text] if not finite.size else [f"{text} from {finite.min():g} to {finite.max():g}, mean {finite.mean():g}"]
    zeros = int((finite == 0).sum())
    parts += [f"{zeros} zero"] * bool(zeros) + ([str(odd)] if odd is not None else [])
    return ", ".join(parts)


def run_watched(device: Device, mode: str, command: Command, buffers: Sequence[Buffer], launch: Launch) -> None:
    """One command of a compiled graph under watch; `buffers` are those of its inputs and outputs, in order.

    Operands are read before it runs, since a result may take their place.
    """
    inputs = len(command.inputs)
    watch = Watch.of(device, mode, command.attributes, list(zip(command.inputs, buffers, strict=False)))
    launch()
    device.default_stream.synchronize()
    for layout, buffer in zip(command.outputs, buffers[inputs:], strict=False):
        watch.check(layout, buffer)
