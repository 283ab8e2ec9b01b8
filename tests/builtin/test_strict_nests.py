"""Loop nests that break the rules of their form are refused by strict devices."""

from __future__ import annotations

import pytest

from nnc_core.base import dtype as dt
from nnc_core.base.errors import (
    AttributeValueError,
)
from nnc_core.base.loopnest import Access, Argument, Instruction, LoopNest, Reduction, Stage, Subscript

# Loop nests that break the rules of their form

F, B = dt.float32, dt.boolean
ONE = Instruction("constant", F, literal=1.0)
AT = Access(0, 0, ())
STORE = Instruction("store", F, (0,), access=AT)
BROKEN = {
    "cannot see": (Instruction("negative", F, (1,)),),
    "no operation 'sech'": (ONE, Instruction("sech", F, (0,))),
    "add of 1 operands": (ONE, Instruction("add", F, (0,))),
    "add of float32, int64": (ONE, Instruction("axis", dt.int64, axis=0), Instruction("add", F, (0, 1))),
    "gives bool, not float32": (ONE, Instruction("less", F, (0, 0))),
    "negative of float32 gives float32, not int32": (ONE, Instruction("negative", dt.int32, (0,))),
    "select by float32": (ONE, Instruction("select", F, (0, 0, 0))),
    "bitcast of float32 to int64": (ONE, Instruction("bitcast", dt.int64, (0,))),
    "axis 3 as int64 of 1 axes": (Instruction("axis", dt.int64, axis=3),),
    "argument 1, which there is not": (ONE, STORE._replace(access=Access(1, 0, ()))),
    "load as int32": (Instruction("load", dt.int32, access=AT),),
    "add has an access": (ONE, Instruction("add", F, (0, 0), access=AT)),
    r"store of \[dtype\('bool'\)\]": (Instruction("constant", B, literal=True), STORE),
    "along axes": (Instruction("load", F, access=Access(0, 0, (Subscript(0, ((1, 1),), 1),))),),
    "an index by 0": (Instruction("load", F, access=Access(0, 0, (Subscript(0, (), 1, divisor=0),))),),
    "visible integer": (ONE, Instruction("load", F, access=Access(0, 0, (Subscript(0, (), 1, gather=0),)))),
}


@pytest.mark.parametrize("reason", BROKEN)
def test_a_broken_nest_is_refused(plain, reason) -> None:
    nest = LoopNest("broken", (Argument(F, True),), (4,), (Stage((), BROKEN[reason]),))
    with pytest.raises(AttributeValueError, match=f"loop nest broken: .*{reason}"):
        plain.compile(nest)


@pytest.mark.parametrize(("reduction", "reason"), [
    (Reduction("median", 0, F), "no reduction"), (Reduction("sum", 5, F), "cannot see"),
    (Reduction("argmax", 0, F), "gives int64, not float32"), (Reduction("sum", 0, dt.int64), "gives float32"),
    (Reduction("recurrence", 0, F), "recurrence with factor None"), (Reduction("sum", 0, F, 0), "sum with factor 0"),
    (Reduction("recurrence", 0, F, 7), "folds value 7, which it cannot see"),
])  # fmt: skip
def test_a_broken_reduction_is_refused(plain, reduction, reason) -> None:
    with pytest.raises(AttributeValueError, match=reason):
        plain.compile(LoopNest("broken", (), (), (Stage((3,), (ONE,), (reduction,)),)))


def test_values_of_an_inner_body_are_seen_in_it_only(plain) -> None:
    stages = (Stage((3,), (ONE,), (Reduction("sum", 0, F),)), Stage((), (STORE._replace(operands=(1,)),)))
    plain.compile(LoopNest("right", (Argument(F, True),), (), stages))
    wrong = (stages[0], Stage((), (STORE,)))
    with pytest.raises(AttributeValueError, match="cannot see"):
        plain.compile(LoopNest("wrong", (Argument(F, True),), (), wrong))


def test_what_is_folded_so_far_is_seen_by_running_instructions(plain) -> None:
    total, double = Reduction("sum", 0, F), Instruction("add", F, (0, 1))
    write = STORE._replace(operands=(2,))
    scan = Stage((3,), (ONE,), (total,), (double, write))
    plain.compile(LoopNest("scan", (Argument(F, True),), (), (scan, Stage((), (STORE._replace(operands=(1,)),)))))
    wrong = (scan, Stage((), (write,)))
    with pytest.raises(AttributeValueError, match="cannot see"):
        plain.compile(LoopNest("a running value used afterwards", (Argument(F, True),), (), wrong))
    early = Stage((3,), (Instruction("negative", F, (1,)),), (total,))
    with pytest.raises(AttributeValueError, match=r"reads values \[1\], which it cannot see"):
        plain.compile(LoopNest("a reduction read before it is folded", (), (), (early,)))


@pytest.mark.parametrize("dtype", [dt.int32, dt.float16])
def test_logarithms_are_summed_in_wide_floats_only(plain, dtype) -> None:
    number = Instruction("constant", dtype, literal=1)
    with pytest.raises(AttributeValueError, match=f"logsumexp of {dtype}"):
        plain.compile(LoopNest("wrong", (), (), (Stage((3,), (number,), (Reduction("logsumexp", 0, dtype),)),)))
    with pytest.raises(AttributeValueError, match="recurrence of float32 and"):
        bodies = (Instruction("constant", F, literal=1.0), number)
        plain.compile(LoopNest("wrong", (), (), (Stage((3,), bodies, (Reduction("recurrence", 0, F, 1),)),)))


def test_a_store_to_an_input_is_refused(plain) -> None:
    nest = LoopNest("wrong", (Argument(F, False),), (), (Stage((), (ONE, STORE)),))
    with pytest.raises(AttributeValueError, match="store to argument 0, which is only read"):
        plain.compile(nest)
