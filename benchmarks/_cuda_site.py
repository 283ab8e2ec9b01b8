"""`python -m benchmarks._cuda_site FOLDER`: what pip would have written there of packages that lie on the path alone,
so that plugins are found where nothing can be installed.  Says which packages nnc needs are missing."""

from __future__ import annotations

import sys
import tomllib
from importlib import metadata, util
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROJECTS = (".", "plugins/cpu", "plugins/cuda")
STAND_IN = {"nnc.plugins.v1": {"cudahost": "tests.cuda.host_plugin"}}
NEEDED = ("numpy", "ml_dtypes", "pluggy", "pytest")
USED = ("cupy_backends", "cuda.pathfinder", "llvmlite", "torch", "jax", "platformdirs", "opt_einsum", "click", "rich")


def write(folder: Path, name: str, version: str, groups: dict[str, dict[str, str]]) -> None:
    """The metadata of one distribution."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = [line for group, points in groups.items()
             for line in (f"[{group}]", *[f"{key} = {value}" for key, value in points.items()])]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")


def is_installed(name: str) -> bool:
    return any(True for _ in metadata.distributions(name=name))


def is_there(module: str) -> bool:
    try:
        return util.find_spec(module) is not None
    except ImportError:  # of the package that it is in
        return False


def main(folder: Path) -> None:
    for place in PROJECTS:
        project = tomllib.loads((ROOT / place / "pyproject.toml").read_text())["project"]
        if not is_installed(project["name"]):
            write(folder, project["name"], project["version"], project["entry-points"])
    if (ROOT / STAND_IN["nnc.plugins.v1"]["cudahost"].replace(".", "/")).with_suffix(".py").exists():
        write(folder, "nnc-cudahost", "0", STAND_IN)
    missing = [name for name in (*NEEDED, *USED) if not is_there(name)]
    print("not installed here:", ", ".join(missing) or "nothing that could be of use")
    if lacking := [name for name in NEEDED if name in missing]:
        sys.exit(f"nnc needs {', '.join(lacking)}: put them in a folder, and name that in NNC_CUDA_PACKAGES")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
