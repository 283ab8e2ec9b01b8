"""A device of nnc in about a hundred lines: the host's memory, and loop nests as C for the system's compiler."""

import ctypes
import os
import shutil
import subprocess
import threading
from _ctypes import dlclose
from pathlib import Path
from tempfile import TemporaryDirectory
from weakref import WeakValueDictionary, finalize

import numpy as np

from nnc_core.base.dtype import DTYPES
from nnc_core.base.errors import DeviceError, DeviceMemoryError, NotSupportedError
from nnc_core.codegen import C99, general, render_program
from nnc_core.device import CODEGEN, DONE, REPRODUCIBLE, Device, DeviceSpec, Kernel
from nnc_plugins import API, DeviceOffer, hookimpl

ALIGNMENT = 64  # of buffers, and of views into them
FLAGS = ("-std=c99", "-O2", "-ffp-contract=off", "-fno-fast-math", "-fno-strict-aliasing", "-shared", "-fPIC")


class Memory:
    """Bytes at an address, and whatever keeps them alive."""

    def __init__(self, address, nbytes, owner):
        self.address, self.nbytes, self.owner = address, nbytes, owner


def build(sources):
    """The machine code of a C program, loaded."""
    with TemporaryDirectory() as folder:
        source, library = Path(folder, "nests.c"), Path(folder, "nests.so")
        source.write_text(sources)
        done = subprocess.run(["cc", *FLAGS, source, "-o", library, "-lm"], capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotSupportedError(f"the C compiler fails: {done.stderr[-200:]}")
        loaded = ctypes.CDLL(str(library))
        finalize(loaded, dlclose, loaded._handle)  # with the last of its functions; Python itself never does
        return loaded


class CKernel(Kernel):
    """A function of C, and the numbers that it takes behind the addresses of buffers."""

    def __init__(self, function, numbers, points):
        self.function, self.points = function, points
        self.numbers = (ctypes.c_int64 * max(len(numbers), 1))(*numbers)

    def bind(self, buffers, stream=None):
        addresses = [*(buffer.address for buffer in buffers), ctypes.addressof(self.numbers)]
        pointers = (ctypes.c_void_p * len(addresses))(*addresses)

        def launch(kept=tuple(buffers)):  # a launch keeps its buffers alive
            self.function(pointers, ctypes.c_int64(0), ctypes.c_int64(self.points))

        return launch


class CDevice(Device):
    """Work is done when a call returns, so that every event is DONE and there are no streams."""

    def __init__(self):
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        self.spec = DeviceSpec("cc:0", "cc", "the system's C compiler", driver=shutil.which("cc"), memory=memory,
                               max_allocation=memory, alignment=ALIGNMENT, dtypes=frozenset(DTYPES),
                               features=frozenset({CODEGEN, REPRODUCIBLE}))
        self.functions, self.building = WeakValueDictionary(), threading.Lock()

    def reserve(self, nbytes):
        if nbytes > self.spec.memory:
            raise DeviceMemoryError(f"the host has no {nbytes:,} bytes", device=self.spec.id)
        room = np.empty(nbytes + ALIGNMENT, np.uint8)
        return Memory(-(-room.ctypes.data // ALIGNMENT) * ALIGNMENT, nbytes, room)

    def view(self, buffer, offset, nbytes):
        if offset < 0 or offset + nbytes > buffer.nbytes:
            raise DeviceError(f"bytes {offset} to {offset + nbytes} of {buffer.nbytes}", device=self.spec.id)
        return Memory(buffer.address + offset, nbytes, buffer)

    def upload(self, array, buffer, stream=None):
        ctypes.memmove(buffer.address, array.ctypes.data, array.nbytes)
        return DONE

    def download(self, buffer, array, stream=None):
        ctypes.memmove(array.ctypes.data, buffer.address, array.nbytes)
        return DONE

    def copy(self, source, target, stream=None):
        ctypes.memmove(target.address, source.address, min(source.nbytes, target.nbytes))
        return DONE

    def fill(self, buffer, pattern, stream=None):
        ctypes.memmove(buffer.address, pattern * -(-buffer.nbytes // len(pattern)), buffer.nbytes)
        return DONE

    def compile(self, nest):
        return self.compile_all([nest])[0]

    def compile_all(self, nests):
        made = [general(nest) for nest in nests]  # those that differ in offsets or large sizes share code
        with self.building:
            known = {nest: self.functions.get(nest) for nest, _ in made}
            names = {f"kernel_{number}": nest for number, nest in enumerate(known) if known[nest] is None}
            library = build(render_program(names, C99)) if names else None
            known.update({nest: library[name] for name, nest in names.items()})
            self.functions.update(known)
        return [CKernel(known[any_nest], numbers, nest.points)
                for nest, (any_nest, numbers) in zip(nests, made, strict=True)]


@hookimpl
def nnc_plugin_info():
    return {"name": "cc", "api": API, "kinds": ("cc",)}


@hookimpl
def nnc_devices():
    return [DeviceOffer("cc:0", CDevice, "the system's C compiler", uid="cc:system")] if shutil.which("cc") else []


@hookimpl
def nnc_diagnose():
    return [f"cc is {shutil.which('cc')}; without one there is no device"]
