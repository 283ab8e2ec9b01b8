"""Library code as kernels that run one after another, written once for all devices that compile C-like languages."""

from collections.abc import Mapping

from nnc_core.device import CommandBackend
from nnc_core.operator.steps.argsort import Argsort
from nnc_core.operator.steps.folding import FOLDED, ComplexFolds
from nnc_core.operator.steps.fourier import TRANSFORMS, Fourier
from nnc_core.operator.steps.program import EntryLaunch, ProgramSource, StepsCompiler, StepsPart
from nnc_core.operator.steps.scatter import Scatter

__all__ = ["EntryLaunch", "ProgramSource", "StepsCompiler", "StepsPart", "backends"]


def backends(compiler: StepsCompiler) -> Mapping[str, CommandBackend]:
    """The library code of a device."""
    return {"argsort": Argsort(compiler), "scatter": Scatter(compiler),
            **{name: ComplexFolds(compiler) for name in FOLDED},
            **{name: Fourier(name, compiler) for name in TRANSFORMS}}
