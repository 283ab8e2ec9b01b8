"""Kernels of loop nests that a device builds together, and keeps for when they are asked for again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from nnc_core.base.cache import LRU
from nnc_core.base.errors import DeviceFailureError, NotSupportedError
from nnc_core.base.loopnest import LoopNest
from nnc_core.device.kernel import Kernel

K = TypeVar("K", bound=Kernel)


class BuiltKernels(Generic[K]):
    """The kernels built last, by nest.  `build` makes those of new nests, in order; where it cannot, the error,
    not raised.  Any thread may ask."""

    def __init__(self, kept: int, build: Callable[[Sequence[LoopNest]], Sequence[K | NotSupportedError |
                                                                                 DeviceFailureError]]) -> None:
        self._kernels: LRU[LoopNest, K] = LRU(kept)
        self._build, self._building = build, threading.Lock()

    def of(self, nest: LoopNest) -> K:
        """Equal nests give one kernel, built at the first call."""
        known = self._kernels.get(nest)
        if known is not None:
            return known
        [kernel] = self.of_all([nest])
        if isinstance(kernel, NotSupportedError):
            raise kernel
        return kernel

    def of_all(self, nests: Sequence[LoopNest]) -> list[K | NotSupportedError]:
        """Kernels of new nests are built together.  DeviceFailureError if that fails for one; the others are kept all
        the same."""
        with self._building:
            found: dict[LoopNest, K | NotSupportedError | DeviceFailureError | None] = {
                nest: self._kernels.get(nest) for nest in nests}
            new = [nest for nest, kernel in found.items() if kernel is None]
            for nest, made in zip(new, self._build(new), strict=True):
                found[nest] = made
                if not isinstance(made, NotSupportedError | DeviceFailureError):
                    self._kernels.put(nest, made)
        return [_unless_failed(found[nest]) for nest in nests]

    def clear(self) -> None:
        """Keep none."""
        self._kernels.clear()


def _unless_failed(kernel: K | NotSupportedError | DeviceFailureError | None) -> K | NotSupportedError:
    assert kernel is not None
    if isinstance(kernel, DeviceFailureError):
        raise kernel
    return kernel
