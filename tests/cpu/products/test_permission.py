"""The registers of AMX, which a process has to ask for: where it is refused, products go by words."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import llvmlite.binding as llvm
import pytest

from nnc_core.base.dtype import bfloat16
from nnc_cpu.llvm import compiler
from nnc_cpu.products.backend import problem_of
from nnc_cpu.products.dots import dots_of, has_amx, has_bfloat16
from nnc_cpu.products.kernel import ProductCompiler
from nnc_cpu.threads import system
from tests.cpu.products import test_integers as integers
from tests.cpu.products import test_pairs as pairs
from tests.cpu.products.running import HOSTS
from tests.cpu.products.test_matmul import matrices

AMX = ("amx-tile", "amx-int8", "amx-bf16")


def host(monkeypatch: pytest.MonkeyPatch, allowed: bool) -> compiler.TargetHost:
    """What this machine would be told from, if it had AMX."""
    asked: list[bool] = []

    def allows() -> bool:
        asked.append(allowed)
        return allowed

    has: Any = llvm.get_host_cpu_features()
    monkeypatch.setattr(llvm, "get_host_cpu_features", lambda: has)
    has.update(dict.fromkeys(AMX, True))
    monkeypatch.setattr(compiler, "allows_amx", allows)
    found: compiler.TargetHost = compiler.host.__wrapped__()
    assert asked == [allowed], "it is asked once"
    return found


def test_what_is_allowed_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    target = host(monkeypatch, allowed=True)
    assert {f"+{part}" for part in AMX} <= set(target.features.split(","))
    assert has_amx(target) == (target.lanes == 16)


def test_what_is_refused_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """All else that the processor can do is."""
    target = host(monkeypatch, allowed=False)
    features = set(target.features.split(","))
    assert not any(x.startswith("+amx") for x in features)
    assert {x for x in HOSTS["here"].features.split(",") if not x[1:].startswith("amx")} <= features
    monkeypatch.setitem(integers.EVERY, "refused", target)
    monkeypatch.setitem(integers._COMPILERS, "refused", ProductCompiler(target))
    for pair in integers.PAIRS:
        made = integers.matrices(40, 70, 130, pair)
        dots = dots_of(problem_of(made), target)
        assert dots is not None and not dots.is_amx
        integers.check(made, "refused")
    if has_bfloat16(target):
        monkeypatch.setitem(pairs.EVERY, "refused", target)
        monkeypatch.setitem(pairs._COMPILERS, "refused", ProductCompiler(target))
        pairs.check(matrices(40, 70, 130, bfloat16), "refused")


@pytest.mark.parametrize(("where", "machine"), [("darwin", "x86_64"), ("linux", "aarch64"), ("win32", "AMD64")])
def test_only_linux_is_asked(where: str, machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system.sys, "platform", where)
    monkeypatch.setattr(system.platform, "machine", lambda: machine)
    monkeypatch.setattr(system.ctypes, "CDLL", None)
    assert not system.allows_amx()


REFUSED = """
import ctypes
import numpy as np

class Stack(ctypes.Structure):
    _fields_ = (("start", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t))

room = ctypes.create_string_buffer(1 << 14)
for size in range(1 << 11, 1 << 14, 256):  # the smallest that may be: it has no room for the registers of AMX
    if not ctypes.CDLL(None).sigaltstack(ctypes.byref(Stack(ctypes.addressof(room), 0, size)), None):
        break
else:
    raise SystemExit("no stack for signals")
import nnc_core as nnc
from nnc_cpu.products.kernel import compiler
from nnc_cpu.threads.system import allows_amx
assert not allows_amx()
assert "+amx" not in compiler().target.features
q = np.random.default_rng(0).integers(-128, 128, (70, 130)).astype(np.int8)
f = nnc.jit(nnc.matmul_integer)
np.testing.assert_array_equal(np.asarray(f(nnc.asarray(q), nnc.asarray(q.T))), q.astype(int) @ q.T.astype(int))
x = nnc.ones((300, 300), dtype="bfloat16")
assert (np.asarray(nnc.jit(nnc.matmul)(x, x)) == 300).all()
print("by words")
"""


@pytest.mark.skipif(not has_amx(HOSTS["here"]), reason="the processor has no AMX, or Linux refuses it here")
def test_a_small_stack_for_signals_has_linux_refuse() -> None:
    done = subprocess.run([sys.executable, "-c", REFUSED], capture_output=True, text=True, timeout=120)
    assert done.stdout == "by words\n", done.stderr
