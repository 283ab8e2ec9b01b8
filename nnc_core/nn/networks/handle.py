"""Symbolic handles: what networks are described with before anything is computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

from nnc_core.base.errors import AttributeValueError, OperandError
from nnc_core.nn.inference import as_spec, inferred
from nnc_core.type import DimLike, Specified, TensorSpec
from nnc_core.values.tensor import Tensor
from nnc_core.values.tree import flatten, unflatten

if TYPE_CHECKING:
    from nnc_core.nn.module import Module

_numbers = count()


class Call:
    """A module called on handles: a node of the network to be."""

    def __init__(self, module: Module | None, args: tuple[Any, ...], kwargs: Mapping[str, Any],
                 specs: Sequence[TensorSpec], name: str | None = None) -> None:
        self.module, self.args, self.kwargs, self.name = module, args, dict(kwargs), name
        self.number = next(_numbers)
        """Calls are made after what they take: this is an order."""
        self.outputs = tuple([Handle(self, i, spec) for i, spec in enumerate(specs)])
        self.result: Any = None
        """The outputs as forward arranges them."""

    def inputs(self) -> list[Handle]:
        """The handles among the arguments."""
        return [x for x in flatten((self.args, self.kwargs))[0] if isinstance(x, Handle)]


def _operator(name: str, swapped: bool = False) -> Callable[..., Handle]:
    def method(self: Handle, other: Any) -> Handle:
        if not isinstance(other, (Handle, int, float)):
            return NotImplemented  # type: ignore[no-any-return]
        assert Handle._function is not None
        function = Handle._function(name)
        made: Handle = function(other, self) if swapped else function(self, other)
        return made

    return method


class Handle(Specified):
    """A future result of a module: its shape and dtype, known as soon as the module was called.

    Arithmetic with handles and numbers is recorded as well.
    """

    __slots__ = ("call", "index", "spec")
    _function: ClassVar[Callable[[str], Callable[..., Any]] | None] = None
    operand_hint = "wrap the function: nn.Function('tanh')(handle), or nn.Lambda(f)(handle)"

    def __init__(self, call: Call, index: int, spec: TensorSpec) -> None:
        self.call, self.index, self.spec = call, index, spec

    @staticmethod
    def register_functions(function: Callable[[str], Callable[..., Any]]) -> None:
        """Say what makes a module of a function's name, for arithmetic: modules know handles, not handles modules."""
        Handle._function = staticmethod(function)

    def named(self, name: str) -> Self:
        """Give the node that this is a result of a name; the same handle."""
        if not isinstance(name, str) or not name or set(".:@/") & set(name):
            raise AttributeValueError(f"{name!r} is no name of a node", hint="a text without any of . : @ /")
        self.call.name = name
        return self

    def __repr__(self) -> str:
        kind = "Input" if self.call.module is None else type(self.call.module).__name__
        return f"<handle {self.call.name or kind} {self.spec}>"

    # ---- arithmetic
    __add__, __radd__ = _operator("add"), _operator("add", swapped=True)
    __sub__, __rsub__ = _operator("subtract"), _operator("subtract", swapped=True)
    __mul__, __rmul__ = _operator("multiply"), _operator("multiply", swapped=True)
    __truediv__, __rtruediv__ = _operator("divide"), _operator("divide", swapped=True)
    __pow__, __rpow__ = _operator("pow"), _operator("pow", swapped=True)
    __matmul__ = _operator("matmul")

    def __neg__(self) -> Handle:
        negated: Handle = self * -1
        return negated

    # ---- what a handle is not
    def _refuse(self, what: str) -> NoReturn:
        raise OperandError(f"{self!r} has no elements: {what}", hint=self.operand_hint)

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        self._refuse("it cannot be made an array")

    def __bool__(self) -> NoReturn:
        self._refuse("Python cannot branch on it")

    def __iter__(self) -> NoReturn:
        self._refuse("it cannot be taken apart")


class Input(Handle):
    """An input of a network: `Input((28, 28, 1))` is a batch of images.

    The batch comes first: any number of examples, called "batch" (the same for all inputs that call it so), or a
    number, or with batch=None none at all: the shape is whole then.  Sizes may be names.
    """

    __slots__ = ()

    def __init__(self, shape: Sequence[DimLike | str], dtype: Any = None, *, name: str | None = None,
                 batch: int | str | None = "batch") -> None:
        if not isinstance(shape, (tuple, list)):
            raise OperandError(f"{shape!r} is no shape", operator="Input", hint="give a tuple such as (28, 28, 1)")
        first = () if batch is None else (batch,)
        spec = as_spec((*first, *shape), dtype)
        super().__init__(Call(None, (), {}, ()), 0, spec)
        self.call.outputs = (self,)
        if name is not None:
            self.named(name)


def has_handles(args: Sequence[Any]) -> bool:
    """Tell whether a handle is among arguments, or within lists and the like."""
    for x in args:
        if x.__class__ is Tensor:
            continue
        if isinstance(x, Handle):
            return True
        if isinstance(x, (list, tuple)) and has_handles(x):
            return True
        if isinstance(x, dict) and has_handles(tuple(x.values())):
            return True
    return False


def recorded(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """A node of a network, and the handles of what it will give, arranged as forward gives it."""
    leaves, structure = flatten((args, dict(kwargs)), sort=False)
    given = unflatten(structure, iter([x.spec if isinstance(x, Handle) else x for x in leaves]))
    specs, shape = flatten(inferred(module, *given))
    for x in specs:
        if not isinstance(x, TensorSpec):
            raise OperandError(f"it gave a {type(x).__name__}, what stands in a network gives tensors",
                               operator=type(module).__name__)
    call = Call(module, args, kwargs, specs)
    call.result = unflatten(shape, iter(call.outputs))
    return call.result
