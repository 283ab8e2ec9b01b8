"""`python -m benchmarks [--list] [NAME ...]`: run the benchmarks named, or all."""

from __future__ import annotations

import argparse
import ast
import importlib.util
import pkgutil
from pathlib import Path

import benchmarks


def names() -> list[str]:
    """The benchmark modules: every module beside this one, each with a function `main()`."""
    found = (module.name for module in pkgutil.iter_modules(benchmarks.__path__))
    return sorted(name for name in found if not name.startswith("_"))


def summary(name: str) -> str:
    """First line of the module's docstring."""
    spec = importlib.util.find_spec(f"benchmarks.{name}")
    assert spec is not None and spec.origin is not None
    # Not imported: some need what is not installed everywhere.
    return (ast.get_docstring(ast.parse(Path(spec.origin).read_bytes())) or "").partition("\n")[0]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Run the named benchmarks.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names()))
    parser.add_argument("--list", action="store_true", help="say what there is and stop")
    options = parser.parse_args()
    if unknown := sorted(set(options.names) - set(names())):
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(names())}")
    for name in options.names or names():
        print(f"{name}: {summary(name)}")
        if not options.list:
            importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()
