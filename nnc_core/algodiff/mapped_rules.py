"""The rule of a custom derivative on many examples at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nnc_core.algodiff.custom_rules import Rule
from nnc_core.control.vmap import examples
from nnc_core.type import DimLike, TensorSpec, TupleSpec
from nnc_core.values.dispatch import F
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value


@dataclass(frozen=True, repr=False)
class MappedRule(Rule):
    """The rule `one` of a call that `vmap` makes for `size` examples at once.

    Results have the examples along a first axis, and so do the operands that are `batched`; the others are the same
    for every example, so that their cotangents are sums.
    """

    one: Rule
    batched: tuple[bool, ...]
    size: DimLike

    def reverse(self, given: Sequence[Value]) -> list[Value | None]:
        """Cotangents of the arguments, each of its argument's shape."""
        flags = [True] * len(self.spec.parts) + list(self.batched)
        found = self._of_examples(self.one.reverse, given, flags)
        return [g if g is None or b else F.sum(g, axis=(0,))
                for g, b in zip(found, self.batched[: self.arguments], strict=True)]

    def forward(self, given: Sequence[Value]) -> list[Value | None]:
        """Tangents of the results."""
        own = self.batched[: self.arguments]
        return self._of_examples(self.one.forward, given, [*own, *own])

    def _of_examples(self, rule: Callable[[Sequence[Value]], list[Value | None]], given: Sequence[Value],
                     flags: Sequence[bool]) -> list[Value | None]:
        def of_one(*tensors: Tensor) -> tuple[Tensor | None, ...]:
            return tuple([None if v is None else Tensor(v) for v in rule([t._value for t in tensors])])

        if not any(flags):  # tangents of what is the same for all examples: so is the result
            return [v if v is None else F.broadcast_to(v, shape=(self.size, *v.shape)) for v in rule(given)]
        return [None if t is None else t._value for t in examples(of_one, given, flags, self.size)]


def mapped_rule(one: Rule, batched: tuple[bool, ...], size: DimLike) -> MappedRule:
    """`one` for this many examples."""
    wider = TupleSpec(tuple([TensorSpec((size, *part.shape), part.dtype) for part in one.spec.parts]))
    return MappedRule(one.f, one.structure, one.leaves, wider, one.results, one, batched, size)
