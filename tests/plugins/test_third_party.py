"""The device of docs/devices.md: the page is the code, and the code is found, passes the kit and is swapped in."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from nnc_plugins.doctor import probe
from tests.house.test_readme import ROOT
from tests.plugins.fixtures.distributions import run_with

EXAMPLE, PAGE = ROOT / "examples" / "third_party_device", ROOT / "docs" / "devices.md"
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """The device installed as pip does it, by what its pyproject.toml says."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text("utf-8"))
    (module,) = project["tool"]["setuptools"]["py-modules"]
    shutil.copy(EXAMPLE / f"{module}.py", tmp_path)
    info = tmp_path / "nnc_cc-0.1.0.dist-info"
    info.mkdir()
    facts = project["project"]
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {facts['name']}\nVersion: {facts['version']}\n")
    entries = [f"[{group}]\n" + "\n".join(f"{name} = {target}" for name, target in found.items())
               for group, found in facts["entry-points"].items()]
    (info / "entry_points.txt").write_text("\n".join(entries))
    return tmp_path


def test_the_page_is_the_code_and_the_code_is_short() -> None:
    source = (EXAMPLE / "nnc_cc.py").read_text("utf-8")
    blocks = re.findall(r"```python nnc_cc\.py\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    assert "\n\n".join(blocks) == source
    assert len([line for line in source.splitlines() if line.strip()]) <= 110


@needs_compiler
def test_the_page_runs() -> None:
    """In a process of its own: it takes in a device."""
    code = f"from pathlib import Path\nimport sys, types\nfrom tests.house.test_readme import snippets\n" \
           f"module = sys.modules['readme'] = types.ModuleType('readme')\nfile = Path({str(PAGE)!r})\n" \
           "for source in snippets(file.read_text('utf-8')): exec(compile(source, str(file), 'exec'), vars(module))"
    run_with([ROOT], code)


@needs_compiler
def test_it_is_found_and_works(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(site), str(ROOT), *sys.path])
    found = probe("cc")
    assert (found.source, found.state) == ("nnc-cc 0.1.0", "ok"), found
    assert [(device.id, device.uid) for device in found.devices] == [("cc:0", "cc:system")]


KIT = ("-k", "test_streams or test_each_kernel or there_and_back or ((hypot-float32 or gather-int32) and eager)")


@needs_compiler
def test_code_goes_with_its_kernels() -> None:
    """Libraries that nothing uses are unmapped: thousands of them, and the process could map nothing any more."""
    code = ("import gc\nfrom pathlib import Path\n"
            "from nnc_cc import CDevice\nfrom tests.cuda.test_device import sum_nest\n"
            "device = CDevice()\nkernels = [device.compile(sum_nest(4, terms)) for terms in range(2, 6)]\n"
            "def mapped(): return len({line.split()[-2] for line in Path('/proc/self/maps').read_text().splitlines()\n"
            "                         if 'nests.so' in line})\n"
            "before = mapped()\ndel kernels[1:]\ngc.collect()\nprint(before, mapped())")
    if Path("/proc/self/maps").exists():
        assert run_with([EXAMPLE], code) == "4 1\n"


@needs_compiler
@pytest.mark.parametrize("options", [KIT, pytest.param(("-m", ""), marks=pytest.mark.slow)], ids=["sample", "whole"])
def test_it_passes_the_kit(site: Path, options: tuple[str, ...]) -> None:
    output = run_with([site], "import pytest, sys\nsys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', '--pyargs', "
                              f"'nnc_plugins.conformance', '--nnc-device=cc:0', *{options!r}]))")
    assert re.search(r"\d\d+ passed", output) and "failed" not in output


@pytest.mark.slow
@needs_compiler
def test_it_is_installed_in_a_fresh_environment(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", str(tmp_path / "venv")], check=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    shutil.copytree(EXAMPLE, tmp_path / "source")
    install = [python, "-m", "pip", "install", "--quiet", "--no-deps", str(tmp_path / "source")]
    subprocess.run(install, check=True, cwd=tmp_path)
    beside = [str(ROOT), *filter(None, sys.path)]  # this may be an environment itself, which the new one does not see
    code = (f"import sys; sys.path += {beside!r}\n"
            "import nnc_core as nnc; print(nnc.ones(2, device='cc').device.id)")
    done = subprocess.run([python, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "cc:0\n", done.stderr
