"""Kernels whose threads meet at barriers, on the CUDA device: they give the bits that those of OpenCL give."""

from __future__ import annotations

from tests.opencl.test_groups import (  # noqa: F401 they run here too
    test_of_every_dtype,
    test_rows_that_are_folded_and_written,
    test_scans,
    test_sums_are_folded_in_the_order_of_groups,
    test_what_no_order_changes,
)


