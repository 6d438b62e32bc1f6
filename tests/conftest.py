"""Settings of every test run, and the devices that `device_suite.py` is run for."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

os.environ.setdefault("UNDERTOW_CHECK_IR", "1")  # every generated kernel is checked

PACKAGE = Path(__file__).parent / "device_package"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--device",
        action="append",
        help="a device to run device_suite.py for, several times; else reference and abacus",
    )

    parser.addoption(
        "--part", help="3/40: of device_suite's samples every fortieth, from the third on"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not in the `--part`; which samples these are depends on names alone."""
    if not config.getoption("--part"):
        return
    number, count = map(int, config.getoption("--part").split("/"))
    left = [
        item
        for item in items
        if "test_sample[" in item.nodeid and crc32(item.name.encode()) % count != number % count
    ]
    config.hook.pytest_deselected(items=left)
    gone = set(left)
    items[:] = [item for item in items if item not in gone]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """How many samples a device could not run, by reason."""
    skipped = [r for r in terminalreporter.stats.get("skipped", []) if "device_suite" in r.nodeid]
    if not skipped:
        return
    passed = [r for r in terminalreporter.stats.get("passed", []) if "test_sample" in r.nodeid]
    reasons = Counter(r.longrepr[2].removeprefix("Skipped: ") for r in skipped)
    terminalreporter.section("skipped samples, by reason")
    for reason, count in reasons.most_common():
        terminalreporter.line(f"{count:5d}  {reason}")
    share = len(passed) / max(len(passed) + len(skipped), 1)
    terminalreporter.line(f"{len(passed)} samples ran on the device, {share:.1%}")


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
