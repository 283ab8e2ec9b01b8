"""`python -m benchmarks [--list] [NAME ...]`: run the benchmarks named, or all."""

from __future__ import annotations

import argparse
import importlib
import pkgutil

import benchmarks


def names() -> list[str]:
    """The benchmark modules: every module beside this one, each with a function `main()`."""
    found = (module.name for module in pkgutil.iter_modules(benchmarks.__path__))
    return sorted(name for name in found if not name.startswith("_"))


def summary(name: str) -> str:
    """First line of the module's docstring."""
    text = importlib.import_module(f"benchmarks.{name}").__doc__ or ""
    return text.strip().partition("\n")[0]


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
