"""Settings of the process, each of which a context (thread, coroutine) may override for a while."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from operator import attrgetter
from types import MappingProxyType
from typing import Any

import numpy as np

from nnc_core.base.dtype import FLOATS
from nnc_core.base.errors import AttributeValueError, UnknownAttributeError

MOST_THREADS = 1024


@dataclass(slots=True)
class Settings:
    """The settings and their defaults."""

    deterministic: bool = False
    """Fixed kernels, no contraction or reassociation: eager, deferred and compiled agree bit for bit, as eager
    operators run the commands of graphs, which takes longer.  Off, they agree within the operators' bounds."""
    eager: bool = False
    """Run compiled graphs command by command, waiting after each: for debugging."""
    check_nan: str = "off"
    """"nan": an operator that makes a NaN of operands without one is an error that names it, its line and its operands;
    "nonfinite": infinities as well.  Compiled graphs then run command by command.  "off" looks at nothing."""
    check_indices: bool = False
    """Look at the indices of each operator that takes some (takes, scatters, labels, one-hot codes) before it runs, on
    every device and in every mode: one that is out of range is an OutOfRangeError.  Compiled graphs then run command by
    command.  Off, indices are looked at where they lie in the host's memory (`docs/decisions/0006`)."""
    implicit_compute: str = "allow"
    """Response to a deferred value that is computed because it is converted or used in an eager operation,
    or because a shape depends on it: "allow", "warn" or "error".  `realize()` and `wait()` are always allowed."""
    fusion: bool = True
    """Compile several operators as one command where that moves fewer bytes; False: a command for each."""
    compile_at_once: bool = False
    """Make machine code before the first run on devices that interpret small work until compiling it pays (`cpu:0`):
    every call then takes as long as the next.  Values are the same."""
    autotune: float = 0.0
    """Seconds that each compiled graph may take to measure commands that several backends take, so that the quickest
    runs; what was measured is kept in the cache.  Under `deterministic` nothing is measured.  0: the order of
    preference decides."""
    matmul_precision: str = "float32"
    """Precision of the factors of products of float32: "tf32" lets devices that can round them to ten bits behind the
    point, which is several times as fast on GPUs of CUDA; sums stay float32.  Other devices compute in float32 either
    way.  Compiled code has what holds when it is compiled or, for graphs compiled by hand, first called."""
    fallback: str = "warn"
    """Response to an operator that a device has no kernel for: "warn" runs it on the host, with transfers, and says so
    once for each operator; "host" does so without a word; "error" is a NotSupportedError, at the latest where a graph
    is compiled.  What runs on the host by nature, such as counting and callbacks, is none; kernels that are there
    already stay."""
    trace_limit: int = 8
    """A compiled function that is traced more often than this says so once, and what changed."""
    memory_steps: int = 1 << 28
    """Number of steps that the memory planners may take for a graph: more give smaller plans where those found miss the
    bound, fewer make compiling quicker.  Not seconds, so that plans are the same everywhere; the default is about two
    of them at most.  What is compiled already stays as it is."""
    arena_limit: int | None = None
    """Bytes of each device that compiled code keeps for its next calls, which then allocate nothing; those not called
    for longest give theirs up first.  None: a quarter of the device's memory.  What is called in turn and does not fit
    allocates at each call.  `empty_cache()` gives back all that does not run, and so does a lack of memory."""
    threads: int | None = None
    """Threads of a kernel on the CPU at most; results do not depend on it.  None: as many as there are CPUs that the
    process may use, by affinity and by the quota of its control group, but no more than OMP_NUM_THREADS says.  Library
    code such as a BLAS has threads of its own."""
    cache_limit: int = 1 << 28
    """Bytes of each cache on disk, such as that of machine code: beyond it, what was not used for longest goes.  0:
    nothing is kept between processes, and nothing that is there is read."""
    cache_folder: str | None = None
    """The folder of all caches on disk.  None: what the environment variable NNC_CACHE_FOLDER says, or the folder that
    the system has for this."""
    default_float: str = "float32"
    """The dtype of Python floats and of creation functions."""
    default_device: str | None = None
    """Device id used where none is named; None means the first of cpu, opencl, cuda, strict that is there."""


def _switch(value: Any) -> bool | None:
    return bool(value) if isinstance(value, (bool, np.bool_)) else None


def _count(value: Any) -> int | None:
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    return int(value) if whole and value >= 0 else None


def _threads(value: Any) -> int | None:
    count = _count(value)
    return count if count and count <= MOST_THREADS else None


def _seconds(value: Any) -> float | None:
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    return float(value) if number and 0 <= value < float("inf") else None


def _one_of(*words: str) -> Callable[[Any], str | None]:
    return lambda value: value if isinstance(value, str) and value in words else None


def _float_name(value: Any) -> str | None:
    """The name of a dtype that is given by name, by NumPy's class or as `nnc.float64`."""
    try:
        return next((d.name for d in FLOATS if d == np.dtype(value)), None) if value is not None else None
    except TypeError:
        return None


def _folder(value: Any) -> str | None:
    try:
        name = os.path.expanduser(os.fspath(value))
    except TypeError:
        return None
    return name if isinstance(name, str) and name else None


def _device_id(value: Any) -> str | None:
    """The id of a device that is given by id, by kind or as a spec."""
    id = getattr(value, "id", value)
    return id if isinstance(id, str) and id else None


KINDS: Mapping[str, tuple[Callable[[Any], Any], str]] = {
    "deterministic": (_switch, "True or False"),
    "eager": (_switch, "True or False"),
    "check_nan": (_one_of("off", "nan", "nonfinite"), "one of off, nan, nonfinite"),
    "check_indices": (_switch, "True or False"),
    "implicit_compute": (_one_of("allow", "warn", "error"), "one of allow, warn, error"),
    "fusion": (_switch, "True or False"),
    "compile_at_once": (_switch, "True or False"),
    "autotune": (_seconds, "a number of seconds that is not negative"),
    "matmul_precision": (_one_of("float32", "tf32"), "one of float32, tf32"),
    "fallback": (_one_of("warn", "host", "error"), "one of warn, host, error"),
    "trace_limit": (_count, "an integer that is not negative"),
    "memory_steps": (_count, "an integer that is not negative"),
    "arena_limit": (_count, "a number of bytes, or None"),
    "threads": (_threads, f"a number of threads from 1 to {MOST_THREADS:,}, or None"),
    "cache_limit": (_count, "a number of bytes that is not negative"),
    "cache_folder": (_folder, "the name of a folder, or None"),
    "default_float": (_float_name, f"one of {', '.join(d.name for d in FLOATS)}"),
    "default_device": (_device_id, "the id of a device, such as cpu:0, or None"),
}
"""Of each setting: what makes the value that is kept (None: it cannot be), and what is expected, in words."""

Watcher = Callable[[Any, object], None]
"""(value, holder): the setting has this value as long as `holder` lives, in the process for None."""

_NOTHING: Mapping[str, Any] = MappingProxyType({})


_DEFAULTS = Settings()


class _Override(dict[str, Any]):
    """Settings of a context.  Tasks that were started in it may see them after the block has ended, so what depends on
    their end watches how long this lives."""


class Config:
    """`config.deterministic = True` sets for the process; `with config.using(deterministic=True)` for a context."""

    _names = frozenset(f.name for f in fields(Settings))

    def __init__(self) -> None:
        object.__setattr__(self, "_process", Settings())
        object.__setattr__(self, "_override", ContextVar[Mapping[str, Any]]("nnc_config", default=_NOTHING))
        object.__setattr__(self, "_watchers", {})

    def __getattr__(self, name: str) -> Any:
        """Refuse what is no setting; settings are properties, since each small operation asks for some."""
        raise self._unknown(name)

    def __setattr__(self, name: str, value: Any) -> None:
        value = _checked(self._known(name), value)
        setattr(self._process, name, value)
        self._tell({name: value}, None)

    def as_dict(self) -> dict[str, Any]:
        """All settings by name, as they are here and now."""
        return {name: getattr(self, name) for name in sorted(self._names)}

    @property
    def of_traces(self) -> tuple[bool, bool, str, str | None, str]:
        """The settings that what is traced and compiled depends on; asked for by every call of compiled code."""
        override, process = self._override.get(), self._process
        if override:
            return (self.deterministic, self.fusion, self.default_float, self.default_device,
                    self.matmul_precision)
        return (process.deterministic, process.fusion, process.default_float, process.default_device,
                process.matmul_precision)

    @property
    def of_runs(self) -> tuple[bool, str, bool]:
        """The settings that say how a compiled graph runs: `eager`, `check_nan` and `check_indices`."""
        override, process = self._override.get(), self._process
        if override:
            return self.eager, self.check_nan, self.check_indices
        return process.eager, process.check_nan, process.check_indices

    @contextmanager
    def using(self, **settings: Any) -> Iterator[None]:
        """Override settings in this context only."""
        checked = {name: _checked(self._known(name), value) for name, value in settings.items()}
        override = _Override({**self._override.get(), **checked})
        self._tell(override, override)
        token = self._override.set(override)
        del override  # it is gone with the last context that has it
        try:
            yield
        finally:
            self._override.reset(token)

    def watch(self, name: str, watcher: Watcher) -> None:
        """Tell `watcher` each value that a setting gets, and for how long."""
        self._watchers[self._known(name)] = watcher

    def _tell(self, settings: Mapping[str, Any], holder: object) -> None:
        for name in self._watchers.keys() & settings.keys():
            self._watchers[name](settings[name], holder)

    def _known(self, name: str) -> str:
        if name not in self._names:
            raise self._unknown(name)
        return name

    def _unknown(self, name: str) -> UnknownAttributeError:
        return UnknownAttributeError(f"no setting {name!r}", hint=f"one of {', '.join(sorted(self._names))}")


def _setting(name: str) -> property:
    of_process = attrgetter("_process." + name)

    def here(config: Config) -> Any:
        override = config._override.get()
        return override[name] if name in override else of_process(config)

    return property(here)


for _name in Config._names:
    setattr(Config, _name, _setting(_name))


def _checked(name: str, value: Any) -> Any:
    if value is None and getattr(_DEFAULTS, name) is None:
        return None
    make, expected = KINDS[name]
    made = make(value)
    if made is None:
        raise AttributeValueError(f"{name} is {value!r}, expected {expected}", hint=f"nnc.config.{name}: {expected}")
    return made


config = Config()
