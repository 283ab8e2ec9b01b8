"""Functions traced once for each signature, compiled, and called from then on without Python inside."""

from __future__ import annotations

import functools
import sys
import threading
import types
import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple, TypeAlias, overload

from nnc_core.base.errors import AttributeValueError, FallbackWarning, ShapeError, SymbolicDimensionError
from nnc_core.dynamic.compilation import Compilation, DataDependentError, Traced, finish
from nnc_core.dynamic.compiled import CompiledGraph
from nnc_core.dynamic.dimensions import Shapes, Sizes, answered_by
from nnc_core.dynamic.donation import check_not_donated
from nnc_core.dynamic.evaluation import compute
from nnc_core.dynamic.family import Family
from nnc_core.dynamic.modes import KEPT, current_trace, gradients, lazy, sweeps
from nnc_core.dynamic.report import explained, shown
from nnc_core.dynamic.retrace import Storm, reason, users_frame
from nnc_core.dynamic.signature import Arguments, Parameters, Signature, ambient
from nnc_core.dynamic.tensor import Tensor
from nnc_core.dynamic.trace import Trace
from nnc_core.dynamic.value import Value
from nnc_core.symbol import without_collector
from nnc_core.type import TensorSpec

Numbers: TypeAlias = int | Sequence[int]
Names: TypeAlias = str | Sequence[str]

SIGNATURES = 64
"""Signatures of one function whose compilations are kept; the one not called for longest goes first."""
VARIANTS = 8
"""Compilations of one signature that are kept, for when a value that was read from outside changes back."""

call_hook: Callable[[Jitted, tuple[Any, ...], dict[str, Any]], Any] | None = None
"""Makes one step of a function that is called where its operations are recorded (in a trace, in deferred mode, for a
gradient), or gives NotImplemented for one that is small enough (`Jitted.inline_limit`) to be written out there.  It is
asked for functions that have a limit.  None: all are written out."""


class CacheInfo(NamedTuple):
    """How often calls found compiled code (`hits`) or did not (`misses`), how often Python was traced and a graph
    compiled since the cache was last cleared, and the signatures that are kept, as text."""

    hits: int
    misses: int
    traces: int
    compilations: int
    signatures: tuple[str, ...]


class Entry:
    """What is kept for one signature."""

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


class Jitted:
    """`f` compiled per signature: see `jit`."""

    def __init__(self, f: Callable[..., Any], *, static: tuple[Any, Any] = ((), ()),
                 donated: tuple[Any, Any] = ((), ()), named_dims: bool = True, static_alloc: bool = False,
                 static_shape: bool = False, inline_limit: int | None = None,
                 face: Callable[..., Any] | None = None) -> None:
        """`face` is the function as users know it, where f only calls it."""
        functools.update_wrapper(self, face or f)
        self.f = f
        self.named_dims, self.static_alloc, self.static_shape = named_dims, static_alloc, static_shape
        self.inline_limit = inline_limit
        """Largest number of operators that is written out inside another trace, for `call_hook`; None: any number."""
        self.traces = 0
        self._options = {"static": static, "donated": donated, "named_dims": named_dims, "static_alloc": static_alloc,
                         "static_shape": static_shape, "inline_limit": inline_limit, "face": face}
        self._parameters = Parameters(face or f, static, donated)
        self._plain = not (self._parameters.static or self._parameters.donated)
        self._name = _name_of(f) if face is None else getattr(face, "__qualname__", "").rpartition("<locals>.")[2]
        self._lock = threading.Lock()
        self._entries: dict[Signature, Entry] = {}
        self._quick: dict[Hashable, Entry] = {}
        self._families: dict[Hashable, Family] = {}
        self._storm = Storm()
        self._hits = self._misses = self._compilations = 0

    @property
    def name(self) -> str:
        """The function's."""
        return self._name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self) -> Any:
        """What a module's name leads to is that name; other copies start without compiled code."""
        path = str(getattr(self, "__qualname__", ""))
        found: Any = sys.modules.get(self.__module__)
        for name in path.split("."):
            found = getattr(found, name, None)
        return path if found is self else (_made_again, (self.f, self._options))

    def __repr__(self) -> str:
        return f"<jit of {self._name}, traced {self.traces} times>"

    # ---- calls
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """f(*args, **kwargs), compiled."""
        if lazy.get() or current_trace.get() is not None or (sweeps.get() and gradients.get()):
            return self._inline(args, kwargs)
        if self._plain and not kwargs:
            key: list[Any] = [ambient()]
            arrays = []
            for x in args:
                if x.__class__ is not Tensor:
                    break
                v = x._value
                array = v.array
                if array is None or v.tracked or v.trace is not None:
                    break
                spec = v._spec or v.spec
                key += (spec.shape, spec.dtype, v.stack)
                arrays.append(array)
            else:
                entry = self._quick.get(tuple(key))
                found = None if entry is None else entry.current()
                if entry is not None and found is not None and (found.pure or not found.is_differentiated()):
                    self._hits = entry.used = self._hits + 1
                    return found.call(arrays)
                return self._call(args, kwargs, tuple(key))
        return self._call(args, kwargs, None)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any], quick: Hashable) -> Any:
        arguments = self._parameters.taken_apart(args, kwargs)
        for t in arguments.tensors:
            check_not_donated(t._value)
        if _is_inlined([t._value for t in arguments.tensors]):
            return self._inline(args, kwargs)
        compute([t._value for t in arguments.tensors], f"{self._name!r} is compiled and takes it as an argument")
        signature, entry = self._entry(arguments)
        if quick is not None:
            self._quick[quick] = entry
        found = self._find(arguments, signature, entry)
        if found is None or found.is_differentiated():
            return self._inline(args, kwargs)
        donated = self._donated(arguments)
        if donated:
            return found.call_donating(arguments.tensors, donated)
        return found.call([t._value.array for t in arguments.tensors])

    def _inline(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """One step, or the function as it is written, in whatever mode is on."""
        if call_hook is not None:
            made = call_hook(self, args, kwargs)
            if made is not NotImplemented:
                return made
        return self.f(*args, **kwargs)

    def taken_apart(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        """The arguments of a call as their leaves."""
        return self._parameters.taken_apart(args, kwargs)

    def compiled_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Compilation:
        """What a call with these arguments runs; DataDependentError where it is not compiled."""
        return self._compiled_for(args, kwargs)[0]

    def _donated(self, arguments: Arguments) -> dict[int, str]:
        """The donated ones among the tensors, by number, with what they are called."""
        chosen = self._parameters.donated
        if not chosen:
            return {}
        structure = arguments.structure
        places = zip(arguments.leaves, self._parameters.arguments(structure), self._parameters.labels(structure),
                     strict=True)
        tensors = [(place, label) for x, place, label in places if isinstance(x, Tensor)]
        return {i: label for i, (place, label) in enumerate(tensors) if place in chosen}

    # ---- what is kept
    def _entry(self, arguments: Arguments) -> tuple[Signature, Entry]:
        signature = arguments.signature(lambda: self._parameters.labels(arguments.structure))
        entry = self._entries.get(signature)
        if entry is None:
            with self._lock:
                entry = self._entries.setdefault(signature, Entry())
                entry.used = self._hits
                if len(self._entries) > SIGNATURES:
                    self._forget_oldest(signature)
        return signature, entry

    def _forget_oldest(self, new: Signature) -> None:
        oldest = min((s for s in self._entries if s != new), key=lambda s: self._entries[s].used)
        del self._entries[oldest]
        self._quick.clear()
        alive = {s.family for s in self._entries}
        self._families = {key: family for key, family in self._families.items() if key in alive}

    def _find(self, arguments: Arguments, signature: Signature, entry: Entry) -> Compilation | None:
        """Compiled for this signature, now if it has to be; None for a function that runs as it is written."""
        found = entry.current()
        if found is None and not entry.as_written:
            with self._lock:
                family = self._families.setdefault(signature.family, Family())
            with family.lock:  # so that threads that call at once compile once
                found = entry.current()
                if found is None and not entry.as_written:
                    return self._make(arguments, signature, entry, family)
        self._hits = entry.used = self._hits + 1
        return found

    def _make(self, arguments: Arguments, signature: Signature, entry: Entry, family: Family) -> Compilation | None:
        self._misses += 1
        traces = self.traces
        because = reason(self._parameters, self._entries, signature, entry.variants)
        self._check_shape(signature, because)
        try:
            found = self._specialised(signature, entry, family) or self._traced(arguments, signature, family, because)
        except DataDependentError as error:
            entry.as_written = error.message
            warnings.warn(f"{self._name!r} runs operator by operator: {error.message}, at {error.line}",
                          FallbackWarning, stacklevel=users_frame())
            return None
        if self.static_alloc:
            found.run.reserve()
        self._compilations += 1
        entry.variants = (*entry.variants, found)[-VARIANTS:]
        if self.traces > traces:
            self._storm.note(self._name, self.traces, because)
        return found

    def _check_shape(self, signature: Signature, because: str) -> None:
        if not self.static_shape:
            return
        wanted = signature.but_shapes
        for other, entry in self._entries.items():
            if entry.variants and other.shapes != signature.shapes and other.but_shapes == wanted:
                raise ShapeError(
                    f"{self._name!r} was compiled with static_shape=True and is called with another shape: {because}",
                    hint="hybridize(static_shape=False), or pad the arguments to one shape")

    def _specialised(self, signature: Signature, entry: Entry, family: Family) -> Compilation | None:
        """From a trace that is there already: for these sizes, or again because other backends were chosen."""
        for old in entry.variants:
            if old.traced.is_current():
                entry.variants = tuple([c for c in entry.variants if c is not old])
                return old.traced.compile(old.numbers)
        return family.specialised(signature.shapes)

    def _traced(self, arguments: Arguments, signature: Signature, family: Family, because: str) -> Compilation:
        found = None
        labels = functools.partial(self._tensor_labels, arguments)
        chosen = family.named(signature.shapes, labels()) if self.named_dims and not self.static_shape else None
        if chosen is not None:
            found = self._with_names(arguments, *chosen, labels, because)
        if found is None:
            found = self._trace(arguments, signature.shapes, None, labels, because).compile({})
            if chosen is not None:
                family.hopeless = True  # with names it fails, with numbers it works
        family.keep(signature.shapes, found.traced)
        return found

    def _with_names(self, arguments: Arguments, shapes: Shapes, sizes: Sizes, labels: Callable[[], list[str]],
                    because: str) -> Compilation | None:
        """None if the code does not get on with names; what is wrong with it otherwise, tracing with numbers tells."""
        try:
            return self._trace(arguments, shapes, sizes, labels, because).compile(sizes.numbers)
        except DataDependentError:
            raise
        except ShapeError:
            if sizes.by_chance:
                return None
            return self._with_names(arguments, shapes, Sizes(sizes.numbers, by_chance=True), labels, because)
        except Exception:
            return None

    @without_collector()
    def _trace(self, arguments: Arguments, shapes: Shapes, sizes: Sizes | None, labels: Callable[[], list[str]],
               because: str) -> Traced:
        self.traces += 1
        trace = Trace(self._name, labels)
        symbols = [Tensor(trace.symbol(t._value, TensorSpec(shape, t.dtype)))
                   for t, shape in zip(arguments.tensors, shapes, strict=True)]
        args, kwargs = arguments.rebuilt(symbols)
        try:
            with nullcontext() if sizes is None else answered_by(sizes):
                with _tracing(trace):
                    result = self.f(*args, **kwargs)
                return finish(trace, result, shapes, sizes, list(self._donated(arguments)), because)
        except (ShapeError, SymbolicDimensionError) as error:
            if trace.counts and sizes is None:  # perhaps the sizes that depend on data do not fit: eager will tell
                raise DataDependentError(error.message, line=error.line) from error
            raise
        finally:
            trace.ended = True

    def _tensor_labels(self, arguments: Arguments) -> list[str]:
        labels = self._parameters.labels(arguments.structure)
        return [label for x, label in zip(arguments.leaves, labels, strict=True) if isinstance(x, Tensor)]

    # ---- for users
    def cache_info(self) -> CacheInfo:
        """Hits, misses, traces, compilations, and the signatures that are kept."""
        kept = tuple(shown(self._name, self._parameters, s) for s, e in list(self._entries.items()) if e.variants)
        return CacheInfo(self._hits, self._misses, self.traces, self._compilations, kept)

    def cache_clear(self) -> None:
        """Forget everything compiled, and start counting again."""
        with self._lock:
            self._entries, self._quick, self._families = {}, {}, {}
            self._storm = Storm()
            self.traces = self._hits = self._misses = self._compilations = 0

    def lower(self, *args: Any, **kwargs: Any) -> CompiledGraph:
        """The compiled graph for these arguments: `.explain()`, `.memory_plan`, `.graph`."""
        return self._compiled_for(args, kwargs)[0].run

    def explain(self, *args: Any, **kwargs: Any) -> str:
        """Why the code for these arguments was traced, what it holds for, where its memory is, and each command with
        its backend, as text.  Compiles if it has to, runs nothing."""
        found, arguments = self._compiled_for(args, kwargs)
        signature = self._entry(arguments)[0]
        counts = (f"{self.traces} traces, {self._compilations} compilations, {self._hits} hits, {self._misses} misses")
        return explained(shown(self._name, self._parameters, signature), found, counts)

    def profile(self, *args: Any, repeats: int = 5, **kwargs: Any) -> Any:
        """Time each command of the compiled graph on these arguments; cells and donated arguments keep their values."""
        found, arguments = self._compiled_for(args, kwargs)
        given = {k: t._value.array for k, t in zip(found.arguments, arguments.tensors, strict=True)}
        return found.run.profile_arrays(given | found.state(take=True), repeats)

    def _compiled_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Compilation, Arguments]:
        arguments = self._parameters.taken_apart(args, kwargs)
        for t in arguments.tensors:
            check_not_donated(t._value)
        compute([t._value for t in arguments.tensors], f"{self._name!r} is compiled and takes it as an argument")
        signature, entry = self._entry(arguments)
        found = self._find(arguments, signature, entry)
        if found is None:
            raise DataDependentError(f"{self._name!r} is not compiled: {entry.as_written}",
                                     hint="call it: it runs operator by operator")
        return found, arguments


def _name_of(f: Callable[..., Any]) -> str:
    return str(getattr(f, "__name__", type(f).__name__))


def _made_again(f: Callable[..., Any], options: dict[str, Any]) -> Jitted:
    return Jitted(f, **options)


@contextmanager
def _tracing(trace: Trace) -> Iterator[None]:
    """Operations are recorded, cells and outside tensors noted."""
    tokens = current_trace.set(trace), lazy.set(KEPT)
    try:
        yield
    finally:
        current_trace.reset(tokens[0])
        lazy.reset(tokens[1])


def _is_inlined(tensors: Sequence[Value]) -> bool:
    """Symbols, and what a gradient may be asked through, are for the function as it is written."""
    return any([v.trace is not None or (v.tracked and gradients.get()) for v in tensors])


@overload
def jit(f: Callable[..., Any], /, *, static_argnums: Numbers = ..., static_argnames: Names = ...,
        donate_argnums: Numbers = ..., donate_argnames: Names = ..., named_dims: bool = ...,
        inline_limit: int | None = ...) -> Jitted: ...
@overload
def jit(f: None = None, /, *, static_argnums: Numbers = ..., static_argnames: Names = ...,
        donate_argnums: Numbers = ..., donate_argnames: Names = ..., named_dims: bool = ...,
        inline_limit: int | None = ...) -> Callable[[Callable[..., Any]], Jitted]: ...
def jit(f: Callable[..., Any] | None = None, /, *, static_argnums: Numbers = (), static_argnames: Names = (),
        donate_argnums: Numbers = (), donate_argnames: Names = (), named_dims: bool = True,
        inline_limit: int | None = None) -> Jitted | Callable[[Callable[..., Any]], Jitted]:
    """Compile a function of tensors: `nnc.jit(f)`, `@nnc.jit`, or `@nnc.jit(static_argnums=...)`.

    It is traced when it is first called with a signature: the structure of the arguments (nested dicts, lists and
    tuples), shape, dtype and device of each tensor, type and value of everything else, and of arguments declared static
    as a whole, which must be hashable.  It is traced again when what it has read has changed: modes and attributes of
    modules, replaced cells, settings of `nnc.config`.  Tensors and cells that it reads from outside are read again at
    each call; cells that it writes are updated in place.  Variables of the function's surroundings that are no tensors,
    and lists and dicts that are changed in place, cannot be watched: pass these as arguments.

    When only sizes differ from an earlier call, it is traced with names for them (`named_dims`), and further sizes
    only compile.  Inside the function such a size is no int but answers every question like one, and the trace is
    used for those sizes for which all answers would have been the same.

    Donated arguments give up their memory to results of the same shape and dtype, unless somebody else can see it;
    afterwards every use of them is a DonatedError.

    Inside another trace, in deferred mode, or where a gradient is recorded, the function runs as it is written and
    nothing is donated.  So does a function with sizes that depend on data, with one FallbackWarning.

    Raises ConcretizationError where Python needs the value of a traced tensor, LeakedTraceError where one is used after
    the trace, OperandError for an argument that is neither tensor nor hashable.
    """
    if f is not None and not callable(f):
        raise AttributeValueError(f"{type(f).__name__} is no function", hint="@nnc.jit(static_argnums=...)")

    def wrap(f: Callable[..., Any]) -> Jitted:
        return Jitted(f, static=(static_argnums, static_argnames), donated=(donate_argnums, donate_argnames),
                      named_dims=named_dims, inline_limit=inline_limit)

    return wrap if f is None else wrap(f)
