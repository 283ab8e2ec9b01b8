"""Misused loops and branches: every mode refuses them, naming the operator, what was given, and the user's line."""

from __future__ import annotations

import re
from typing import Any

import pytest

import nnc_core as nnc
from nnc_core.base.errors import (
    AttributeValueError,
    DeviceError,
    DTypeError,
    OperandError,
    ShapeError,
)
from nnc_core.base.errors import Error as NncError
from tests.devices import another
from tests.tensors.control.refusals import EVERYWHERE, LINE, RECORDED, Program, counted, eagerly, refused, x, zero


# ---- while_loop
@pytest.mark.parametrize(("test", "kind", "message"), [
    (lambda i, y: i, ShapeError, r"gives int64\[\], not a boolean scalar"),
    (lambda i, y: y < 3, ShapeError, r"gives bool\[3\], not a boolean scalar"),
    (lambda i, y: 1.5, ShapeError, r"gives float32\[\], not a boolean scalar"),
    (lambda i, y: (i < 3, i < 4), OperandError, "gives tuple, not a boolean scalar"),
    (lambda i, y: None, OperandError, "gives NoneType, not a boolean scalar"),
    (lambda i, y: "yes", OperandError, "str is no array and no number"),
])  # fmt: skip
def test_a_condition_that_is_none(device: str, test: Any, kind: type[Exception], message: str) -> None:
    def program() -> Any:
        return nnc.while_loop(test, lambda i, y: (i + 1, y), (zero(), x()))

    refused(kind, f"while_loop: .*{message}", program)


@pytest.mark.parametrize(("result", "kind", "message"), [
    (lambda i, y: i + 1, OperandError, r"gives Tensor, not a tuple.*return \(x,\) for one value"),
    (lambda i, y: None, OperandError, "gives NoneType, not a tuple"),
    (lambda i, y: (i + 1,), OperandError, r"gives tuple\(\*\), it should give tuple\(\*, \*\)"),
    (lambda i, y: (i + 1, y, y), OperandError, r"gives tuple\(\*, \*, \*\), it should give tuple\(\*, \*\)"),
    (lambda i, y: (i + 1, {"y": y}), OperandError, r"gives tuple\(\*, dict\('y': \*\)\), it should give"),
    (lambda i, y: (i + 1, None), OperandError, r"it should give tuple\(\*, \*\)"),
    (lambda i, y: (i + 1, "y"), OperandError, "str is no array and no number"),
    (lambda i, y: (i + 1, y[:2]), ShapeError, r"value 1 is float32\[2\], it should be float32\[3\]"),
    (lambda i, y: (i + 1, nnc.sum(y)), ShapeError, r"value 1 is float32\[\], it should be float32\[3\]"),
    (lambda i, y: (i + 1.5, y), DTypeError, r"value 0 is float32\[\], it should be int64\[\].*astype"),
    (lambda i, y: (i + 1, y > 0), DTypeError, r"value 1 is bool\[3\], it should be float32\[3\]"),
])  # fmt: skip
def test_a_body_that_carries_on_something_else(device: str, result: Any, kind: type[Exception], message: str) -> None:
    def program() -> Any:
        return counted(result)

    for mode in EVERYWHERE:
        with pytest.raises(kind, match=re.compile(f"while_loop: .*{message}", re.DOTALL)) as caught:
            mode(program)
        assert LINE.search(str(caught.value))


def test_numbers_that_a_body_gives_take_the_dtype_of_what_is_carried(device: str) -> None:
    for mode in EVERYWHERE:
        count, last = mode(lambda: counted(lambda i, y: (i + 1, 2)))
        assert (count.item(), last.tolist(), last.dtype) == (3, [2, 2, 2], nnc.float32)


def test_what_is_carried_is_a_tuple_of_tensors(device: str) -> None:
    def no_tuple() -> Any:
        return nnc.while_loop(lambda y: y < 3, lambda y: (y,), x())

    def text() -> Any:
        return nnc.while_loop(lambda y: True, lambda y: (y,), ("text",))

    def no_function() -> Any:
        return nnc.while_loop(lambda y: True, 3, (x(),))  # type: ignore[arg-type]

    def one_tuple() -> Any:
        return nnc.while_loop(lambda state: state[0] < 3, lambda state: (state[0] + 1, state[1]), (zero(), x()))

    def one_tuple_in_the_body() -> Any:
        return nnc.while_loop(lambda i, y: i < 3, lambda state: (state[0] + 1, state[1]), (zero(), x()))

    refused(OperandError, "while_loop: the condition is given 2 arguments, .*too many.*lambda x0, x1: ...", one_tuple)
    refused(OperandError, "while_loop: the body is given 2 arguments", one_tuple_in_the_body)
    refused(OperandError, r"while_loop: carried is Tensor, not a tuple.*give \(x,\)", no_tuple)
    refused(OperandError, "while_loop: str is no array and no number", text)
    refused(OperandError, "while_loop: body is int, not a function", no_function)


# ---- branches
def test_branches_that_differ(device: str) -> None:
    """Where they are recorded; eager code runs only one of them."""

    def structures() -> Any:
        return nnc.cond(x()[0] < 1, lambda: (x(), x()), lambda: x())

    def shapes() -> Any:
        return nnc.cond(x()[0] < 1, lambda: x(), lambda: x()[:2])

    def dtypes() -> Any:
        return nnc.case_of(zero(), [lambda: (x(),), lambda: (x(),), lambda: (x() > 0,)])

    def replacement() -> Any:
        return nnc.case_of(zero(), [lambda y: (y,)], (x(),), (x(), x()))

    refused(OperandError, r"cond: branch 1 gives \*, it should give tuple\(\*, \*\)", structures, RECORDED)
    refused(ShapeError, r"cond: what branch 1 gives, beside branch 0: value 0 is float32\[2\], it should be",
            shapes, RECORDED, "<lambda>")
    refused(DTypeError, r"case_of: what branch 2 gives.*is bool\[3\], it should be float32\[3\]", dtypes, RECORDED,
            "<lambda>")
    refused(OperandError, r"case_of: the replacement gives tuple\(\*, \*\), it should give tuple\(\*\)", replacement,
            RECORDED)


@pytest.mark.parametrize(("program", "kind", "message"), [
    (lambda: nnc.cond(x() < 1, x, x), ShapeError, r"cond: .*gives bool\[3\], not a boolean scalar"),
    (lambda: nnc.cond(zero(), x, x), ShapeError, r"cond: .*gives int64\[\], not a boolean scalar"),
    (lambda: nnc.cond((True,), x, x), OperandError, "cond: .*gives tuple, not a boolean scalar"),
    (lambda: nnc.cond(True, x, None), OperandError, "cond: false_fn is NoneType, not a function"),
    (lambda: nnc.case_of(x()[0], [lambda: (x(),)]), ShapeError, r"case_of: the index is float32\[\], not an integer"),
    (lambda: nnc.case_of(x() < 1, [lambda: (x(),)]), ShapeError, r"case_of: the index is bool\[3\]"),
    (lambda: nnc.case_of((0,), [lambda: (x(),)]), OperandError, "case_of: the index is tuple, not an integer scalar"),
    (lambda: nnc.case_of(zero(), []), OperandError, "case_of: there is no branch to choose"),
    (lambda: nnc.case_of(zero(), [x()]), OperandError, "case_of: branch 0 is Tensor, not a function"),
    (lambda: nnc.case_of(zero(), [x]), OperandError, "case_of: branch 0.* gives Tensor, not a tuple"),
    (lambda: nnc.case_of(zero(), [lambda y: (y,)], x()), OperandError, "case_of: operands is Tensor, not a tuple"),
    (lambda: nnc.case_of(zero(), [lambda: (1,)], (), 3), OperandError, "case_of: replacement is int, not a tuple"),
])  # fmt: skip
def test_choices_that_are_none(device: str, program: Program, kind: type[Exception], message: str) -> None:
    refused(kind, message, program, line="<lambda>")


def test_a_number_that_no_branch_has(device: str) -> None:
    def choose(i: nnc.Tensor) -> Any:
        return nnc.case_of(i, [lambda y: (y,), lambda y: (y * 2,)], (x(),))[0]

    f = nnc.jit(choose)
    assert f(nnc.asarray(1)).tolist() == [0, 2, 4]
    for i in (2, -1):
        for mode in (choose, f):
            with pytest.raises(NncError, match=re.compile(f"there is no branch {i} among 2.*replacement", re.DOTALL)):
                mode(nnc.asarray(i)).numpy()
    assert f(nnc.asarray(0)).tolist() == [0, 1, 2]


# ---- scan, foreach, map
@pytest.mark.parametrize(("program", "kind", "message"), [
    (lambda: nnc.scan(lambda c, _: (c, c), x(), None, -1), AttributeValueError, "scan: length -1 is no integer"),
    (lambda: nnc.scan(lambda c, _: (c, c), x(), None, 2.5), AttributeValueError, "scan: length 2.5 is no integer"),
    (lambda: nnc.scan(lambda c, _: (c, c), x(), None, True), AttributeValueError, "scan: length True is no integer"),
    (lambda: nnc.scan(lambda c, _: (c, c), x()), ShapeError, "scan: no one length to go over: ; length=None"),
    (lambda: nnc.scan(lambda c, r: (c, c), zero(), x(), 2), ShapeError, r"scan: no one length.*float32\[3\]; length=2"),
    (lambda: nnc.scan(lambda c, r: (c, c), zero(), (x(), x()[:2])), ShapeError, r"float32\[3\], float32\[2\]"),
    (lambda: nnc.scan(lambda c, r: (c, c), zero(), zero()), ShapeError, r"scan: no one length to go over: int64\[\]"),
    (lambda: nnc.scan(lambda c, r: c, zero(), x()), OperandError, r"gives Tensor, not a pair \(carry, y\)"),
    (lambda: nnc.scan(lambda c, r: (c, c, c), zero(), x()), OperandError, "gives tuple, not a pair"),
    (lambda: nnc.scan(lambda c, r: ((c, c), r), zero(), x()), OperandError, r"carry of the body gives tuple\(\*, \*\)"),
    (lambda: nnc.scan(lambda c, r: (x(), r), zero() * 1.0, x()), ShapeError, r"value 0 is float32\[3\], it should be"),
    (lambda: nnc.scan(lambda c, r: (c * 1.5, r), zero(), x()), DTypeError, r"value 0 is float32\[\], it should be int"),
    (lambda: nnc.scan(lambda c, r: (c, "y"), zero(), x()), OperandError, "scan: str is no array and no number"),
    (lambda: nnc.scan(None, zero(), x()), OperandError, "scan: f is NoneType, not a function"),
    (lambda: nnc.foreach(lambda r, s: r, x(), zero()), OperandError, r"foreach: .*not a pair \(out, states\)"),
    (lambda: nnc.foreach(lambda r, s: (r, r), x(), zero()), DTypeError, r"foreach: .*it should be int64\[\]"),
    (lambda: nnc.foreach(lambda r, s: (r, s), zero(), x()), ShapeError, "foreach: no one length to go over"),
    (lambda: nnc.map(lambda r: r, zero()), ShapeError, "map: no one length to go over"),
    (lambda: nnc.map(lambda r: r, None), ShapeError, "map: no one length to go over"),
    (lambda: nnc.map(lambda r: "y", x()), OperandError, "map: str is no array and no number"),
    (lambda: nnc.map(3, x()), OperandError, "map: f is int, not a function"),
])  # fmt: skip
def test_scans_that_do_not_fit(device: str, program: Program, kind: type[Exception], message: str) -> None:
    refused(kind, message, program, line="<lambda>")


def test_what_is_stacked_up_has_one_shape(device: str) -> None:
    """In eager mode Python may choose by the data, and give rows that do not fit."""

    def program() -> Any:
        return nnc.scan(lambda c, r: (c, nnc.ones(int(r))), zero(), x())

    refused(ShapeError, r"scan: what the body stacks up: value 0 is float32\[1\], it should be float32\[0\]", program,
            (eagerly,))


def test_nothing_to_go_over(device: str) -> None:
    """No step: the carry stays, and the ys are empty, of the shape that they would have."""
    for mode in EVERYWHERE:
        last, ys = mode(lambda: nnc.scan(lambda c, r: (c + nnc.sum(r), nnc.exp(r)), zero() * 1.0, nnc.zeros((0, 3))))
        assert last.item() == 0 and ys.shape == (0, 3)
        assert mode(lambda: nnc.map(lambda r: r > 0, nnc.zeros((0, 2)))).shape == (0, 2)
        assert mode(lambda: nnc.scan(lambda c, _: (c, c), x(), None, 0))[1].shape == (0, 3)


# ---- devices
def test_loops_and_branches_are_on_one_device(device: str) -> None:
    other = another(device)

    def elsewhere() -> nnc.Tensor:
        return nnc.ones(3, device=other)

    def carried() -> Any:
        return counted(lambda i, y: (i + 1, y), elsewhere())

    def carried_on() -> Any:
        return counted(lambda i, y: (i + 1, elsewhere()))

    def captured() -> Any:
        there = elsewhere()
        return counted(lambda i, y: (i + 1, y * there))

    def scanned() -> Any:
        return nnc.scan(lambda c, r: (c, c), zero(), elsewhere())

    def chosen() -> Any:
        return nnc.cond(zero() < 1, lambda y: y, lambda y: y, elsewhere())

    def given() -> Any:
        return nnc.cond(zero() < 1, lambda: x(), lambda: elsewhere())

    refused(DeviceError, f"while_loop: carried: value 1 is on {other}, value 0 on {device}", carried, line="counted")
    refused(DeviceError, f"while_loop: .*value 1 is on {other}, it should be on {device}", carried_on,
            line="counted or elsewhere")
    refused(DeviceError, f"multiply: operands are on {device} and {other}", captured, line="<lambda>")
    refused(DeviceError, f"scan: .*value 1 is on {other}, value 0 on {device}", scanned)
    refused(DeviceError, f"cond: .*value 1 is on {other}, value 0 on {device}", chosen)
    refused(DeviceError, f"cond: what branch 1 gives.* on {other}, it should be on {device}", given, RECORDED,
            "elsewhere")


def test_numbers_go_where_the_tensors_are(device: str) -> None:
    other = another(device)

    def doubled() -> Any:
        return nnc.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2), (0, nnc.ones(2, device=other)))

    for mode in EVERYWHERE:
        count, found = mode(doubled)
        assert count.device.id == found.device.id == other and found.tolist() == [8, 8]
        last, ys = mode(lambda: nnc.scan(lambda c, r: (c + r, c), 0.0, nnc.ones(3, device=other)))
        assert last.device.id == other and ys.tolist() == [0, 1, 2]
        assert mode(lambda: nnc.cond(True, lambda y: y, lambda y: -y, nnc.ones(1, device=other))).device.id == other
