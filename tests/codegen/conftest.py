"""The C99 runner of all cases that a session's tests ask for: one compilation."""

from __future__ import annotations

import pytest

from tests.codegen.asked import parameters
from tests.codegen.compiled import Runner, compile_c99, compiler
from tests.codegen.nests import Case


@pytest.fixture(scope="session")
def c99(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Runner:
    if compiler() is None:
        pytest.skip("no C compiler (cc, gcc or clang) on the path")
    cases: list[Case] = [asked["case"] for asked in parameters(request)]
    return compile_c99({case.name: case.nest for case in cases}, tmp_path_factory.mktemp("c99"))
