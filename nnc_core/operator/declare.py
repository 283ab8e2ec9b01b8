"""Declaring operators: a method of a namespace class, with its rules beside it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Protocol, TypeVar, cast

from nnc_core.base.dtype import DType, is_inexact, is_storage
from nnc_core.base.errors import Error, OperandError
from nnc_core.symbol import float_attribute
from nnc_core.type import Attributes, Dims, Op, TensorSpec, default_float, default_for, promote, promote_number


class Valued(Protocol):
    """The interface of values that rules rely on; Node and Tensor have it."""

    @property
    def spec(self) -> TensorSpec: ...
    @property
    def shape(self) -> Dims: ...
    @property
    def dtype(self) -> DType: ...
    @property
    def ndim(self) -> int: ...


V = TypeVar("V", bound=Valued)
Method = TypeVar("Method", bound=Callable[..., Any])
OPERATORS: dict[str, Op] = {}
"""Every declared operator by name."""

ALL_INPUTS = (-1,)


class Base(Generic[V]):
    """A namespace over one kind of value.  `apply`, `number` and `is_value` are all that differs between kinds."""

    def apply(self, op: Op, inputs: tuple[V | float, ...], attributes: Attributes) -> V:
        raise NotImplementedError

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            """Answer rules that take a public function for an operator (`square`, `mean`)."""
            raise AttributeError(f"there is no operator {name!r}: docs/operators.md lists those that rules may use",
                                 name=name, obj=self)

    def number(self, value: Any, dtype: DType, like: V | None) -> V:
        """A Python number as a value of shape ()."""
        raise NotImplementedError

    def is_value(self, x: Any) -> bool:
        raise NotImplementedError

    def for_bodies(self, like: V) -> Any:
        """A namespace over nodes, to build the bodies of control flow on the device of `like`."""
        raise NotImplementedError

    def at_line_of(self, value: V) -> None:
        """Give what is made next the line of `value`."""

    def operands(self, op: Op, inputs: tuple[V | float, ...]) -> tuple[V, ...]:
        """Python numbers made values, and the inputs that the operator promotes brought to one dtype."""
        group = range(len(inputs)) if op.promote == ALL_INPUTS else op.promote
        like = next((x for x in inputs if self.is_value(x)), None)
        dtype = self._common_dtype(op, [inputs[i] for i in group]) if group else None
        out: list[V] = []
        for i, x in enumerate(inputs):
            if not self.is_value(x):
                wanted = dtype if dtype is not None and i in group else self._dtype_of_number(op, x)
                out.append(self.number(x, wanted, cast("V | None", like)))
            elif dtype is not None and i in group and cast(V, x).dtype != dtype:
                out.append(self.cast(x, dtype=dtype))  # type: ignore[attr-defined]
            else:
                out.append(cast(V, x))
        return tuple(out)

    def _common_dtype(self, op: Op, group: list[V | float]) -> DType:
        try:
            return self._promoted(op, group)
        except Error as error:
            error.locate(operator=op.name)
            raise

    def _promoted(self, op: Op, group: list[V | float]) -> DType:
        common: DType | None = None
        for x in group:
            if self.is_value(x):
                mine = cast(V, x).dtype
                common = mine if common is None else promote(common, mine)
        for x in group:
            if not self.is_value(x):
                common = self._dtype_of_number(op, x) if common is None else promote_number(common, x)
        assert common is not None
        return default_float() if op.to_float and not (is_inexact(common) or is_storage(common)) else common

    def _dtype_of_number(self, op: Op, x: Any) -> DType:
        try:
            return default_for(x)
        except OperandError as error:
            error.locate(operator=op.name)
            raise


def op(*, infer: Callable[..., TensorSpec], composite: bool = False, **rules: Any) -> Callable[[Method], Method]:
    """Declare a method as an operator.

    Positional parameters are inputs, keyword-only ones attributes; the rules are the fields of `Op`.  The body of a
    composite is its decomposition, any other body is empty.  The signature is compiled once into a function that only
    calls `apply`, so that no call binds arguments at run time.
    """

    def declare(body: Method) -> Method:
        parameters = list(inspect.signature(body).parameters.values())[1:]
        inputs = ["*" * (p.kind is p.VAR_POSITIONAL) + p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]
        attributes = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
        name = body.__name__.rstrip("_")
        if composite:
            rules["decompose"] = _decomposition(body, attributes)
        defaults = {p.name: float_attribute(p.default) for p in parameters
                    if p.kind is p.KEYWORD_ONLY and p.default is not p.empty}
        made = Op(name, tuple(inputs), tuple(attributes), infer, doc=inspect.getdoc(body) or "", defaults=defaults,
                  **rules)
        OPERATORS[name] = made
        return cast(Method, _compiled(body, made, parameters))

    return declare


def _decomposition(body: Callable[..., Any], attributes: list[str]) -> Callable[..., Any]:
    def decompose(F: Any, *arguments: Any) -> Any:
        split = len(arguments) - len(attributes)
        return body(F, *arguments[:split], **dict(zip(attributes, arguments[split:], strict=True)))

    return decompose


def _compiled(body: Callable[..., Any], made: Op, parameters: list[inspect.Parameter]) -> Callable[..., Any]:
    scope: dict[str, Any] = {"op": made, "float_attribute": float_attribute}
    signature, keyword = ["self"], False
    for p in parameters:
        if p.kind is p.KEYWORD_ONLY and not keyword and not made.variadic:
            signature.append("*")
        keyword = p.kind is p.KEYWORD_ONLY
        text = ("*" if p.kind is p.VAR_POSITIONAL else "") + p.name
        if p.default is not p.empty:
            scope[f"_{p.name}"] = p.default
            text += f"=_{p.name}"
        signature.append(text)
    inputs = "".join(f"{i}, " for i in made.inputs)
    floats = {p.name for p in parameters if p.annotation in (float, "float")}
    attributes = "".join(f"float_attribute({a}), " if a in floats else f"{a}, " for a in made.attributes)
    source = f"def method({', '.join(signature)}): return self.apply(op, ({inputs}), ({attributes}))"
    exec(compile(source, __file__, "exec"), scope)  # this file's name, so that it is no line of the user's
    method: Any = scope["method"]
    method.__name__, method.__qualname__, method.__doc__ = body.__name__, body.__qualname__, body.__doc__
    method.op = made
    return cast("Callable[..., Any]", method)
