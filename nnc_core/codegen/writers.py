"""The writers of a nest's kernels, by what a device is good at."""

from __future__ import annotations

from nnc_core.codegen.clike import CLikeKernel
from nnc_core.codegen.clike_columns import ColumnsWriter, is_by_columns
from nnc_core.codegen.clike_group_columns import GroupColumnsWriter, is_by_group_columns
from nnc_core.codegen.clike_groups import GroupsWriter, is_grouped
from nnc_core.codegen.clike_runs import RunsWriter, is_in_runs
from nnc_core.codegen.clike_two_pass import ChunksWriter, ResultsWriter, is_in_two_passes
from nnc_core.codegen.general import AnyNest


def plain_writers(nest: AnyNest) -> tuple[type[CLikeKernel], ...]:
    """For compilers that are best left with little: a work item for each outer point."""
    return (CLikeKernel,)


def writers_for_groups(nest: AnyNest) -> tuple[type[CLikeKernel], ...]:
    """For devices that run groups of work items together; a nest's kernels run one after another."""
    if not is_grouped(nest):
        return (CLikeKernel,)
    if is_in_two_passes(nest):
        return ChunksWriter, ResultsWriter
    return (GroupColumnsWriter,) if is_by_group_columns(nest) else (GroupsWriter,)


def writers_for_loops(nest: AnyNest) -> tuple[type[CLikeKernel], ...]:
    """For CPUs, whose compilers make vectors of loops."""
    if is_by_columns(nest):
        return (ColumnsWriter,)
    return (RunsWriter,) if is_in_runs(nest) else (CLikeKernel,)
