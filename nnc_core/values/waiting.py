"""Deferred tensors computed, devices waited for, their idle memory given back."""

from __future__ import annotations

from typing import Any

from nnc_core.stacks import opened, stack_for
from nnc_core.values.evaluation import evaluate
from nnc_core.values.tensor import Tensor
from nnc_core.values.tree import flatten


def realize(*trees: Any) -> None:
    """Compute all deferred tensors in some structures in one walk: what they share is computed once."""
    evaluate([t._value for t in flatten(trees)[0] if isinstance(t, Tensor)])


def synchronize(device: Any = None) -> None:
    """Wait until a device, or with None every device that is open, has done all that was asked of it.

    An error of that work is raised here, naming the line that asked for it; the device is usable afterwards.
    """
    stacks = opened() if device is None else [stack_for(device)]
    for stack in stacks:
        stack.device.default_stream.synchronize()


def empty_cache(device: Any = None) -> int:
    """Give memory that nothing uses now back to the driver: of a device, or with None of every device that is open.

    That is memory of tensors that are gone, and what compiled code keeps for its next call, which allocates it again.
    Nothing needs to be called for memory to be used again; this is for other programs.  Returns the number of bytes.
    """
    stacks = opened() if device is None else [stack_for(device)]
    return sum([stack.device.trim() for stack in stacks])
