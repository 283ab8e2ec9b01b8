"""Cache of a compiled function: compilations by signature, and how another one is made."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Hashable, Iterator
from typing import NamedTuple

from nnc_core.base.errors import FallbackWarning, ShapeError
from nnc_core.symbol import users_frame, without_collector
from nnc_core.tracing.compilation import Compilation
from nnc_core.tracing.dimensions import Shapes, Sizes
from nnc_core.tracing.recent import Recent, RecentTree
from nnc_core.tracing.report import shown
from nnc_core.tracing.retrace import Storm, reason
from nnc_core.tracing.shape_family import ShapeFamily
from nnc_core.tracing.signature import Arguments, Signature
from nnc_core.tracing.traced import Traced
from nnc_core.tracing.tracing import TraceSpec
from nnc_core.values.data_dependent import DataDependentError

SIGNATURES = 64
"""Signatures of one function whose compilations are kept; the one not called for longest goes first."""
TREES = 8
"""Kinds of calls with more than tensors that are known without a key."""
VARIANTS = 8
"""Compilations of one signature that are kept, for when a value that was read from outside changes back."""


class CacheInfo(NamedTuple):
    """Numbers of calls that found compiled code (`hits`) or did not (`misses`), of traces of Python and of graphs
    compiled since the cache was last cleared, and the signatures that are kept, as text."""

    hits: int
    misses: int
    traces: int
    compilations: int
    signatures: tuple[str, ...]


class Entry:
    """The compilations kept for one signature."""

    __slots__ = ("as_written", "used", "variants")

    def __init__(self) -> None:
        self.variants: tuple[Compilation, ...] = ()
        self.used = 0
        self.as_written = ""
        """Why it cannot be compiled; "" if it can."""

    def current(self) -> Compilation | None:
        """The compilation that is right now."""
        for compilation in self.variants:
            if compilation.is_current():
                return compilation
        return None


class Cache:
    """Compilations of one function."""

    def __init__(self, trace_spec: TraceSpec) -> None:
        self.trace_spec = trace_spec
        self.lock = threading.Lock()
        self.clear()

    def clear(self) -> None:
        """Forget everything, and start counting again."""
        with self.lock:
            self.entries: dict[Signature, Entry] = {}
            self.quick: dict[Hashable, Recent] = {}
            """The same by what is quickly known of a call with nothing but tensors."""
            self.trees: tuple[RecentTree, ...] = ()
            """The last few other kinds of calls, the latest first."""
            self.recent: Recent | None = None
            """The last of all these that was called."""
            self.families: dict[Hashable, ShapeFamily] = {}
            self.storm = Storm()
            self.traces = self.hits = self.misses = self.compilations = 0

    def info(self) -> CacheInfo:
        """Counts and signatures."""
        kept = tuple([shown(self.trace_spec.name, self.trace_spec.parameters, s)
                      for s, e in list(self.entries.items()) if e.variants])
        return CacheInfo(self.hits, self.misses, self.traces, self.compilations, kept)

    # ---- entries
    def entry(self, arguments: Arguments) -> tuple[Signature, Entry]:
        """The entry that keeps compilations for such arguments."""
        signature = arguments.signature(lambda: self.trace_spec.parameters.labels(arguments.structure))
        entry = self.entries.get(signature)
        if entry is None:
            with self.lock:
                entry = self.entries.setdefault(signature, Entry())
                entry.used = self.hits
                if len(self.entries) > SIGNATURES:
                    self._forget_oldest(signature)
        return signature, entry

    def _forget_oldest(self, new: Signature) -> None:
        oldest = min((s for s in self.entries if s != new), key=lambda s: self.entries[s].used)
        del self.entries[oldest]
        self.quick.clear()
        self.recent, self.trees = None, ()
        alive = {s.family for s in self.entries}
        self.families = {key: family for key, family in self.families.items() if key in alive}

    def remember(self, tree: RecentTree) -> None:
        """Know calls like this one without a key."""
        self.trees = (tree, *self.trees)[:TREES]

    def found(self, entry: Entry) -> None:
        """A call was served by what is there."""
        self.hits = entry.used = self.hits + 1

    def served(self, entry: Entry) -> Compilation | None:
        """The compilation that serves a call at once; None where one has to be made, or a gradient may be asked."""
        found = entry.current()
        if found is None or not (found.pure or not found.is_differentiated()):
            return None
        self.hits = entry.used = self.hits + 1
        return found

    # ---- compilations
    def find(self, arguments: Arguments, signature: Signature, entry: Entry) -> Compilation | None:
        """Compiled for this signature, now if it has to be; None for a function that runs as it is written."""
        found = entry.current()
        if found is None and not entry.as_written:
            with self.lock:
                family = self.families.setdefault(signature.family, ShapeFamily())
            with family.lock:  # so that threads that call at once compile once
                found = entry.current()
                if found is None and not entry.as_written:
                    return self._make(arguments, signature, entry, family)
        self.found(entry)
        return found

    def _make(self, arguments: Arguments, signature: Signature, entry: Entry,
              family: ShapeFamily) -> Compilation | None:
        self.misses += 1
        traces, name = self.traces, self.trace_spec.name
        because = reason(self.trace_spec.parameters, self.entries, signature, entry.variants)
        self._check_shape(signature, because)
        try:
            with without_collector():  # once around both: when it goes on, it looks at all that is new
                found = (self._specialised(signature, entry, family)
                         or self._traced(arguments, signature, family, because))
        except DataDependentError as error:
            entry.as_written = error.message
            where = f", at {error.line}" if error.line else ""
            warnings.warn(f"{name!r} runs operator by operator: {error.message}{where}",
                          FallbackWarning, stacklevel=users_frame())
            return None
        if self.trace_spec.static_alloc:
            found.run.reserve()
        self.compilations += 1
        entry.variants = (*entry.variants, found)[-VARIANTS:]
        if self.traces > traces:
            self.storm.note(name, self.traces, because)
        return found

    def _check_shape(self, signature: Signature, because: str) -> None:
        if self.trace_spec.static_shape and any(s.shapes != signature.shapes for s in self._alike(signature)):
            raise ShapeError(
                f"{self.trace_spec.name!r} was compiled with static_shape=True and is called with another shape: "
                f"{because}",
                hint="hybridize(static_shape=False), or pad the arguments to one shape")

    def _alike(self, signature: Signature) -> Iterator[Signature]:
        """Signatures that differ in shapes alone."""
        wanted = signature.but_shapes
        return (s for s, e in list(self.entries.items()) if e.variants and s.but_shapes == wanted)

    def _specialised(self, signature: Signature, entry: Entry, family: ShapeFamily) -> Compilation | None:
        """From a trace that is there already: for these sizes, or again because other backends were chosen."""
        for old in entry.variants:
            if old.traced.is_current():
                entry.variants = tuple([c for c in entry.variants if c is not old])
                return Compilation.of(old.traced, old.numbers)
        return family.specialised(signature.shapes)

    def _traced(self, arguments: Arguments, signature: Signature, family: ShapeFamily, because: str) -> Compilation:
        found = None
        named = self.trace_spec.named_dims and not self.trace_spec.static_shape
        chosen = family.named(signature.shapes, self.trace_spec.labels(arguments)) if named else None
        if chosen is not None and self.trace_spec.asks_for_int(arguments):
            chosen, family.hopeless = None, True
        if chosen is not None:
            found = self._with_names(arguments, *chosen, because)
        if found is None:
            found = Compilation.of(self._trace(arguments, signature.shapes, None, because), {})
            if chosen is not None:
                family.hopeless = True  # with names it fails, with numbers it works
        family.keep(signature.shapes, found.traced)
        return found

    def _with_names(self, arguments: Arguments, shapes: Shapes, sizes: Sizes, because: str) -> Compilation | None:
        """None if the code does not get on with names; what is wrong with it otherwise, tracing with numbers tells."""
        try:
            return Compilation.of(self._trace(arguments, shapes, sizes, because), sizes.numbers)
        except DataDependentError:
            raise
        except ShapeError:
            if sizes.by_chance:
                return None
            return self._with_names(arguments, shapes, Sizes(sizes.numbers, by_chance=True), because)
        except Exception:  # whatever the user's code raises with names is not told: with numbers it may work
            return None

    def _trace(self, arguments: Arguments, shapes: Shapes, sizes: Sizes | None, because: str) -> Traced:
        self.traces += 1
        return self.trace_spec.trace(arguments, shapes, sizes, because)
