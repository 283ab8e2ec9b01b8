"""The C99 runner of all cases: one compilation a session."""

from __future__ import annotations

import pytest

from tests.codegen.compiled import Runner, compile_c99, compiler
from tests.codegen.nests import Case
from tests.codegen.test_nests import CASES


@pytest.fixture(scope="session")
def c99(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    if compiler() is None:
        pytest.skip("no C compiler (cc, gcc or clang) on the path")
    cases: list[Case] = CASES
    return compile_c99({case.name: case.nest for case in cases}, tmp_path_factory.mktemp("c99"))
