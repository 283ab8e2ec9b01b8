"""Functions traced once for each signature, compiled, and called from then on without Python inside."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias, overload

from nnc_core.base.config import config
from nnc_core.base.errors import AttributeValueError
from nnc_core.recording.compiled import CompiledGraph
from nnc_core.symbol import show_line, user_line
from nnc_core.tracing.cache import Cache, CacheInfo, Entry
from nnc_core.tracing.compilation import Compilation
from nnc_core.tracing.donation import check_not_donated
from nnc_core.tracing.recent import Recent, RecentTree
from nnc_core.tracing.report import explained, shown
from nnc_core.tracing.signature import Arguments, Parameters, Signature
from nnc_core.tracing.tracing import TraceSpec
from nnc_core.values.data_dependent import DataDependentError
from nnc_core.values.evaluation import compute
from nnc_core.values.modes import _stack, current_trace, gradients, lazy, sweeps
from nnc_core.values.tensor import Tensor
from nnc_core.values.trace import Trace
from nnc_core.values.tree import flatten, tree_map, unflatten
from nnc_core.values.value import Value

Numbers: TypeAlias = int | Sequence[int]
Names: TypeAlias = str | Sequence[str]

call_hook: Callable[[Jitted, tuple[Any, ...], dict[str, Any]], Any] | None = None
"""Makes one step of a function that is called where its operations are recorded (in a trace, in deferred mode, for a
gradient), or gives NotImplemented for one that is small enough (`Jitted.inline_limit`) to be written out there.  It is
asked for functions that have a limit.  None: all are written out."""


class Jitted:
    """`f` compiled per signature: see `jit`."""

    def __init__(self, f: Callable[..., Any], *, static: tuple[Any, Any] = ((), ()),
                 donated: tuple[Any, Any] = ((), ()), named_dims: bool = True, static_alloc: bool = False,
                 static_shape: bool = False, inline_limit: int | None = None,
                 face: Callable[..., Any] | None = None) -> None:
        """`face` is the function as users know it, where f only calls it."""
        functools.update_wrapper(self, face or f)
        self.f = f
        self.inline_limit = inline_limit
        """Largest number of operators that is written out inside another trace, for `call_hook`; None: any number."""
        self._options = {"static": static, "donated": donated, "named_dims": named_dims, "static_alloc": static_alloc,
                         "static_shape": static_shape, "inline_limit": inline_limit, "face": face}
        self._parameters = Parameters(face or f, static, donated)
        self._lends = not self._parameters.donated
        """Whether all arguments are as they were when a call ends."""
        name = _name_of(f) if face is None else getattr(face, "__qualname__", "").rpartition("<locals>.")[2]
        self._trace_spec = TraceSpec(f, face or f, name, self._parameters, named_dims, static_alloc, static_shape)
        self._cache = Cache(self._trace_spec)

    @property
    def name(self) -> str:
        """The function's."""
        return self._trace_spec.name

    @property
    def traces(self) -> int:
        """The number of times that Python has run."""
        return self._cache.traces

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self) -> Any:
        """Pickle as a name what a module's name leads to; other copies start without compiled code."""
        path = str(getattr(self, "__qualname__", ""))
        found: Any = sys.modules.get(self.__module__)
        for name in path.split("."):
            found = getattr(found, name, None)
        return path if found is self else (_made_again, (self.f, self._options))

    def __repr__(self) -> str:
        return f"<jit of {self.name}, traced {self.traces} times>"

    # ---- calls
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """f(*args, **kwargs), compiled."""
        if lazy.get() or current_trace.get() is not None or (sweeps.get() and gradients.get()):
            return self._inline(args, kwargs)
        if not self._lends:
            return self._call(args, kwargs, None)
        cache = self._cache
        recent = cache.recent
        if recent is None or (arrays := recent.arrays(args, kwargs)) is None:
            if kwargs or self._parameters.static:
                return self._called_as_tree(args, kwargs)
            return self._called_otherwise(args)
        return self._call(args, kwargs, None) if (found := cache.served(recent.entry)) is None else found.call(arrays)

    def _called_as_tree(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call with more than tensors, which is not like the last one."""
        cache = self._cache
        for known in cache.trees:
            arrays = known.arrays(args, kwargs)
            if arrays is not None:
                found = cache.served(known.entry)
                cache.recent = known
                return self._call(args, kwargs, None) if found is None else found.call(arrays)
        return self._call(args, kwargs, None)

    def _called_otherwise(self, args: tuple[Any, ...]) -> Any:
        """A call with nothing but places, which is not like the last one."""
        key: list[Any] = [config.of_traces, _stack.get()]
        arrays = []
        for x in args:
            if x.__class__ is not Tensor:
                return self._called_as_tree(args, {})
            v = x._value
            array = v.array
            if array is None or v.tracked or v.trace is not None:
                return self._call(args, {}, None)
            key += (array.shape, array.dtype, v.stack)
            arrays.append(array)
        if len(set(args)) < len(args):  # one tensor twice: code may ask whether it is
            return self._call(args, {}, None)
        cache, quick = self._cache, tuple(key)
        known = cache.quick.get(quick)
        found = None if known is None else cache.served(known.entry)
        if known is None or found is None:
            return self._call(args, {}, quick)
        cache.recent = known
        return found.call(arrays)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any], quick: Hashable) -> Any:
        arguments = self._arguments(args, kwargs)
        if _is_inlined([t._value for t in arguments.tensors]):
            return self._inline(args, kwargs)
        found, _, entry = self._found(arguments)
        if quick is not None:
            self._cache.quick[quick] = Recent(args, entry)
        elif self._lends and found is not None:
            self._remember(arguments, entry)
        if found is None or found.is_differentiated():
            return self._inline(args, kwargs)
        donated = self._trace_spec.donated(arguments)
        if donated:
            return found.call_donating(arguments.tensors, donated)
        return found.call([t._value.array for t in arguments.tensors])

    def _remember(self, arguments: Arguments, entry: Entry) -> None:
        """Know the next call of this kind without a key, unless a tensor comes twice."""
        tensors, trees = arguments.tensors, self._cache.trees
        if len(set(tensors)) == len(tensors) and entry not in [known.entry for known in trees]:
            self._cache.remember(RecentTree(arguments, self._parameters.free, entry))

    def _inline(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """One step, or the function as it is written, in whatever mode is on."""
        if call_hook is not None:
            made = call_hook(self, args, kwargs)
            if made is not NotImplemented:
                return made
        trace = current_trace.get()
        return self.f(*args, **kwargs) if trace is None else _apart(trace, self.f, args, kwargs)

    def _arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        arguments = self._parameters.taken_apart(args, kwargs)
        for t in arguments.tensors:
            check_not_donated(t._value)
        return arguments

    def _found(self, arguments: Arguments) -> tuple[Compilation | None, Signature, Entry]:
        """Compiled for these arguments, which are computed if they are not; None if it runs as it is written."""
        compute([t._value for t in arguments.tensors], f"{self.name!r} is compiled and takes it as an argument")
        signature, entry = self._cache.entry(arguments)
        return self._cache.find(arguments, signature, entry), signature, entry

    # ---- for whoever records or differentiates a call
    def taken_apart(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        """The arguments of a call as their leaves."""
        return self._parameters.taken_apart(args, kwargs)

    def compiled_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Compilation:
        """The code that a call with these arguments runs; DataDependentError where it is not compiled."""
        return self._compiled(self._arguments(args, kwargs))[0]

    def _compiled(self, arguments: Arguments) -> tuple[Compilation, Signature]:
        found, signature, entry = self._found(arguments)
        if found is None:
            raise DataDependentError(f"{self.name!r} is not compiled: {entry.as_written}",
                                     hint="call it: it runs operator by operator")
        return found, signature

    # ---- for users
    def cache_info(self) -> CacheInfo:
        """Hits, misses, traces, compilations, and the signatures that are kept."""
        return self._cache.info()

    def cache_clear(self) -> None:
        """Forget everything compiled, and start counting again."""
        self._cache.clear()

    def lower(self, *args: Any, **kwargs: Any) -> CompiledGraph:
        """The compiled graph for these arguments: `.explain()`, `.memory_plan`, `.graph`."""
        return self.compiled_for(args, kwargs).run

    def explain(self, *args: Any, **kwargs: Any) -> str:
        """Explain why the code for these arguments was traced, what it holds for, where its memory is, and each command
        with its backend, as text.  Compiles if it has to, runs nothing."""
        found, signature = self._compiled(self._arguments(args, kwargs))
        info = self._cache.info()
        counts = f"{info.traces} traces, {info.compilations} compilations, {info.hits} hits, {info.misses} misses"
        return explained(shown(self.name, self._parameters, signature), found, counts)

    def profile(self, *args: Any, repeats: int = 5, **kwargs: Any) -> Any:
        """Time each command of the compiled graph on these arguments; cells and donated arguments keep their values."""
        arguments = self._arguments(args, kwargs)
        found = self._compiled(arguments)[0]
        given = {k: t._value.array for k, t in zip(found.arguments, arguments.tensors, strict=True)}
        return found.run.program.profile_arrays(given | found.state(take=True), repeats)


def _apart(trace: Trace, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call written out in a trace, whose arguments and results are handles of their own, as those of compiled calls:
    it may not change its arguments in place, and what the caller does with a result reaches no argument."""
    leaves, structure = flatten((args, kwargs), sort=False)
    handles = {id(t): trace.handed_on(t) for t in leaves if t.__class__ is Tensor}
    args, kwargs = unflatten(structure, iter([handles.get(id(x), x) for x in leaves]))
    own = {id(t) for t in handles.values()}
    return tree_map(lambda y: Tensor(y._value) if id(y) in own else y, f(*args, **kwargs))


def _name_of(f: Callable[..., Any]) -> str:
    return str(getattr(f, "__name__", type(f).__name__))


def _made_again(f: Callable[..., Any], options: dict[str, Any]) -> Jitted:
    return Jitted(f, **options)


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

    It is traced when it is first called with a signature: the structure of the arguments (nested dicts, lists, tuples
    and dataclasses), shape, dtype and device of each tensor, type and value of everything else, and of arguments
    declared static as a whole, which must be hashable.  It is traced again when what it has read has changed: modes and
    attributes of modules, replaced cells, settings of `nnc.config`; variables around the function, attributes of
    objects, items of lists and dicts and elements of host arrays that its code names, in the user's own files and down
    to the functions that it calls, also where attributes are found by strings.  Not watched are what the function
    changes itself, files, variables that `eval` finds, and the state of installed libraries.  Where Python counts,
    draws random numbers or reads a clock for the result there is one JitWarning.  Tensors and cells that it reads from
    outside are read again at each call; cells that it writes are updated in place.

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
        raise AttributeValueError(f"{type(f).__name__} is no function", operator="jit", line=show_line(user_line()),
                                  hint="@nnc.jit(static_argnums=...)")

    def wrap(f: Callable[..., Any]) -> Jitted:
        return Jitted(f, static=(static_argnums, static_argnames), donated=(donate_argnums, donate_argnames),
                      named_dims=named_dims, inline_limit=inline_limit)

    return wrap if f is None else wrap(f)
