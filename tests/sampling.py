"""What `make test` only samples: of thousands of tests of one kind the seed draws those that run, the others are slow.

Each test's draw depends on the seed and its name alone, so that all processes agree and `NNC_TEST_SEED` repeats it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from zlib import crc32

SAMPLED = (
    # Each builds some ten kernels for each device.
    ("tests/tensors/", "opencl:0", 24), ("tests/nn/", "opencl:0", 16), ("tests/optim/", "opencl:0", 16),
    ("tests/tensors/", "strict:0", 6), ("tests/nn/", "strict:0", 3), ("tests/optim/", "strict:0", 3),
    ("tests/tensors/", "cpu:0", 2),
    ("tests/engine/", "opencl", 2), ("tests/integration/", "opencl:0", 4), ("tests/io/", "opencl:0", 2),
    ("tests/opencl/products/", "", 9), ("tests/opencl/test_groups.py", "", 4), ("tests/cuda/test_groups.py", "", 2),
    ("tests/opencl/test_attention.py", "[", 2), ("tests/opencl/test_attention.py", "-", 24),
    ("tests/opencl/test_fourier.py", "-", 6), ("tests/opencl/test_ordering.py", "-", 9),
    ("tests/opencl/test_runs.py", "-", 6),
    ("tests/cuda/test_products.py", "-", 3), ("tests/codegen/test_opencl_dialect.py", "[", 3),
    # Layers, defects and control flow in every mode on every device.
    ("tests/semantics/test_h_c", "opencl:0", 12), ("tests/semantics/test_h_c", "strict:0", 4),
    ("tests/semantics/test_h_cases.py", "test_h03_every_layer[cpu:0", 24),
    ("tests/semantics/test_h_cases.py", "test_h22_views_before_layers[cpu:0", 6),
    ("tests/semantics/test_h_c", "cpu:0", 4), ("tests/semantics/test_nnc_", "cpu:0", 4),
    ("tests/semantics/test_nnc_", "opencl:0", 10), ("tests/semantics/test_nnc_", "strict:0", 4),
    ("tests/semantics/test_c_cases.py", "opencl:0", 4), ("tests/semantics/test_c_cases.py", "cpu:0", 2),
    ("tests/semantics/test_defects", "opencl:0", 4), ("tests/semantics/test_defects", "cpu:0", 2),
    # Machine code for each shape, dtype, layout and width of vectors.
    ("tests/cpu/test_kernels.py", "", 5), ("tests/cpu/products/", "", 3), ("tests/cpu/attention/", "", 2),
    ("tests/cpu/fourier/", "test_every_length", 40), ("tests/cpu/fourier/", "test_bits", 8),
    ("tests/cpu/test_kernels.py", "[", 20), ("tests/cpu/products/", "[", 6), ("tests/cpu/attention/", "[", 4),
    ("tests/cpu/machine_code/test_nests.py", "", 12), ("tests/cpu/machine_code/test_lanes.py", "", 6),
    ("tests/cpu/machine_code/test_expansions.py", "", 3), ("tests/cpu/machine_code/test_random_nests.py", "", 3),
    ("tests/cpu/machine_code/test_branches.py", "", 2), ("tests/cpu/machine_code/test_repeated.py", "", 2),
    ("tests/cpu/machine_code/test_notes.py", "test_the_first_is_kept", 3),
    ("tests/cpu/machine_code/test_tiles.py", "test_transposed", 2),
    ("tests/cpu/machine_code/test_other_processors.py", "test_code_for_neon", 3),
    ("tests/operator/test_nests.py", "test_strided", 6), ("tests/operator/test_nests.py", "test_repeated", 6),
    ("tests/operator/test_nests.py", "test_packed", 6), ("tests/codegen/test_nests.py", "c99", 4),
    ("tests/codegen/test_accuracy.py", "test_c99", 4), ("tests/codegen/test_accuracy.py", "test_errors_are", 3),
    # Derivatives of all branches and loops in all surroundings.
    ("tests/engine/test_branch_gradients.py", "-", 36), ("tests/graph/test_batching.py", "test_every_operator", 4),
    ("tests/graph/test_autodiff.py", "_order[", 4),
    ("tests/graph/test_control_flow.py", "test_derivatives_are_those_of_the_unrolled_program", 9),
    ("tests/tensors/algodiff/test_custom_transforms.py", "test_the_rule_is_used", 2),
    ("tests/tensors/values/test_promotion.py", "every_pair_of_dtypes", 6),
    ("tests/tensors/algodiff/test_function_gradients.py", "test_it_is_the_slope", 2),
    ("tests/tensors/functions/test_fft.py", "[", 3), ("tests/tensors/tracing/test_jit_dims.py", "test_python_runs", 4),
    ("tests/tensors/functions/test_attention_sight.py", "test_against_masks", 2),
    ("tests/tensors/recording/test_exported_functions.py", "for_any_size", 2),
    # Properties of each operator and layer by itself.
    ("tests/operator/test_cost.py", "test_every_operator", 3), ("tests/operator/test_specs.py", "test_the_rule", 2),
    ("tests/engine/test_in_place_nest.py", "test_a_nest_in_place", 3),
    ("tests/engine/test_joined_operators.py", "test_a_part_of", 3),
    ("tests/optim/test_inference.py", "test_inference_of_every_layer", 2),
    ("tests/tensors/functions/test_error_names.py", "[", 2), ("tests/tensors/symbols/", "[", 2),
    ("tests/tensors/functions/test_wrong_kinds.py", "[", 2), ("tests/house/test_owl_operators.py", "[", 2),
    # Training, and what starts processes.
    ("tests/nn/test_zoo.py", "learn_alike", 5), ("tests/nn/test_zoo.py", "test_shapes_of_classifiers", 2),
    ("tests/optim/test_matrix_of_layers.py", "cpu:0", 8), ("tests/optim/test_minimisers.py", "_agree_", 3),
    ("tests/optim/test_owl.py", "test_each_option", 6), ("tests/integration/test_resume.py", "test_killed", 2),
    ("tests/plugins/test_breakages.py", "-", 5),
)  # fmt: skip
"""Where there are many tests of one kind, what is in their names, and how many there are for one that runs: of what
two lines name, one in the least common multiple."""


def is_left_out(seed: int, nodeid: str) -> bool:
    """Tell whether the seed draws another test than this one."""
    file, _, name = nodeid.partition("::")
    if "[" not in name:  # one of its kind
        return False
    drawn = [one_of for kind, one_of in _sampled_in(file) if kind in name]
    return any(crc32(f"{seed} {nodeid}".encode()) % one_of for one_of in drawn)


@lru_cache(maxsize=1024)
def _sampled_in(file: str) -> Sequence[tuple[str, int]]:
    return [(kind, one_of) for place, kind, one_of in SAMPLED if file.startswith(place)]
