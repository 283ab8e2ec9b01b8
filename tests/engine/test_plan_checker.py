"""The checker of plans checks: what is broken on purpose is found, however it is broken."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.config import config
from nnc_core.base.record import Call, JumpIf, Record, Repeat, RotatePointer, Switch, TapeRead, Window
from nnc_core.engine import ComputationGraph
from nnc_core.engine.body_copies import BodyCopies
from nnc_core.engine.plan import CommandPlanner
from tests.engine.plan_checker import PlanError, check_plan
from tests.engine.plans import lowered

X = np.linspace(-1, 1, 16, dtype=np.float32)
ROWS = np.linspace(-1, 1, 8 * 16, dtype=np.float32).reshape(8, 16)
Change = Callable[[Any], Any]


def chain(x: Any) -> Any:
    a, b = nnc.exp(x), nnc.sin(x)
    return nnc.sum(nnc.flip(a) + b * b)


def scanned(x: Any) -> Any:
    return nnc.scan(lambda c, row: (nnc.flip(c) * row, nnc.sin(c)), x[0], x)[1]


def shifted(x: Any) -> Any:
    """Nine carried values move by one in each round: too many states to be written out."""
    return nnc.scan(lambda c, _: ((*c[1:], nnc.flip(c[0]) * 0.5), None), tuple(x + k for k in range(9)), length=20)[0]


def while_small(x: Any) -> Any:
    return nnc.while_loop(lambda i, v: (i < 3) & (nnc.sum(v) < 9), lambda i, v: (i + 1, nnc.flip(nnc.sin(v))),
                          (nnc.asarray(0), x))[1]


def slope(x: Any) -> Any:
    return nnc.grad(lambda y: nnc.sum(while_small(nnc.sin(y))))(x)


def chosen(x: Any) -> Any:
    return nnc.cond(nnc.sum(x) > 0, lambda v: nnc.flip(v) * 2, lambda v: nnc.sin(v) + nnc.flip(v), x) * x


def transposed(x: Any) -> Any:
    y = nnc.exp(x.reshape(4, 4))
    return nnc.sum(y + y.T, axis=0)


# ---- records
def changed(records: tuple[Record, ...], kind: type, change: Change, run: ComputationGraph) -> tuple[Record, ...]:
    """Every record of a kind changed, in inner lists too; calls keep what is known of them."""
    found: list[Record] = []
    for record in records:
        new: Any = record
        if isinstance(record, Repeat):
            new = dataclasses.replace(record, records=changed(record.records, kind, change, run))
        if isinstance(record, kind):
            new = change(new)
        if new is not None:
            found.append(new)
    return tuple(found)


BROKEN: dict[str, tuple[Callable[..., Any], Any, type, Change]] = {
    "a window elsewhere": (scanned, ROWS, Window, lambda r: dataclasses.replace(r, offset=0, step=0)),
    "rows from the end": (scanned, ROWS, Window, lambda r: dataclasses.replace(r, step=-r.step, offset=7 * 64)
                          if r.step else r),
    "a round too few": (shifted, X, Repeat, lambda r: dataclasses.replace(r, count=r.count - 1)),
    "a round too many": (shifted, X, Repeat, lambda r: dataclasses.replace(r, count=r.count + 1)),
    "pointers that stay": (shifted, X, RotatePointer, lambda r: None),
    "pointers that go the other way": (shifted, X, RotatePointer, lambda r: RotatePointer(r.slots[::-1])),
    "a condition turned round": (while_small, X, JumpIf, lambda r: dataclasses.replace(r, when=not r.when)),
    "a tape from its other end": (slope, X, TapeRead, lambda r: dataclasses.replace(r, reverse=not r.reverse)),
    "branches exchanged": (chosen, X, Switch, lambda r: dataclasses.replace(r, targets=r.targets[::-1])
                           if r.otherwise < 0 else dataclasses.replace(r, targets=(r.otherwise,),
                                                                       otherwise=r.targets[0])),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_record_that_does_something_else_is_found(name: str) -> None:
    f, x, kind, change = BROKEN[name]
    run = lowered(f, x)
    assert check_plan(run)
    records = changed(run.records, kind, change, run)
    assert records != run.records
    with pytest.raises(PlanError):
        check_plan(run, records)


@pytest.mark.parametrize("f", [chain, while_small, chosen])
def test_a_command_left_out_is_found(f: Callable[..., Any]) -> None:
    run = lowered(f, X)
    for k, record in enumerate(run.records):
        if isinstance(record, Call):
            jump = JumpIf(record.slots[-1], True, k + 1)  # goes on behind it either way: targets stay as they are
            with pytest.raises(PlanError):
                check_plan(run, (*run.records[:k], jump, *run.records[k + 1 :]))


@pytest.mark.parametrize("f", [chain, while_small, chosen])
def test_commands_that_read_elsewhere_are_found(f: Callable[..., Any]) -> None:
    """Any two slots of a call exchanged."""
    run = lowered(f, X)
    for call in [r for r in run.records if isinstance(r, Call) and r.slots[0] != r.slots[-1]]:
        slots = call.slots
        object.__setattr__(call, "slots", (slots[-1], *slots[1:-1], slots[0]))
        with pytest.raises(PlanError):
            check_plan(run)
        object.__setattr__(call, "slots", slots)
    assert check_plan(run)


# ---- plans
@pytest.mark.parametrize("f", [chain, slope, chosen])
def test_living_values_in_one_place_are_found(f: Callable[..., Any]) -> None:
    run = lowered(f, X)
    for storage in run.plan.arena:
        storage.offset = 0
    with pytest.raises(PlanError):
        check_plan(run)


def test_an_input_that_is_overwritten_is_found() -> None:
    run = lowered(chain, X)
    (slot,) = run._slots.inputs.values()
    first = next(r for r in run.records if isinstance(r, Call))
    object.__setattr__(first, "slots", (*first.slots[:-1], slot))
    with pytest.raises(PlanError, match=r"operand|lie"):
        check_plan(run)


def test_in_place_without_consent_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_plan(lowered(transposed, X))
    monkeypatch.setattr(CommandPlanner, "_may_share", lambda self, step, storage, output: True)
    with pytest.raises(PlanError):
        check_plan(lowered(transposed, X))


def test_branches_that_share_nodes_with_their_way_back_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """How the gradients of branches were wrong once: the result of the branch went where the cotangent was."""
    monkeypatch.setattr(BodyCopies, "own", lambda self, group: group)

    def loss(x: Any) -> Any:
        return nnc.sum(nnc.square(nnc.cond(nnc.sum(x) > 9, lambda v: v, nnc.exp, x)))

    with pytest.raises(PlanError, match="does not lie where it is read"):
        check_plan(lowered(nnc.grad(loss), X))


def test_bits_seen_as_booleans_are_computed() -> None:
    """Other bitcasts move elements; alone, this one is a command of an operator that has views."""
    with config.using(fusion=False):
        assert check_plan(lowered(lambda x: nnc.bitcast(x, "bool"), np.arange(4, dtype=np.uint8)))


def test_programs_that_are_too_long_are_left_alone() -> None:
    run = lowered(lambda x: nnc.scan(lambda c, _: (nnc.sin(c), None), x, length=100_000)[0], X)
    assert not check_plan(run)
