"""Module and its containers beside torch's: the same scripts see the same."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import undertow as ut
from module_scripts import SCRIPTS, plain

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.conformance


@pytest.mark.parametrize("name", SCRIPTS)
def test_script(name: str) -> None:
    """What a script returns does not depend on the library."""

    def run(library: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return plain(SCRIPTS[name](library))

    assert run(ut) == run(torch)
