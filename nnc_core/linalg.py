"""Linear algebra: the Array API's extension, NumPy's rest, and the matrix equations of control theory.

Matrices lie along the last two axes, stacks of them along the others, in float32, float64, complex64 or complex128
(integers become the default float dtype).  Decompositions run on LAPACK on the host; a device without kernels of its
own says so once for each.  All of it but schur and hessenberg is differentiable to any order, in reverse and forward
mode; gradients of complex matrices are conjugates (docs/decisions/0012).
"""

from __future__ import annotations

from nnc_core.base.errors import LinAlgError
from nnc_core.functions import (
    linalg_decompositions,
    linalg_eigen,
    linalg_equations,
    linalg_norms,
    linalg_powers,
    linalg_structured,
    linalg_systems,
)
from nnc_core.functions.linalg_decompositions import *
from nnc_core.functions.linalg_eigen import *
from nnc_core.functions.linalg_equations import *
from nnc_core.functions.linalg_norms import *
from nnc_core.functions.linalg_powers import *
from nnc_core.functions.linalg_structured import *
from nnc_core.functions.linalg_systems import *
from nnc_core.functions.linear import cross, matmul, multi_dot, outer, tensordot, vecdot
from nnc_core.functions.movement import matrix_transpose

__all__ = ["LinAlgError", "cross", "matmul", "matrix_transpose", "multi_dot", "outer", "tensordot", "vecdot"]
__all__ += linalg_decompositions.__all__
__all__ += linalg_eigen.__all__
__all__ += linalg_equations.__all__
__all__ += linalg_norms.__all__
__all__ += linalg_powers.__all__
__all__ += linalg_structured.__all__
__all__ += linalg_systems.__all__
