"""Pictures of what was measured."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path


def draw_ratios(ratios: Mapping[str, Mapping[str, float]], path: Path) -> None:
    """Times of frameworks over ours, a line for each work; says so where matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        print("no picture: matplotlib is not installed")
        return
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 1 + 0.3 * len(ratios)), layout="constrained")
    axes = figure.add_subplot()
    works, frameworks = list(ratios), dict.fromkeys(name for found in ratios.values() for name in found)
    for name in frameworks:
        there = [work for work in works if name in ratios[work]]
        axes.plot([ratios[work][name] for work in there], [works.index(work) for work in there], "o", label=name)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set(xscale="log", xlabel="time / nnc's: right of the line nnc is quicker", ylim=(len(works) - 0.5, -0.5))
    axes.set_yticks(range(len(works)), works)
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path)
    print(f"drawn in {path}")
