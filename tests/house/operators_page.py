"""docs/operators.md, made from the declarations: `python -m tests.house.operators_page` writes it."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import nnc_core as nnc
from nnc_core.base import dtype as dt
from nnc_core.base.dtype import DType
from nnc_core.operator import Namespace
from nnc_core.type import Op
from nnc_core.values.tree import flatten
from nnc_plugins.conformance.cases import admitted_dtypes
from tests.house.made_of import made_of, operator_of
from tests.house.nnc_commands import NNC
from tests.house.owl_names import NAMES
from tests.house.owl_operators import OWL
from tests.house.rows import Row, public
from tests.tensors.recording.test_exported_functions import KINDS, TAKE_ONE, tensors

PAGE = Path(__file__).parents[2] / "docs" / "operators.md"
HEAD = """# Operators

Made from the declarations by `python -m tests.house.operators_page`; a test compares.  What a column says is held by
tests: dtypes by `tests/operator/test_specs.py`, derivatives by `tests/graph`, how it lowers by
`tests/operator/test_nests.py`, Owl's and NNC's names by `tests/house/test_owl_operators.py` and
`tests/house/test_nnc_commands.py`, which run each.

- **Derivatives**: of any order, as rules are made of operators.  *linear*: in all operands together, or in each while
  the others are held, which gives forward mode; *partials*: elementwise derivatives, which give both modes; *vjp, jvp*:
  a rule for each mode; *decomposition*: those of what it is made of; *zero*: piecewise constant; *none*: an error.
- **Lowers to**: *expression*: elementwise, fused with its neighbours; *nest*: a loop nest, which any device compiles;
  *composite*: other operators, unless a device takes it whole; *host*: NumPy or LAPACK, announced on other devices.
- **Flags**: *exact*: the same bits on every device; *promotes*: brings operands to one dtype; *to float*: integers
  become floats; *in place 0, 1*: the result may take over that operand's memory; *view*: no copy where strides can say
  it; *data-dependent*: the length of the result depends on data.
"""
GROUPS: tuple[tuple[str, Sequence[DType]], ...] = (
    ("bool", (dt.boolean,)), ("int", dt.INTEGERS), ("float", dt.FLOATS), ("complex", dt.COMPLEX),
    ("storage", dt.STORAGE),
)  # fmt: skip
BESIDES = frozenset(("placeholder", "constant", "filled", "pick", "identity"))
"""Nodes that are no part of what a function is made of."""


# ---- cells
def signature(name: str, parameters: Iterable[inspect.Parameter]) -> str:
    """Without annotations."""
    shown = [p.replace(annotation=inspect.Parameter.empty) for p in parameters if p.name != "self"]
    return f"`{name}{inspect.Signature(shown, __validate_parameters__=False)}`"


def dtypes(admitted: frozenset[DType]) -> str:
    """Whole groups by their names, parts of them by those of the dtypes."""
    shown: list[str] = []
    for group, members in GROUPS:
        mine = [d for d in members if d in admitted]
        shown += [group] if len(mine) == len(members) else [d.name for d in mine]
    return ", ".join(shown)


def derivatives(op: Op) -> str:
    if not op.differentiable:
        return "zero"
    if op.vjp is not None and op.vjp is op.jvp:  # one rule cannot be both: it refuses
        return "none"
    if op.linear and op.vjp is None and not op.partials:
        return f"linear {op.linear}"
    if op.vjp is not None:
        return "vjp, " + (f"linear {op.linear}" if op.linear else "jvp")
    if op.partials:
        return "partials" + f", linear {op.linear}" * bool(op.linear)
    return "decomposition" if op.decompose is not None else "none"


def lowering(op: Op) -> str:
    ways = {"expression": op.scalar, "nest": op.nest, "composite": op.decompose}
    return ", ".join([way for way, rule in ways.items() if rule is not None] or ["host"])


def flags(op: Op) -> str:
    said = {"exact": op.exact, "commutative": op.commutative, "promotes": bool(op.promote), "to float": op.to_float,
            f"in place {', '.join(map(str, op.inplace))}": bool(op.inplace), "view": op.view is not None,
            "random": op.random, "host": op.host, "data-dependent": op.data_dependent}
    return ", ".join(flag for flag, holds in said.items() if holds)


def first_sentence(text: str | None) -> str:
    """Up to the end of the first paragraph's first sentence, in one line, fit for a table."""
    paragraph = " ".join((text or "").partition("\n\n")[0].split())
    return paragraph.replace("|", "\\|")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


# ---- operators
def families() -> Iterator[tuple[type, list[Any]]]:
    """Classes of declarations and their methods."""
    for family in Namespace.__mro__:
        methods = [m for m in vars(family).values() if hasattr(m, "op")]
        if methods:
            yield family, methods


def recorded(row: Row) -> frozenset[str]:
    """The operators in a row's graph; all in one that is compiled, which composites are taken apart in, if it cannot
    be recorded otherwise."""
    xs = [nnc.asarray(x) for x in row.inputs]
    try:
        with nnc.deferred():
            made = flatten(row.run(*xs))[0]
        graph = nnc.export({f"x{i}": x for i, x in enumerate(xs)}, {f"y{i}": y for i, y in enumerate(made)},
                           on_unused="ignore", capture="constant")
    except nnc.errors.Error:
        graph = nnc.jit(lambda *xs: row.run(*xs)).lower(*xs).graph
    return frozenset(node.op.name for node in graph.nodes) - BESIDES


def _rows() -> Iterator[tuple[str, str, Row]]:
    yield from (("Owl", name, OWL[name]) for name in NAMES)
    for name, command in NNC.items():
        yield "NNC", name, command.forward


@cache
def parents() -> dict[str, dict[str, list[str]]]:
    """By operator and parent the names of what is that operator and nothing else."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for parent, name, row in _rows():
        if not row.eager_only and len(ops := recorded(row)) == 1:
            found[next(iter(ops))][parent].append(f"`{name}`")
    return found


def operator_row(method: Any) -> list[str]:
    op: Op = method.op
    names = parents().get(op.name, {})
    return [signature(op.name, inspect.signature(method).parameters.values()), first_sentence(op.doc),
            dtypes(admitted_dtypes(op.name)), derivatives(op), lowering(op), flags(op),
            *(", ".join(names.get(parent, ())) for parent in ("Owl", "NNC"))]


def operators() -> Iterator[str]:
    head = ("operator", "what", "dtypes", "derivatives", "lowers to", "flags", "Owl", "NNC")
    for family, methods in families():
        yield f"\n### {family.__name__}: `nnc_core/operator/{family.__module__.rpartition('.')[2]}.py`\n"
        yield from table(head, map(operator_row, methods))


# ---- public functions
@cache
def traced(name: str) -> frozenset[str]:
    """The operators that a function of one array records."""
    with nnc.deferred():
        x = nnc.asarray(KINDS[TAKE_ONE[name]][0](3))
        results = tensors(public(name)(x))
    graph = nnc.export({"x": x}, {f"y{i}": y for i, y in enumerate(results)}, on_unused="ignore")
    return frozenset(node.op.name for node in graph.nodes) - BESIDES


def function_row(name: str) -> list[str]:
    f = public(name)
    known = set(made_of(f)) | (traced(name) if name in TAKE_ONE else frozenset())
    op = operator_of(f)
    what = "the operator" if op is not None else ", ".join(f"`{o}`" for o in sorted(known))
    drawn = "generator" in inspect.signature(f).parameters
    return [signature(name, inspect.signature(f).parameters.values()), what + ", random numbers" * drawn]


def compositions() -> Iterator[str]:
    """Public functions that are more than one operator."""
    found = defaultdict(list)
    for prefix, space in (("", nnc), ("linalg.", nnc.linalg), ("fft.", nnc.fft)):
        for name in space.__all__:
            f = getattr(space, name)
            module = getattr(inspect.unwrap(f), "__module__", "") if inspect.isfunction(f) else ""
            if module.startswith("nnc_core.functions.") and operator_of(f) is None:
                found[module.rpartition(".")[2]].append(prefix + name)
    for module in sorted(found):
        yield f"\n### `nnc_core/functions/{module}.py`\n"
        yield from table(("function", "made of"), map(function_row, sorted(found[module])))


# ---- the parents
def owl() -> Iterator[str]:
    yield from table(("Owl", "here", "remark"), ([f"`{n}`", f"`{OWL[n].ours}`", OWL[n].note] for n in NAMES))


def nnc_commands() -> Iterator[str]:
    rows = []
    for name in sorted(NNC):
        forward, backward = NNC[name]
        also = backward.forward
        gradient = backward.why_not or (f"`{also.ours}`: {also.note}" if also else "its gradient")
        rows.append([f"`{name}`", f"`{forward.ours}`", forward.note, gradient])
    yield from table(("NNC", "forward", "remark", "backward"), rows)


def page() -> str:
    parts = [HEAD, "## Operators", *operators(), "\n## Functions made of operators\n",
             "What each may be made of, over all its options; those that are one operator are not listed.",
             *compositions(), "\n## Owl's operators\n", *owl(), "\n## NNC's commands\n", *nnc_commands()]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    print(f"{PAGE} written")
