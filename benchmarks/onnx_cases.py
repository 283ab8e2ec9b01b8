"""The cases that come with ONNX, by kind: how many nnc, ONNX Runtime and ONNX' own reference pass."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import onnx
from onnx.reference import ReferenceEvaluator

from benchmarks._measure import show
from nnc_core.io import load_onnx
from tests.io.onnx.backend_cases import Case, all_cases, check_same

Run = Callable[[list[Any]], Sequence[Any]]


def nnc_run(case: Case, compiled: bool) -> Run:
    module = load_onnx(case.model).hybridize(compiled)

    def run(given: list[Any]) -> Sequence[Any]:
        results = module(*given)
        return results if isinstance(results, tuple) else (results,)

    return run


def reference_run(case: Case) -> Run:
    model = onnx.load_from_string(case.model)
    evaluator = ReferenceEvaluator(model)
    return lambda given: evaluator.run(None, _named(model, given))


def runtime_run(case: Case) -> Run:
    runtime = import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    session = runtime.InferenceSession(case.model, options, providers=["CPUExecutionProvider"])
    names = [x.name for x in session.get_inputs()]
    return lambda given: session.run(None, dict(zip(names, given, strict=False)))


def _named(model: onnx.ModelProto, given: list[Any]) -> dict[str, Any]:
    return dict(zip((x.name for x in model.graph.input), given, strict=False))


RUNNERS: dict[str, Callable[[Case], Run]] = {
    "nnc eager": lambda case: nnc_run(case, False), "nnc compiled": lambda case: nnc_run(case, True),
    "ONNX Runtime": runtime_run, "onnx.reference": reference_run,
}  # fmt: skip


def passes(case: Case, runner: Callable[[Case], Run]) -> bool:
    """Tell whether a runner gives what the case expects; whatever it raises counts as no."""
    try:
        run = runner(case)
        for given, wanted in case.data:
            for found, expected in zip(run(given), wanted, strict=True):
                check_same(found, expected, case.rtol, case.atol)
    except Exception:
        return False
    return True


def main() -> None:
    runners = dict(RUNNERS)
    try:
        import_module("onnxruntime")
    except ImportError:
        print("ONNX Runtime is not installed: pip install onnxruntime")
        del runners["ONNX Runtime"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = all_cases()
        counts = {name: Counter(case.stratum for case in cases if passes(case, runner))
                  for name, runner in runners.items()}
    total = Counter(case.stratum for case in cases)
    rows = [[kind, str(total[kind]), *(str(counts[name][kind]) for name in runners)] for kind in sorted(total)]
    rows.append(["all", str(len(cases)), *(str(sum(counts[name].values())) for name in runners)])
    show("cases that pass", ["kind", "cases", *runners], rows)


if __name__ == "__main__":
    main()
