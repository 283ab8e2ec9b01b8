"""PyOpenCL's Python for calls of a kernel, written once for equal kernels.

PyOpenCL gives each cl.Kernel functions by which a user may call it, whose text it fetches from a database on disk and
compiles: 130 us of the 140 that making a kernel takes.  They depend on the kernel's name and on the number of its
arguments alone, so those of an equal kernel, which a graph has hundreds of, serve as well.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from pyopencl import invoker

from nnc_core.base.cache import LRU

WRITTEN = 1024
"""Pairs of functions that are kept."""
NAME = "generate_enqueue_and_set_args"


def once(write: Callable[..., Any]) -> Callable[..., Any]:
    """The function with what it has returned for equal arguments; the devices only matter for its warnings."""
    known = LRU[Any, Any](WRITTEN)

    @wraps(write)
    def known_or_written(*arguments: Any, **options: Any) -> Any:
        key = arguments, tuple([(name, value) for name, value in options.items() if name != "devs"])
        return known.find(key, lambda: write(*arguments, **options))

    return known_or_written


def write_once() -> None:
    """Let PyOpenCL, whose extension looks the function up by its name, do so from now on; not where it has none."""
    write = getattr(invoker, NAME, None)
    if write is not None and not hasattr(write, "__wrapped__"):
        setattr(invoker, NAME, once(write))
