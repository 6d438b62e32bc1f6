"""Run a test file of torch's on Undertow, each test in a process of its own, and sort outcomes.

    python tools/torch_tests/run.py SOURCE test/functorch/test_vmap.py [-k WORD] [--every N]

SOURCE is a folder with torch's source (`test/` and `torch/testing/_internal` at least). Errors are
compared by class and not by text. One line of JSON per test goes to `--out`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import select
import signal
import sys
import time
import traceback
import unittest
import warnings
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

sys.path.insert(0, str(Path(__file__).parent))
from lent import USED, lend

os.environ.setdefault("PYTORCH_TESTING_DEVICE_ONLY_FOR", "cpu")
FAILED = ("wrong", "not raised", "raised", "refused", "missing", "private", "crash", "time")


class Outcome(NamedTuple):
    """What became of a test."""

    name: str
    outcome: str  # "passed", "skipped", or the cause of a failure
    why: str
    trace: str


def cause(error: BaseException, used: list[str], trace: str) -> str:
    """Why a test failed, in a word; see the README."""
    text = str(error)
    if used or "<lent " in text or "Lent" in text:
        return "private"
    if isinstance(error, (AttributeError, ImportError)):
        named = re.search(r"has no attribute '(\w+)'|cannot import name '(\w+)'", text)
        name = (named.group(1) or named.group(2)) if named else ""
        return "private" if name.startswith("_") else "missing"
    if type(error).__name__ == "UnsupportedError" or isinstance(error, NotImplementedError):
        return "refused"
    if isinstance(error, AssertionError):
        return "not raised" if re.search(r"not raised|not triggered", text) else "wrong"
    return "raised"


class _Result(unittest.TestResult):
    """Keeps the first failure of one test as it is."""

    def __init__(self) -> None:
        super().__init__()
        self.error: Any = None
        self.skip = ""
        self.expected = self.surprise = False

    def addError(self, test: Any, err: Any) -> None:
        self.error = self.error or err

    addFailure = addError

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            self.error = self.error or err

    def addSkip(self, test: Any, reason: str) -> None:
        self.skip = reason or "skipped"

    def addExpectedFailure(self, test: Any, err: Any) -> None:
        self.expected = True

    def addUnexpectedSuccess(self, test: Any) -> None:
        self.surprise = True


def run_one(test: unittest.TestCase) -> Outcome:
    """Run a test here."""
    name = ".".join(test.id().split(".")[-2:])
    result = _Result()
    USED.clear()
    test.run(result)
    if result.error is not None:
        kind, error, where = result.error
        trace = "".join(traceback.format_exception(kind, error, where))
        lines = str(error).strip().splitlines() or [""]
        why = f"{kind.__name__}: {lines[0][:300]}"
        used = sorted(set(USED))
        if used:
            why += f" [lent: {', '.join(used[:4])}]"
        return Outcome(name, cause(error, used, trace), why, trace[-6000:])
    if result.skip:
        return Outcome(name, "skipped", result.skip[:200], "")
    return Outcome(name, "skipped" if result.expected else "passed", "", "")


def run_apart(test: unittest.TestCase, limit: float) -> Outcome:
    """Run a test in a child, which has so many seconds."""
    name = ".".join(test.id().split(".")[-2:])
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(read)
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        try:
            found = json.dumps(run_one(test))
        except BaseException as error:
            found = json.dumps(Outcome(name, "raised", f"{type(error).__name__}: {error}", ""))
        os.write(write, found.encode()[: 1 << 16])
        os._exit(0)
    os.close(write)
    chunks: list[bytes] = []
    end = time.monotonic() + limit
    while True:
        left = end - time.monotonic()
        if left <= 0 or not select.select([read], [], [], left)[0]:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(read)
            return Outcome(name, "time", f"more than {limit} s", "")
        chunk = os.read(read, 1 << 16)
        if not chunk:
            break
        chunks.append(chunk)
    os.close(read)
    _, status = os.waitpid(pid, 0)
    try:
        return Outcome(*json.loads(b"".join(chunks)))
    except ValueError:
        return Outcome(name, "crash", f"status {status}", "")


def by_class_only() -> None:
    """Let tests compare errors and warnings by their class."""
    from torch.testing._internal import common_utils

    def raises(self: Any, expected: Any, regex: Any = None, *args: Any, **kwargs: Any) -> Any:
        return unittest.TestCase.assertRaises(self, expected, *args, **kwargs)  # noqa: PT027

    def warns(self: Any, expected: Any, regex: Any = None, *args: Any, **kwargs: Any) -> Any:
        return unittest.TestCase.assertWarns(self, expected, *args, **kwargs)

    for case in (common_utils.TestCase, unittest.TestCase):
        case.assertRaisesRegex = raises
        case.assertWarnsRegex = warns


def loaded(source: Path, file: Path) -> Any:
    """A test file as a module."""
    sys.path[:0] = [str(file.parent), str(source / "test")]
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return module


def tests_of(suite: Any) -> list[Any]:
    """The tests of a suite, flat."""
    if isinstance(suite, unittest.TestCase):
        return [suite]
    return [test for part in suite for test in tests_of(part)]


def chosen(tests: list[Any], asked: argparse.Namespace) -> list[Any]:
    """The tests that were asked for."""
    if asked.k:
        tests = [t for t in tests if any(word in t.id() for word in asked.k)]
    if asked.without:
        tests = [t for t in tests if not any(word in t.id() for word in asked.without)]
    if asked.again:
        lines = map(json.loads, Path(asked.again).read_text().splitlines())
        names = {line["name"] for line in lines if line["outcome"] in FAILED}
        tests = [t for t in tests if ".".join(t.id().split(".")[-2:]) in names]
    if asked.every > 1:
        tests = [t for t in tests if crc32(t.id().encode()) % asked.every == asked.part]
    return tests


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("-k", action="append", help="only tests with this in their names")
    parser.add_argument("--without", action="append", help="no tests with this in their names")
    parser.add_argument("--every", type=int, default=1, help="a sample: one of so many tests")
    parser.add_argument("--part", type=int, default=0, help="which sample")
    parser.add_argument("--limit", type=float, default=60, help="seconds for a test")
    parser.add_argument("--out", type=Path, help="a file for one line of JSON per test")
    parser.add_argument("--again", help="such a file: only tests that failed there")
    parser.add_argument("--here", action="store_true", help="no child processes")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    lend(asked.source)
    by_class_only()
    file = asked.file if asked.file.exists() else asked.source / asked.file
    module = loaded(asked.source, file)
    tests = chosen(tests_of(unittest.defaultTestLoader.loadTestsFromModule(module)), asked)
    print(f"{len(tests)} tests of {file.name}", flush=True)
    counts: Counter[str] = Counter()
    out = asked.out.open("w") if asked.out else None
    for test in tests:
        found = run_one(test) if asked.here else run_apart(test, asked.limit)
        counts[found.outcome] += 1
        if out is not None:
            out.write(json.dumps(found._asdict()) + "\n")
            out.flush()
        if found.outcome in FAILED:
            print(f"{found.outcome:10} {found.name}  {found.why[:150]}", flush=True)
            if asked.here:
                print(found.trace)
    print(dict(counts.most_common()))


if __name__ == "__main__":
    main()
