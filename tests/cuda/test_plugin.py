"""The plugin from outside: what it says without a GPU, what it imports, and the conformance kit on its device."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from nnc_core.base.errors import PluginError
from nnc_cuda import nvrtc
from nnc_plugins.discovery import GROUP
from tests.cuda.host_compiler import compiler, for_the_host
from tests.plugins.fixtures.distributions import run_with

needs_compiler = pytest.mark.skipif(compiler() is None, reason="there is no C compiler")
KIT = ("-k", "test_streams or test_each_kernel or there_and_back or test_records "
             "or ((hypot or gather or softmax or max_pool) and (float32 or int32))")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """The device on the processor, installed as pip would."""
    info = tmp_path / "nnc_cudahost-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: nnc-cudahost\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\ncudahost = tests.cuda.host_plugin\n")
    return tmp_path


def test_nothing_heavy_is_imported_and_nothing_found_without_a_driver() -> None:
    code = ("import sys, nnc_cuda\n"
            "assert not {'cupy', 'cupy_backends', 'cuda', 'nnc_cuda.device'} & set(sys.modules), sys.modules\n"
            "print(nnc_cuda.nnc_plugin_info()['kinds'], len(list(nnc_cuda.nnc_devices())) >= 0)\n"
            "print(*nnc_cuda.nnc_diagnose(), sep='\\n')")
    output = run_with([], code)
    assert output.startswith("('cuda',) True\n")
    assert re.search("CuPy|no NVIDIA driver", output)


def test_a_driver_alone_is_missing() -> None:
    """CuPy as it is without one: one line says so."""
    code = ("import sys, types\n"
            "class CUDARuntimeError(Exception):\n    status = 35\n"
            "class CUDADriverError(Exception): pass\n"
            "def fails(*_): raise CUDARuntimeError('no CUDA-capable device is detected')\n"
            "runtime = types.SimpleNamespace(CUDARuntimeError=CUDARuntimeError, getDeviceCount=fails,\n"
            "                                driverGetVersion=lambda: 0)\n"
            "api = types.ModuleType('cupy_backends.cuda.api')\n"
            "api.runtime, api.driver = runtime, types.SimpleNamespace(CUDADriverError=CUDADriverError)\n"
            "sys.modules |= {'cupy_backends.cuda.api': api}\n"
            "for name in ('cupy_backends', 'cupy_backends.cuda'):\n"
            "    sys.modules[name] = types.ModuleType(name)\n"
            "    sys.modules[name].__spec__ = types.SimpleNamespace(name=name)\n"
            "    sys.modules[name].__path__ = []\n"
            "import nnc_cuda\n"
            "print(list(nnc_cuda.nnc_devices()))\n"
            "print(*nnc_cuda.nnc_diagnose(), sep='\\n')")
    assert run_with([], code) == "[]\nthere is no NVIDIA driver: install the one of your GPU\n"


def test_the_extras_bring_what_the_device_loads() -> None:
    """CuPy, NVIDIA's libraries and what finds them, of one major version of CUDA; nothing of it without an extra."""
    project = tomllib.loads((Path(nvrtc.__file__).parent.parent / "pyproject.toml").read_text())["project"]
    assert not re.search("cupy|nvidia|cuda-", " ".join(project["dependencies"]))
    for extra, cupy, suffix in (("cuda12x", "cupy-cuda12x", "-cu12"), ("cuda13x", "cupy-cuda13x", "")):
        names = {re.split("[<>=]", one)[0] for one in project["optional-dependencies"][extra]}
        libraries = {f"nvidia-{name}{suffix}" for name in ("cuda-nvrtc", "cublas", "cusolver", "cufft")}
        assert names == {cupy, "cuda-pathfinder", *libraries}
    for extra in ("cudnn12", "cudnn13"):
        names = {re.split("[<>=]", one)[0] for one in project["optional-dependencies"][extra]}
        assert names == {f"nvidia-cudnn-cu{extra[-2:]}"}


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from nnc_cuda import diagnosis

    monkeypatch.setattr(diagnosis.util, "find_spec", lambda name: None)

    def none() -> tuple[int, int]:
        raise PluginError("NVRTC cannot be loaded: not there")

    assert [*diagnosis.diagnosis()] == [f"CuPy is not installed: {diagnosis.INSTALL}"]
    monkeypatch.setattr(nvrtc, "version", none)
    monkeypatch.setattr(diagnosis, "load", lambda name: none())
    assert [*diagnosis._nvrtc_lines(), *diagnosis._library_lines()] == [
        "NVRTC cannot be loaded: not there", "products run as nnc's own tiles: NVRTC cannot be loaded: not there",
        "linear algebra runs on the host: NVRTC cannot be loaded: not there",
        "all Fourier transforms run by stages: NVRTC cannot be loaded: not there",
        "convolutions run as nnc's own tiles, attention as products: NVRTC cannot be loaded: not there"]


def test_cuda_c_is_made_c99() -> None:
    source = 'extern "C" __global__ void f(const float *a0, float *a1, const long long o0) {\n}\n'
    made = for_the_host(source)
    assert "int arguments_f = 3;" in made and 'extern "C"' not in made
    assert "f(*(const float **)arguments[0], *(float **)arguments[1], *(const long long *)arguments[2]);" in made


@needs_compiler
@pytest.mark.parametrize("options", [KIT, pytest.param(("-m", ""), marks=pytest.mark.slow)], ids=["sample", "whole"])
def test_it_passes_the_kit(site: Path, options: tuple[str, ...]) -> None:
    output = run_with([site], "import pytest, sys\nsys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', '--pyargs', "
                              f"'nnc_plugins.conformance', '--nnc-device=cudahost:0', *{options!r}]))")
    assert re.search(r"\d\d+ passed", output) and "failed" not in output
