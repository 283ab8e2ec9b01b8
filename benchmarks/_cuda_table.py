"""`python -m benchmarks._cuda_table FOLDER`: what `_cuda_works` has measured, as one table: milliseconds, and beside
them nnc's as a multiple of the quickest; gigabytes a second where bytes are what counts."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

FRAMEWORKS = ("nnc", "torch", "torch-compile", "jax")
ARRAYS = {"copy of 16M": 2, "tanh(a*b+c)*d 16M": 5, "softmax 16M": 2, "layer norm 16M": 2, "adam 16M": 7}
"""Arrays of 64 MiB that a work has to read and write."""


def found(folder: Path) -> dict[str, dict[str, Any]]:
    """Answers by work and framework."""
    rows: dict[str, dict[str, Any]] = {}
    for file in sorted(folder.glob("works-*.txt")):
        for line in file.read_text().splitlines():
            if line.startswith("{"):
                answer = json.loads(line)
                rows.setdefault(answer["work"], {})[answer["framework"]] = answer
    return rows


def told(work: str, answer: dict[str, Any] | None) -> str:
    if answer is None:
        return "-"
    if "ms" not in answer:
        return "failed"
    rate = f" {ARRAYS[work] * 0.0671 / answer['ms'] * 1e3:5.0f} GB/s" if work in ARRAYS else ""
    return f"{answer['ms']:.3f}{rate}"


def main(folder: Path) -> None:
    rows = found(folder)
    print("work".ljust(26), *[name.rjust(20) for name in FRAMEWORKS], "nnc/best".rjust(9), "nnc host, first call")
    for work, answers in rows.items():
        times = [answer["ms"] for answer in answers.values() if "ms" in answer]
        ours = answers.get("nnc", {})
        ratio = f"{ours['ms'] / min(times):.2f}" if "ms" in ours else "-"
        more = f"{ours['host']:.3f} ms, {ours['first']:.2f} s" if "ms" in ours else ours.get("error", "")
        print(work.ljust(26), *[told(work, answers.get(name)).rjust(20) for name in FRAMEWORKS], ratio.rjust(9), more)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
