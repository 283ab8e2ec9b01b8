"""Einstein summation: two operands at a time, each pair one batched matrix product.

The order of the pairs comes from opt_einsum where that is installed; without it, it is from left to right.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from nnc_core.base.errors import AttributeValueError, OperandError, ShapeError
from nnc_core.functions.diagonals import diagonal_of
from nnc_core.type import DimLike, is_static, promote, whole
from nnc_core.values.argument_checks import mismatch_error
from nnc_core.values.arguments import ArrayLike, as_values, count_of, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = ["einsum"]

Label = Hashable
"""A letter, a number of the user's, or an axis that an ellipsis stands for, counted from the last."""


class _Beyond(NamedTuple):
    """One of the axes that an ellipsis stands for: 1 is the last of them."""

    place: int


class _Term(NamedTuple):
    value: Value
    labels: tuple[Label, ...]


@by_shapes
@names_itself
def einsum(subscripts: Any, /, *operands: Any, optimize: Any = "auto") -> Tensor:
    """Sums of products: "ij,jk->ik" names the axes of each operand and of the result; other axes are summed over.

    Without "->" the result has the axes that are named once, in alphabetical order; "..." stands for axes that are
    broadcast.  Also einsum(a, [0, 1], b, [1, 2], [0, 2]).  Axes of length one are broadcast.  `optimize`: how
    opt_einsum looks for an order of products ("auto", "greedy", "optimal", ... or a path), False for left to right.
    """
    arrays, names, out = _parsed(subscripts, operands)
    return Tensor(_contracted(as_values(*arrays), names, out, optimize))


def _contracted(values: Sequence[Value], names: Any, out: Any, optimize: Any) -> Value:
    terms = [_Term(v, _expanded(n, v)) for v, n in zip(values, names, strict=True)]
    result = _output(out, terms)
    sizes = _sizes(terms)
    if missing := [label for label in result if label not in sizes]:
        raise AttributeValueError(f"{_show(missing)} of the result is in no operand")
    terms = _promoted([_narrowed(t, sizes) for t in terms])
    for step in _path(terms, result, sizes, optimize):
        terms = _step(terms, step, result)
    return _finished(terms[0], result, sizes)


# ---- what is asked for
def _parsed(subscripts: Any, operands: Sequence[Any]) -> tuple[list[ArrayLike], list[list[Label]], list[Label] | None]:
    """The operands, names of their axes with "..." among them, and those of the result, None if it is not given."""
    if not isinstance(subscripts, str):
        given = [subscripts, *operands]
        if len(given) < 2:
            raise OperandError(f"subscripts are {type(subscripts).__name__}", hint='"ij,jk->ik", or einsum(a, [0, 1])')
        out = given.pop() if len(given) % 2 else None
        return given[::2], [_listed(n) for n in given[1::2]], None if out is None else _listed(out)
    text, arrow, after = subscripts.replace(" ", "").partition("->")
    names = [_letters(part) for part in text.split(",")]
    if len(names) != len(operands):
        raise OperandError(f"{subscripts!r} names {len(names)} operands, {len(operands)} are given")
    return list(operands), names, _letters(after) if arrow else None


def _letters(part: str) -> list[Label]:
    before, dots, after = part.partition("...")
    letters = before + after
    if not all(c.isalpha() for c in letters):
        raise AttributeValueError(f"{part!r}: axes have letters for names", hint='"ij,jk->ik"')
    return [*before, *[Ellipsis] * bool(dots), *after]


def _listed(names: Any) -> list[Label]:
    if not isinstance(names, (tuple, list, np.ndarray)):
        raise mismatch_error("names of axes", names, "a list of integers", "einsum(a, [0, 1], b, [1, 2], [0, 2])")
    found: list[Label] = [n if n is Ellipsis else whole(n, "an axis") for n in names]
    if found.count(Ellipsis) > 1:
        raise AttributeValueError(f"{found} has more than one ...")
    return found


def _expanded(names: list[Label], v: Value) -> tuple[Label, ...]:
    """A name for each axis."""
    more = v.ndim - (len(names) - names.count(Ellipsis))
    if more < 0 or (more and Ellipsis not in names):
        raise ShapeError(f"{_show(names)} does not name the axes of {v.spec}")
    return _put_in(names, more)


def _put_in(names: list[Label], count: int) -> tuple[Label, ...]:
    if Ellipsis not in names:
        return tuple(names)
    at = names.index(Ellipsis)
    return (*names[:at], *[_Beyond(count - i) for i in range(count)], *names[at + 1 :])


def _output(out: list[Label] | None, terms: Sequence[_Term]) -> tuple[Label, ...]:
    every = [label for t in terms for label in t.labels]
    beyond = max([label.place for label in every if isinstance(label, _Beyond)], default=0)
    if out is None:
        once = {label for label in every if every.count(label) == 1 and not isinstance(label, _Beyond)}
        return _put_in([Ellipsis, *sorted(once)], beyond)  # type: ignore[type-var]
    if len(set(out)) < len(out):
        raise AttributeValueError(f"{_show(out)} names an axis of the result twice")
    return _put_in(out, beyond)


def _show(labels: Iterable[Label]) -> str:
    return "".join("..." if x is Ellipsis else str(x) if not isinstance(x, _Beyond) else "..." for x in labels)


def _sizes(terms: Sequence[_Term]) -> dict[Label, DimLike]:
    sizes: dict[Label, DimLike] = {}
    for value, labels in terms:
        for label, d in zip(labels, value.shape, strict=True):
            known = sizes.setdefault(label, d)
            if known == 1:
                sizes[label] = d
            elif d not in (1, known):
                raise ShapeError(f"axis {_show([label])} has length {known} and, in {value.spec}, length {d}")
    return sizes


# ---- one operand
def _promoted(terms: list[_Term]) -> list[_Term]:
    dtype = terms[0].value.dtype
    for t in terms[1:]:
        dtype = promote(dtype, t.value.dtype)
    return [t if t.value.dtype == dtype else t._replace(value=F.cast(t.value, dtype=dtype)) for t in terms]


def _narrowed(t: _Term, sizes: dict[Label, DimLike]) -> _Term:
    """Axes of length one that are broadcast dropped, and diagonals taken of axes with one name."""
    value, labels = t
    kept = [i for i, label in enumerate(labels) if value.shape[i] != 1 or sizes[label] == 1]
    if len(kept) < len(labels):
        value = F.reshape(value, shape=tuple([value.shape[i] for i in kept]))
        labels = tuple([labels[i] for i in kept])
    while len(set(labels)) < len(labels):
        i = next(i for i, label in enumerate(labels) if label in labels[:i])
        j = labels.index(labels[i])
        value = diagonal_of(value, 0, j, i)
        labels = (*[label for k, label in enumerate(labels) if k not in (i, j)], labels[i])
    return _Term(value, labels)


def _summed(t: _Term, wanted: set[Label]) -> _Term:
    """Without the axes that nobody else asks for."""
    over = tuple([i for i, label in enumerate(t.labels) if label not in wanted])
    if not over:
        return t
    return _Term(F.sum(t.value, axis=over), tuple([label for label in t.labels if label in wanted]))


def _finished(t: _Term, result: tuple[Label, ...], sizes: dict[Label, DimLike]) -> Value:
    t = _summed(t, set(result))
    there = [label for label in result if label in t.labels]
    value = _ordered(t, there)
    shape = tuple([sizes[label] for label in result])
    if len(there) < len(result):  # of length one in every operand that was left
        value = F.reshape(value, shape=tuple([sizes[label] if label in t.labels else 1 for label in result]))
    return value if value.shape == shape else F.broadcast_to(value, shape=shape)


def _ordered(t: _Term, labels: Sequence[Label]) -> Value:
    axes = tuple([t.labels.index(label) for label in labels])
    return t.value if axes == tuple(range(t.value.ndim)) else F.permute(t.value, axes=axes)


# ---- two operands
def _step(terms: list[_Term], places: Sequence[int], result: tuple[Label, ...]) -> list[_Term]:
    """Some operands replaced by their product, which comes last."""
    chosen = [terms[i] for i in places]
    rest = [t for i, t in enumerate(terms) if i not in places]
    made = chosen[0]
    for k, other in enumerate(chosen[1:], 2):
        wanted = {label for t in (*rest, *chosen[k:]) for label in t.labels} | set(result)
        made = _product(made, other, wanted)
    return [*rest, made]


def _product(a: _Term, b: _Term, wanted: set[Label]) -> _Term:
    a, b = _summed(a, wanted | set(b.labels)), _summed(b, wanted | set(a.labels))
    shared = [label for label in a.labels if label in b.labels]
    batch = [label for label in shared if label in wanted]
    inner = [label for label in shared if label not in wanted]
    left, right = ([label for label in t.labels if label not in shared] for t in (a, b))
    x, y = _ordered(a, (*batch, *left, *inner)), _ordered(b, (*batch, *inner, *right))
    lengths = dict(zip((*a.labels, *b.labels), (*a.value.shape, *b.value.shape), strict=True))
    stacks, rows, columns = (tuple([lengths[label] for label in group]) for group in (batch, left, right))
    if inner:
        k, m, n = (count_of(s) for s in (tuple([lengths[label] for label in inner]), rows, columns))
        value = F.matmul(F.reshape(x, shape=(*stacks, m, k)), F.reshape(y, shape=(*stacks, k, n)))
    else:
        value = F.multiply(F.reshape(x, shape=(*stacks, *rows, *(1,) * len(right))),
                           F.reshape(y, shape=(*stacks, *(1,) * len(left), *columns)))
    return _Term(F.reshape(value, shape=(*stacks, *rows, *columns)), (*batch, *left, *right))


# ---- the order
def _path(terms: Sequence[_Term], result: tuple[Label, ...], sizes: dict[Label, DimLike],
          optimize: Any) -> Sequence[tuple[int, ...]]:
    """The operands multiplied at each step; the product goes to the end of the list."""
    count = len(terms)
    if isinstance(optimize, (list, tuple)):
        return _checked([tuple(step) for step in optimize if not isinstance(step, str)], count)
    if count > 2 and optimize is not False and is_static(tuple(sizes.values())):
        found = _found_by_opt_einsum(terms, result, optimize)
        if found is not None:
            return found
    return [(0, 1), *[(left - 1, 0) for left in range(count - 1, 1, -1)]][: count - 1]


def _found_by_opt_einsum(terms: Sequence[_Term], result: tuple[Label, ...],
                         optimize: Any) -> list[tuple[int, ...]] | None:
    """None where it is not installed."""
    try:
        import opt_einsum
    except ImportError:
        return None
    letters: dict[Label, str] = {}
    for label in (label for t in terms for label in t.labels):
        letters.setdefault(label, opt_einsum.get_symbol(len(letters)))
    inputs = ",".join("".join(letters[label] for label in t.labels) for t in terms)
    output = "".join(letters[label] for label in result if label in letters)
    path, _ = opt_einsum.contract_path(f"{inputs}->{output}", *[t.value.spec.static_shape for t in terms], shapes=True,
                                       optimize="auto" if optimize is True else optimize)
    return _checked([tuple(step) for step in path], len(terms))


def _checked(path: list[tuple[int, ...]], count: int) -> list[tuple[int, ...]]:
    """AttributeValueError unless one operand is left at the end."""
    left = count
    for step in path:
        if not step or len(set(step)) < len(step) or not all(0 <= i < left for i in step):
            raise AttributeValueError(f"path {path}: step {step} of {left} operands")
        left -= len(step) - 1
    if left != 1:
        raise AttributeValueError(f"path {path} leaves {left} of {count} operands")
    return path
