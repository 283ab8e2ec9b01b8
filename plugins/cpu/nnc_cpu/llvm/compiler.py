"""Machine code of the host: LLVM IR optimised and loaded, for as long as anything holds it."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import count
from typing import Any, NamedTuple

import llvmlite
import llvmlite.binding as llvm

from nnc_core.base.errors import DeviceFailureError
from nnc_cpu.threads.system import allows_amx

_MODULES = count()
_ATTRIBUTES = 'attributes #0 = { nounwind "prefer-vector-width"="512" "probe-stack"="inline-asm" }\n'
"""Of kernels: LLVM takes halves of the widest vectors for some processors unless it is told.  Those that keep much on
the stack touch each of its pages in order: in a thread whose stack is too small they meet the page that guards it, and
do not step over that into memory of others."""
_LOCK = threading.Lock()
MODULES_OF_A_LINKER = 64


class TargetHost(NamedTuple):
    """The processor that code is made for."""

    cpu: str
    features: str
    lanes: int
    """Elements of float32 in a vector."""
    halves: bool
    """It converts float16 by itself."""
    x86: bool = True
    scales: bool = False
    """It multiplies by powers of two by itself."""


@cache
def host() -> TargetHost:
    """The machine that this process runs on.  Its vectors are told from what it can do: a hypervisor may give the
    processor another name."""
    has = llvm.get_host_cpu_features()
    widest = all(has.get(f"avx512{part}") for part in ("f", "dq", "bw", "vl"))
    lanes = 16 if widest else 8 if has.get("avx2") else 4
    x86 = llvm.get_process_triple().startswith("x86_64")
    if has.get("amx-tile") and not allows_amx():
        has.update({name: False for name in has if name.startswith("amx-")})
    return TargetHost(llvm.get_host_cpu_name(), has.flatten(), lanes, bool(has.get("f16c")), x86, widest)


class HostCompiler:
    """Compiles for a host, or for one that has less."""

    def __init__(self, target: TargetHost) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self.target = target
        triple = llvm.Target.from_triple(llvm.get_process_triple())
        self.machine: Any = triple.create_target_machine(cpu=target.cpu, features=target.features, opt=2, jit=True)
        self.builder: Any = llvm.create_pass_builder(self.machine, llvm.create_pipeline_tuning_options(speed_level=1))
        self.passes: Any = llvm.create_new_function_pass_manager()
        self.passes.add_sroa_pass()
        self.passes.add_instruction_combine_pass()
        self.passes.add_new_gvn_pass()
        self.passes.add_simplify_cfg_pass()
        self._linker: Any = None
        self._loads = 0

    def linker(self) -> Any:
        """Linker of the next module.  It keeps some kilobytes of each after its code is freed, so it is replaced from
        time to time, and goes with the last module that it has linked."""
        if self._loads % MODULES_OF_A_LINKER == 0:
            self._linker = llvm.create_lljit_compiler(self.machine, use_jit_link=False)
        self._loads += 1
        return self._linker

    @property
    def identity(self) -> str:
        """All that object code depends on besides the text."""
        version = ".".join(map(str, llvm.llvm_version_info))
        return f"llvmlite {llvmlite.__version__}, LLVM {version}, {llvm.get_process_triple()}, {self.target}"

    def compile(self, text: str) -> bytes:
        """The object code of a module's text."""
        with _LOCK:
            try:
                code: bytes = self.machine.emit_object(self.optimised(text))
            except RuntimeError as error:
                raise DeviceFailureError(f"LLVM cannot compile a loop nest: {error}") from error
            return code

    def load(self, objects: Iterable[bytes], names: Iterable[str]) -> LoadedModule:
        """Pieces of object code as one module, with the functions of these names."""
        with _LOCK:
            try:
                return LoadedModule(self, objects, [*names])
            except RuntimeError as error:
                raise DeviceFailureError(f"LLVM cannot load the code of loop nests: {error}") from error

    def optimised(self, text: str) -> Any:
        module = llvm.parse_assembly(text + _ATTRIBUTES)
        module.verify()
        for function in module.functions:
            if not function.is_declaration:
                self.passes.run(function, self.builder)
        return module


class LoadedModule:
    """Loaded functions; the memory of their code is freed with it."""

    def __init__(self, machine: HostCompiler, objects: Iterable[bytes], names: Sequence[str]) -> None:
        builder = llvm.JITLibraryBuilder().add_current_process()
        for code in objects:
            builder.add_object_img(code)
        for name in names:
            builder.export_symbol(name)
        self.tracker: Any = builder.link(machine.linker(), f"nnc{next(_MODULES)}")
        self.addresses = {name: self.tracker[name] for name in names}
