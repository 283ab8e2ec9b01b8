"""The record of an operator: everything that floors and devices may know of it, in one place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from nnc_core.base.command import Command
from nnc_core.base.layout import Layout
from nnc_core.base.loopnest import LoopNest
from nnc_core.type.index_range import IndexRange
from nnc_core.type.spec import TensorSpec

Attributes: TypeAlias = tuple[Any, ...]
"""Hashable values, in the order of the declaration."""
Rule: TypeAlias = Callable[..., Any]


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """Rules take the inputs, then the attributes in order; those that compute also take the namespace F first."""

    name: str
    inputs: tuple[str, ...]
    """Names of the inputs; a last one that begins with * takes any number."""
    attributes: tuple[str, ...]
    infer: Callable[..., TensorSpec]
    """(*specs, *attributes) -> spec of the result."""
    reference: Callable[..., Any] | None = None
    """NumPy: (*arrays, *attributes) -> array.  What every kernel is held to; folds constants."""
    doc: str = ""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Attributes that need not be given, as those that came later in files of before; with their values."""

    partials: tuple[Rule | int | None, ...] = ()
    """Partial derivatives: for each input (F, y, *inputs, *attributes) -> the derivative by it, elementwise;
    or 1, -1, or None for zero."""
    vjp: Rule | tuple[Rule | None, ...] | None = None
    """Reverse rules: for each input (F, g, y, *inputs, *attributes) -> its cotangent, None for zero; or one
    rule that gives all, functions without arguments in place of those that are costly and seldom wanted."""
    jvp: Rule | None = None
    """(F, tangents, y, *inputs, *attributes) -> the tangent of y; a tangent may be None, which means zero."""
    linear: str = ""
    """"jointly" in all inputs, or "each" input when the others are held; gives the jvp."""
    differentiable: bool = True
    """False: the result is piecewise constant, its derivative zero."""

    scalar: Rule | None = None
    """(*scalars, *attributes) -> scalar: the elementwise expression, from which the loop nest is made."""
    nest: Callable[[Command], LoopNest] | None = None
    decompose: Rule | None = None
    """(F, *inputs, *attributes): a composite's body."""
    view: Callable[..., Layout | None] | None = None
    """(layout, *attributes) -> the result as a view of the input's storage, None where it is none."""

    flops: Callable[[Command], float] | None = None
    """Arithmetic operations of a command, where its nest, scalar expression or body does not tell; see `cost_of`."""
    source: Callable[..., Any] | None = None
    """(index of each axis of the result, shape of the input, *attributes) -> index of each axis of the input, where an
    element comes from; None where no sum of multiples says it."""

    promote: tuple[int, ...] = field(default=())
    """Inputs that are brought to one dtype, Python numbers included; (-1,) means all of them."""
    to_float: bool = False
    """Promoted inputs that are integers or booleans become floats of the default dtype."""
    inplace: tuple[int, ...] = ()
    """Inputs whose memory the result may take over."""
    commutative: bool = False
    exact: bool = False
    """Every right kernel gives the same bits: movement, integers, correctly rounded arithmetic."""
    storage: bool = False
    """Takes and gives storage dtypes too, as what only moves elements does; they are refused elsewhere."""
    random: bool = False
    bodies: bool = False
    """Attributes are bodies, or tuples of bodies: transforms of graphs go into them."""
    host: bool = False
    """Runs on the host by nature."""
    virtual: bool = False
    """Its results are never computed: they are there for their derivatives."""
    fallible: bool = False
    """Raises for some values of its operands, as a singular matrix has no inverse."""
    indices: Callable[..., IndexRange] | None = None
    """(shapes, *attributes) -> the operand that holds indices, and which there are: for `config.check_indices`."""
    notes: bool = False
    """Its loop nest notes an index that is not in range, where it is asked to."""
    control_dependency: bool = False
    """The first operand is handed on after the others, the tokens, have been computed."""
    data_dependent: bool = False
    """The length of the result's first axis depends on data: the attribute `size` holds it, a number or, until the
    operator has run, a symbolic size."""

    @property
    def variadic(self) -> bool:
        return bool(self.inputs) and self.inputs[-1].startswith("*")

    @property
    def names_dtype(self) -> bool:
        """True if the attribute `dtype` says what the result is; otherwise its dtype follows from the inputs'."""
        return "dtype" in self.attributes

    @property
    def elementwise(self) -> bool:
        return self.scalar is not None

    def __repr__(self) -> str:
        return f"<op {self.name}>"
