"""Object code on disk: what one process has compiled, the next one loads."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from ctypes import CFUNCTYPE, c_int64
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.dtype import float32
from nnc_core.base.errors import DeviceFailureError, FallbackWarning
from nnc_core.base.loopnest import LoopNest
from nnc_core.codegen import general
from nnc_cpu.llvm import objects
from nnc_cpu.llvm.compiler import HostCompiler
from nnc_cpu.llvm.kernel import NestCompiler, host
from nnc_cpu.llvm.objects import Objects, source_digest, structure, text_of
from nnc_cpu.products.kernel import compiler
from tests.codegen.nests import Writer, at
from tests.codegen.test_nests import CASES
from tests.cpu.machine_code.running import HOSTS, run
from tests.cpu.machine_code.test_compiler import doubled, twice

NESTS = list(dict.fromkeys(general(case.nest)[0] for case in CASES))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    with nnc.config.using(cache_folder=tmp_path):
        yield tmp_path / objects.CACHE


class CountingCompiler(NestCompiler):
    """Counts what is compiled."""

    def __init__(self) -> None:
        super().__init__(host(), kept=True)
        self.compiled, compile = 0, self.machine.compile

        def counted(text: str) -> bytes:
            self.compiled += 1
            return compile(text)

        self.machine.compile = counted  # type: ignore[method-assign]

    def check(self, *sizes: int, compiled: int, name: str = "twice") -> None:
        kernels = self.kernels([replace(twice(size), name=name) for size in sizes])
        assert self.compiled == compiled
        for kernel, size in zip(kernels, sizes, strict=True):
            doubled(kernel, size)


def filled(literal: float) -> LoopNest:
    n = Writer("filled", (4,), [(float32, True)])
    n.store(0, n.constant(literal, float32), at({0: 1}, 1))
    return n.build()


def test_the_next_process_compiles_nothing() -> None:
    CountingCompiler().check(5000, compiled=1)
    CountingCompiler().check(5000, 6000, compiled=0)


def test_names_of_operators_make_no_other_code() -> None:
    CountingCompiler().check(5000, compiled=1)
    CountingCompiler().check(5000, compiled=0, name="otherwise")


def test_each_kernel_is_kept_by_itself() -> None:
    CountingCompiler().check(4, 5, compiled=2)
    CountingCompiler().check(5, 6, 4, compiled=1)


def test_what_code_is_loaded_for_is_the_same_to_the_bit() -> None:
    literals = [0.0, -0.0, 1.0, float("nan"), float("inf"), 1e-45]
    for _ in range(2):
        for kernel, literal in zip(CountingCompiler().kernels([*map(filled, literals)]), literals, strict=True):
            result = np.ones(4, np.float32)
            run(kernel, [result])  # type: ignore[arg-type]
            assert result.tobytes() == np.full(4, literal, np.float32).tobytes()


def test_every_case_is_loaded_as_it_was_compiled(folder: Path) -> None:
    some = NESTS[::9]
    maker = Objects(HostCompiler(host()), kept=True)
    made = [maker.of(nest, maker.key(nest)) for nest in some]
    reader = Objects(HostCompiler(host()), kept=True)
    reader.machine.compile = None  # type: ignore[method-assign,assignment]
    assert [reader.of(nest, reader.key(nest)) for nest in some] == made


def test_no_limit_keeps_nothing(folder: Path) -> None:
    with nnc.config.using(cache_limit=0):
        CountingCompiler().check(5000, compiled=1)
        CountingCompiler().check(5000, compiled=1)
    assert not folder.exists()


def test_code_that_is_not_kept_leaves_the_disk_alone(folder: Path) -> None:
    doubled(NestCompiler(host()).kernels([twice(100)])[0], 100)
    assert not folder.exists()


def test_damaged_code_is_made_again(folder: Path) -> None:
    CountingCompiler().check(5000, compiled=1)
    [entry] = [file for file in folder.iterdir() if len(file.name) == 32]
    entry.write_bytes(entry.read_bytes()[:-100])
    with pytest.warns(FallbackWarning, match="damaged"):
        CountingCompiler().check(5000, compiled=1)
    CountingCompiler().check(5000, compiled=0)


def test_all_works_without_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with nnc.config.using(cache_folder=tmp_path / "file"), pytest.warns(FallbackWarning) as caught:
        CountingCompiler().check(5000, compiled=1)
        CountingCompiler().check(5000, compiled=1)
    assert len(caught) == 2, "one of reading, one of writing"


def test_keys_differ_where_code_does(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {name: Objects(HostCompiler(target), kept=False).key(NESTS[0]) for name, target in HOSTS.items()}
    assert len(set(keys.values())) == len(HOSTS)
    maker = Objects(HostCompiler(host()), kept=False)
    assert len({maker.key(nest) for nest in NESTS}) == len({repr(structure(nest)) for nest in NESTS})
    assert len({repr(replace(nest, nest=replace(nest.nest, name=""))) for nest in NESTS}) == len(
        {repr(structure(nest)) for nest in NESTS})
    before = maker.key(NESTS[0])
    monkeypatch.setattr(objects, "source_digest", lambda: "another version")
    assert Objects(maker.machine, kept=False).key(NESTS[0]) != before
    monkeypatch.undo()
    monkeypatch.setattr(objects.HostCompiler, "identity", "another LLVM")
    assert Objects(maker.machine, kept=False).key(NESTS[0]) != before


def test_another_version_of_the_source_is_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "written" / "inside").mkdir(parents=True)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(objects, "WRITERS", ("written",))
    digests = set()
    for name, text in (("__init__.py", ""), ("a.py", "1"), ("a.py", "2"), ("inside/b.py", ""), ("b.py", "")):
        (tmp_path / "written" / name).write_text(text)
        source_digest.cache_clear()
        digests.add(source_digest())
    (tmp_path / "written" / "notes.txt").write_text("")
    source_digest.cache_clear()
    assert source_digest() in digests and len(digests) == 5
    source_digest.cache_clear()


TEXTS = """
from hashlib import blake2b
from nnc_cpu.llvm.compiler import HostCompiler, host
from nnc_cpu.llvm.objects import Objects, text_of
from tests.cpu.machine_code.test_objects import NESTS
machine = HostCompiler(host())
maker = Objects(machine, kept=False)
for nest in NESTS:
    print(maker.key(nest), blake2b(text_of("kernel", nest, machine)[0].encode()).hexdigest())
"""


def test_every_process_writes_the_same() -> None:
    """Keys and texts do not depend on the order of sets, nor on what was written before."""
    root = Path(__file__).parents[3]
    printed = [subprocess.run([sys.executable, "-c", TEXTS], env={**os.environ, "PYTHONHASHSEED": seed}, cwd=root,
                              check=True, capture_output=True, text=True).stdout for seed in ("1", "2")]
    assert printed[0] == printed[1] and printed[0].count("\n") == len(NESTS)
    machine = HostCompiler(host())
    assert all(text_of("kernel", nest, machine) == text_of("kernel", nest, machine) for nest in reversed(NESTS[::7]))


def test_code_that_cannot_be_loaded_is_one_error() -> None:
    with pytest.raises(DeviceFailureError, match="LLVM cannot load"):
        HostCompiler(host()).load([HostCompiler(host()).compile("define void @here() { ret void }\n")], ["nowhere"])


def test_texts_written_elsewhere_are_kept(folder: Path) -> None:
    text = "define i64 @here() {\n  ret i64 7\n}\n"
    code = Objects(HostCompiler(host()), kept=True).of_text(text)
    reader = Objects(HostCompiler(host()), kept=True)
    reader.machine.compile = None  # type: ignore[method-assign,assignment]
    assert reader.of_text(text) == code
    module = reader.machine.load([code], ["here"])
    assert CFUNCTYPE(c_int64)(module.addresses["here"])() == 7


def written_by_nobody() -> str:
    raise AssertionError("the code is on disk")


def test_texts_whose_code_is_on_disk_are_not_written(folder: Path) -> None:
    text = "define i64 @here() {\n  ret i64 7\n}\n"
    code = Objects(HostCompiler(host()), kept=True).of_kind(("seven", np.float32(7)), lambda: text)
    reader = Objects(HostCompiler(host()), kept=True)
    assert reader.of_kind(("seven", np.float32(7)), written_by_nobody) == code
    with pytest.raises(AssertionError, match="on disk"):
        reader.of_kind(("eight", np.float32(7)), written_by_nobody)


def test_what_the_code_of_products_depends_on_is_said_in_the_same_words_by_every_process() -> None:
    images, kernel = nnc.ones((2, 16, 16, 8)), nnc.ones((3, 3, 8, 32))
    step = nnc.jit(lambda x, k: nnc.gelu(nnc.conv2d(x, k)) @ nnc.ones((32, 32)))
    step(images, kernel)
    kinds = [*compiler().codes]
    assert kinds and not any(" at 0x" in repr(kind) or "object" in repr(kind) for kind in kinds)
