"""The user's lines of fused commands: all of them where the command is named, one where one operator is at fault."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import DeviceFailureError, Error, NonfiniteError, OutOfRangeError
from nnc_core.base.line import Line, Lines, show_line
from nnc_core.base.loopnest import LoopNest
from nnc_core.builtin.flavours import Flavour
from nnc_core.builtin.strict import StrictDevice
from nnc_core.device import Kernel
from nnc_core.stacks import make_stack

F32 = np.float32


def chain(x: nnc.Tensor) -> Any:
    a = nnc.exp(x)
    b = nnc.tanh(a)
    c = nnc.log(b)
    return c * 2.0


FIRST = chain.__code__.co_firstlineno + 1


def line_of(text: str) -> str:
    return text.rpartition("# ")[2]


def explained(f: Any, *arrays: Any) -> list[str]:
    with nnc.use_device("strict:0"):
        text = nnc.jit(f).lower(*map(nnc.asarray, arrays)).program.explain()
    return [line_of(line) for line in text.splitlines() if "fused(" in line]


# ---- as text
@pytest.mark.parametrize(("lines", "text"), [
    (("a.py:3",), "a.py:3"),
    (("a.py:4", "a.py:3", "a.py:4"), "a.py:3, a.py:4"),
    (("a.py:10", "a.py:9", "a.py:100"), "a.py:9, a.py:10, a.py:100"),
    (("b.py:7", "a.py:9", "b.py:3"), "b.py:3, b.py:7, a.py:9"),
    (tuple(f"a.py:{n}" for n in range(3, 10)), "a.py:3, a.py:4 and 5 more"),
    (("a.py:4 in f", "a.py:3 in f"), "a.py:3, a.py:4 in f"),
    (("a.py:4 in f", "a.py:3 in g"), "a.py:3 in g, a.py:4 in f"),
    (("a.py:4 in f", "a.py:3"), "a.py:3, a.py:4 in f"),
    ((None, "a.py:4 in f", "?"), "a.py:4 in f"),
    (("made by hand", "a.py:4"), "made by hand, a.py:4"),
    ((None, None), "?"),
    ((), "?"),
])
def test_lines_are_shown_once_in_the_users_order_and_not_without_end(lines: tuple[Line | None, ...], text: str) -> None:
    assert show_line(Lines(lines)) == text


# ---- where the command is named
def test_explanations_and_profiles_name_all_lines() -> None:
    wanted = f"test_fused_lines.py:{FIRST}, test_fused_lines.py:{FIRST + 1} and 2 more in chain"
    assert explained(chain, np.ones(3, F32)) == [wanted]
    with nnc.use_device("strict:0"):
        x = nnc.asarray(np.ones(3, F32))
        (timing,) = nnc.jit(chain).lower(x).profile(arg0=x).timings
    assert timing.line == wanted


def test_commands_with_several_results_and_those_in_loops_name_all_lines() -> None:
    def several(w: nnc.Tensor, m: nnc.Tensor, g: nnc.Tensor) -> Any:
        moment = m * 0.9 + g
        return moment, w - moment * 0.1

    def looped(x: nnc.Tensor) -> Any:
        def body(i: Any, v: Any) -> Any:
            v = nnc.sin(v)
            return i + 1, nnc.exp(v)

        return nnc.while_loop(lambda i, v: i < 3, body, (0, x))[1]

    (text,) = explained(several, *[np.ones(3, F32)] * 3)
    assert re.fullmatch(r"test_fused_lines.py:(\d+), test_fused_lines.py:\d+ in several", text)
    (text,) = explained(looped, np.ones(3, F32))
    assert re.fullmatch(r"test_fused_lines.py:(\d+), test_fused_lines.py:\d+ in body", text)


def test_errors_of_a_fused_command_name_all_lines() -> None:
    class Broken(StrictDevice):
        def compile(self, nest: LoopNest) -> Kernel:
            if nest.name == "fused":
                raise DeviceFailureError("the driver is broken")
            return super().compile(nest)

    with nnc.use_device(make_stack(Broken(Flavour("broken")))), pytest.raises(Error) as caught:
        nnc.jit(chain).lower(nnc.asarray(np.ones(3, F32)))
    assert caught.value.line == f"test_fused_lines.py:{FIRST}, test_fused_lines.py:{FIRST + 1} and 2 more in chain"


def test_fused_library_code_names_all_lines() -> None:
    def f(x: nnc.Tensor, y: nnc.Tensor) -> Any:
        product = x * y
        return product + y

    with nnc.use_device("cpu:0"):
        text = nnc.jit(f).lower(*[nnc.asarray(np.ones(3, F32))] * 2).program.explain()
    assert re.search(r"fused\(multiply add\).*# test_fused_lines.py:\d+, test_fused_lines.py:\d+ in f$", text, re.M)


# ---- where one operator is at fault
@pytest.mark.parametrize("device", ["strict:0", "cpu:0"])
def test_operators_at_fault_are_named_with_their_own_line(device: str) -> None:
    with nnc.use_device(device), nnc.config.using(check_nan="nonfinite"), pytest.raises(NonfiniteError) as caught:
        nnc.jit(chain)(nnc.asarray(np.full(3, -200, F32)))
    assert caught.value.operator == "log"
    assert caught.value.line == f"test_fused_lines.py:{FIRST + 2} in chain"


def test_indices_out_of_range_are_named_with_their_own_line() -> None:
    def f(x: nnc.Tensor, i: nnc.Tensor) -> Any:
        x = nnc.sin(x)
        x = nnc.take(x, i, axis=0)
        return nnc.exp(x)

    with nnc.use_device("strict:0"), nnc.config.using(check_indices=True), pytest.raises(OutOfRangeError) as caught:
        nnc.jit(f)(nnc.asarray(np.ones((4, 3), F32)), nnc.asarray([9]))
    assert caught.value.operator == "take"
    assert caught.value.line == f"test_fused_lines.py:{f.__code__.co_firstlineno + 2} in f"
