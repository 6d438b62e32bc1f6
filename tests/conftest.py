"""Settings of every test run, and the devices that `device_suite.py` is run for."""

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell
    signal.signal(signal.SIGINT, signal.default_int_handler)

LEAST = 0.95  # of the real samples must run on a device, for the rest there are reasons
PACKAGE = Path(__file__).parent / "device_package"
OPENCL = Path(__file__).parent / "opencl_package"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--device",
        action="append",
        help="a device to run device_suite.py for, several times; else reference and abacus",
    )

    parser.addoption("--keep-wgsl", help="a folder for the text of every kernel of WebGPU")
    parser.addoption(
        "--part", help="3/40: of the op table's samples every fortieth, from the third on"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not in the `--part`; which samples these are depends on names alone."""
    if not config.getoption("--part"):
        return
    number, count = map(int, config.getoption("--part").split("/"))
    left = [
        item
        for item in items
        if ("test_sample[" in item.nodeid or "test_ops.py::" in item.nodeid)
        and crc32(item.name.encode()) % count != number % count
    ]
    config.hook.pytest_deselected(items=left)
    gone = set(left)
    items[:] = [item for item in items if item not in gone]


def _ran(reporter: Any) -> tuple[int, Counter[str]]:
    """How many samples of the op table ran on a device, and how many did not, by reason."""

    def samples(outcome: str) -> list[Any]:
        return [r for r in reporter.stats.get(outcome, []) if "test_sample[" in r.nodeid]

    reasons = Counter(r.longrepr[2].removeprefix("Skipped: ") for r in samples("skipped"))
    return len(samples("passed")) + len(samples("failed")), reasons


def _real(ran: int, reasons: Counter[str]) -> int:
    """How many samples have no complex numbers, or ran nevertheless."""
    return ran + sum(n for reason, n in reasons.items() if not reason.startswith("complex sample"))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Why samples were skipped; less than LEAST of the real ones on the device is a failure."""
    ran, reasons = _ran(terminalreporter)
    if reasons:
        terminalreporter.section("samples that a device does not run, by reason")
        for reason, count in reasons.most_common():
            terminalreporter.line(f"{count:5d}  {reason}")
        real = _real(ran, reasons)
        terminalreporter.line(f"{ran} of {real} real samples ran on the device, {ran / real:.1%}")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    folder = session.config.getoption("--keep-wgsl")
    if folder:
        from undertow.backends.registry import running

        Path(folder).mkdir(parents=True, exist_ok=True)
        for backend in running().values():
            for text in getattr(getattr(backend, "runtime", None), "texts", list)():
                (Path(folder) / f"{crc32(text.encode()):08x}.wgsl").write_text(text)
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    ran, reasons = _ran(reporter) if reporter else (0, Counter())
    real = _real(ran, reasons)
    if real >= 100 and ran < LEAST * real:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "device" in metafunc.fixturenames and metafunc.module.__name__.endswith("device_suite"):
        chosen = metafunc.config.getoption("--device") or ["reference", "abacus"]
        metafunc.parametrize("device", chosen, indirect=True)


def installed(package: Path, target: Path) -> None:
    """Install a package out of the tree, as a user would, where this process finds it."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    options = ["--no-build-isolation", "--disable-pip-version-check", "--target", str(target)]
    subprocess.run([*command, *options, str(package)], check=True, timeout=300)
    sys.path.insert(0, str(target))


@pytest.fixture(scope="session")
def abacus(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The package of a device that answers only what it must."""
    installed(PACKAGE, tmp_path_factory.mktemp("installed"))


@pytest.fixture(scope="session")
def opencl() -> None:
    """An OpenCL device, if there is one."""
    from undertow import opencl

    if not opencl.is_available():
        pytest.skip("there is no OpenCL device; Debian's pocl-opencl-icd brings one")


@pytest.fixture(scope="session")
def sample_opencl(opencl: None, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The package out of the tree that brings OpenCL devices in its own way."""
    installed(OPENCL, tmp_path_factory.mktemp("installed_opencl"))


@pytest.fixture(scope="session")
def cuda(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The driver of a card, or one without a card that translates PTX; see tests/cuda."""
    from cuda.fake_driver import missing, prepare

    if "UNDERTOW_LIBCUDA" not in os.environ:
        if missing():
            pytest.skip(missing())
        os.environ.update(prepare(tmp_path_factory.getbasetemp() / "cuda"))


@pytest.fixture(scope="session")
def device(request: pytest.FixtureRequest) -> Any:
    """The name of the device under test."""
    if request.param in ("abacus", "opencl", "sample_opencl", "cuda"):
        request.getfixturevalue(request.param)
    return request.param
