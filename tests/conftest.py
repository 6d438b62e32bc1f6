"""Settings of every test run, and the devices that `device_suite.py` is run for."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("UNDERTOW_CHECK_IR", "1")  # every generated kernel is checked

PACKAGE = Path(__file__).parent / "device_package"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--device",
        action="append",
        help="a device to run device_suite.py for, several times; else reference and abacus",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "device" in metafunc.fixturenames and metafunc.module.__name__.endswith("device_suite"):
        chosen = metafunc.config.getoption("--device") or ["reference", "abacus"]
        metafunc.parametrize("device", chosen, indirect=True)


@pytest.fixture(scope="session")
def abacus(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Install the package out of the tree, as a user would, where this process finds it."""
    target = tmp_path_factory.mktemp("installed")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    options = ["--no-build-isolation", "--disable-pip-version-check", "--target", str(target)]
    subprocess.run([*command, *options, str(PACKAGE)], check=True, timeout=300)
    sys.path.insert(0, str(target))


@pytest.fixture(scope="session")
def device(request: pytest.FixtureRequest) -> Any:
    """The name of the device under test."""
    if request.param == "abacus":
        request.getfixturevalue("abacus")
    return request.param
