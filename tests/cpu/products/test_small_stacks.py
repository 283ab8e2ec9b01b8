"""Threads whose stack is smaller than what a product keeps there: memory beside the stack stays as it was."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CALL = """
import ctypes, mmap, os, resource, sys
import numpy as np
from nnc_core.base.dtype import DTYPES
from nnc_cpu.addresses import arguments_of
from nnc_cpu.products.backend import problem_of
from nnc_cpu.products.kernel import compiler
from tests.cpu.products.test_matmul import matrices

STACK, BELOW, PAGE = 1 << 17, 1 << 22, mmap.PAGESIZE
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
made = matrices(300, 300, 1100, DTYPES[sys.argv[1]])
kernel = compiler().kernel(problem_of(made), exact=False)
arrays = [np.zeros(x.size * x.dtype.itemsize, np.uint8) for x in (*made.inputs, *made.outputs)]
tasks, arguments = kernel.tasks, arguments_of(arrays)
shared = mmap.mmap(-1, BELOW + PAGE + STACK)  # memory of others, the page that guards a stack, the stack
start = ctypes.addressof(ctypes.c_char.from_buffer(shared))
process = ctypes.CDLL(None)
begin = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(
    lambda _: tasks.function(arguments, tasks.numbers, 0, tasks.total))
child = os.fork()
if not child:
    attributes, thread = ctypes.create_string_buffer(256), ctypes.c_void_p()
    process.mprotect(ctypes.c_void_p(start + BELOW), ctypes.c_size_t(PAGE), 0)
    process.pthread_attr_init(attributes)
    process.pthread_attr_setstack(attributes, ctypes.c_void_p(start + BELOW + PAGE), ctypes.c_size_t(STACK))
    assert not process.pthread_create(ctypes.byref(thread), attributes, begin, None)
    process.pthread_join(thread, None)
    os._exit(0)
_, status = os.waitpid(child, 0)
print(sum(shared[:BELOW]), os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the stack is laid out as on Linux")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_kernels_do_not_step_over_the_page_that_guards_a_stack(dtype: str) -> None:
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", CALL, dtype], cwd=root, capture_output=True, text=True, check=True)
    written, status = map(int, done.stdout.split())
    assert written == 0
    assert status in (0, -11), "it ran, or met the guard"
