"""`undertow adopt` and `undertow run`: programs and libraries that import torch get Undertow."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from importlib.metadata import distribution
from pathlib import Path

import pytest

import undertow as ut
from undertow.cli.run import path_with_torch
from undertow.compat.stand_in import FOLDER, VERSION
from undertow.torch_version import TorchVersion

SOURCE = Path(ut.__file__).parent.parent

LOOKS = """
import importlib.metadata, importlib.util, sys, types
spec = importlib.util.find_spec("torch")
assert spec is not None and spec.name == "torch" and spec.submodule_search_locations
assert importlib.metadata.version("torch") == "2.13.0+undertow"
import torch, undertow
import torch.nn as nn, torch.nn.functional as F, torch.version
from torch.utils.data import DataLoader
from torch import Tensor, optim
assert isinstance(torch, types.ModuleType) and torch.__name__ == "torch"
assert torch.__version__ == "2.13.0+undertow" and torch.__version__ >= (2, 4)
assert torch.__version__.split("+")[0] == "2.13.0" and torch.__version__ > "2.9"
assert undertow.__version__ != torch.__version__ and undertow.version.cuda is None
assert torch.version.cuda is None and torch.version.__version__ == "2.13.0+undertow"
assert torch.__spec__ is not None and torch.__path__ and torch.__file__.endswith("__init__.py")
assert nn is undertow.nn and F is undertow.nn.functional and Tensor is undertow.Tensor
assert torch.add is undertow.add and torch.linalg is undertow.linalg
assert importlib.util.find_spec("torch.optim") and importlib.util.find_spec("torch.nix") is None
assert not hasattr(torch, "nix") and "nn" in dir(torch) and "__wrapped__" not in vars(torch)
names = {}
exec("from torch import *", names)
assert names["zeros"] is undertow.zeros
print("as torch:", torch.ones(2).sum().item())
"""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what Undertow needs and nothing else: no torch."""
    folder = tmp_path_factory.mktemp("packages")
    for name in ("numpy", "llvmlite", "tqdm"):
        found = distribution(name)
        for top in {p.parts[0] for p in found.files or () if p.parts[0] not in ("..", "bin")}:
            (folder / top).symlink_to(found.locate_file(top))
    return folder


@pytest.fixture
def python(tmp_path: Path, packages: Path) -> Path:
    """The interpreter of a new virtual environment that has Undertow."""
    venv.create(tmp_path / "env", with_pip=False, symlinks=os.name != "nt")
    site = next((tmp_path / "env").rglob("site-packages"))
    (site / "undertow_sources.pth").write_text(f"{SOURCE}\n{packages}\n")
    return next(p for p in (tmp_path / "env").glob("*/python*") if p.stem == "python")


def call(*command: object, expect: int = 0, **environment: str) -> str:
    """What a command says, which must end with the code that was expected."""
    known = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(
        [str(c) for c in command],
        capture_output=True,
        text=True,
        env={**known, **environment},
        timeout=300,
    )
    assert done.returncode == expect, done.stdout + done.stderr
    return done.stdout + done.stderr


def everything(python: Path) -> set[Path]:
    """All files of an environment."""
    return {p for p in python.parent.parent.rglob("*") if p.is_file()}


def test_adopted_and_undone(python: Path) -> None:
    """Libraries find torch, and afterwards the environment is what it was."""
    before = everything(python)
    said = call(python, "-c", "import torch", expect=1)
    assert "No module named 'torch'" in said
    assert "is now Undertow" in call(python, "-m", "undertow", "adopt")
    assert "as torch: 2.0" in call(python, "-c", LOOKS)
    assert "is already" in call(python, "-m", "undertow", "adopt")
    assert "as torch: 2.0" in call(python, "-c", LOOKS)
    site = next((python.parent.parent).rglob("site-packages"))
    record = (site / f"torch-{VERSION}.dist-info" / "RECORD").read_text()
    assert "torch/__init__.py,sha256=" in record
    (site / "torch" / "mine.txt").write_text("not of the record")
    assert "removed torch" in call(python, "-m", "undertow", "adopt", "--undo")
    assert everything(python) - before == {site / "torch" / "mine.txt"}
    (site / "torch" / "mine.txt").unlink()
    (site / "torch").rmdir()
    assert "nothing to undo" in call(python, "-m", "undertow", "adopt", "--undo")
    assert everything(python) == before


def test_a_real_torch_is_left_alone(python: Path) -> None:
    """Neither a torch with metadata nor one without is written over or removed."""
    site = next((python.parent.parent).rglob("site-packages"))
    (site / "torch").mkdir()
    (site / "torch" / "__init__.py").write_text("real = True\n")
    said = call(python, "-m", "undertow", "adopt", expect=1)
    assert "[adopt] a torch is already there" in said
    assert "undertow run" in said
    info = site / "torch-2.12.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.12.0\n")
    (info / "RECORD").write_text("torch/__init__.py,,\n")
    assert "version 2.12.0" in call(python, "-m", "undertow", "adopt", expect=1)
    assert "nothing to undo" in call(python, "-m", "undertow", "adopt", "--undo")
    assert (site / "torch" / "__init__.py").read_text() == "real = True\n"
    # A program beside it gets Undertow all the same.
    assert "as torch: 2.0" in call(python, "-m", "undertow", "run", "-m", looks(python))


def looks(python: Path) -> str:
    """The name of a module of the environment that asks everything about torch."""
    site = next((python.parent.parent).rglob("site-packages"))
    (site / "look_at_torch.py").write_text(LOOKS)
    return "look_at_torch"


def test_outside_of_an_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The Python of the system is changed only when it is asked for."""
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    assert ut.cli.main(["adopt"]) == 1
    said = capsys.readouterr().err
    assert "[adopt]" in said
    assert "python -m venv .venv" in said


PROGRAM = """
import multiprocessing, os, subprocess, sys
import torch
from torch.utils.data import DataLoader, Dataset

class Squares(Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, i):
        import torch.nn.functional
        return torch.tensor(float(i * i))

def version(*ignored):
    import importlib.metadata
    import torch
    return f"{importlib.metadata.version('torch')} {torch.__version__}"

def tell(i, folder):
    with open(os.path.join(folder, str(i)), "w") as file:
        file.write(version())

def main():
    folder = sys.argv[2]
    print("arguments", sys.argv[1:], __name__)
    print("loader", torch.cat(list(DataLoader(Squares(), 4, num_workers=2))).sum().item())
    for method in multiprocessing.get_all_start_methods():
        with multiprocessing.get_context(method).Pool(1) as pool:
            print(method, pool.map(version, [0]))
    torch.multiprocessing.spawn(tell, (folder,), nprocs=2)
    told = {open(os.path.join(folder, name)).read() for name in "01"}
    print("spawned", sorted(os.listdir(folder)), told)
    child = "import torch; print('child', torch.__version__)"
    print(subprocess.run([sys.executable, "-c", child], capture_output=True, text=True).stdout)
    sys.exit(7)

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("how", ["run", "file", "module", "adopted"])
def test_children(how: str, python: Path, tmp_path: Path) -> None:
    """Workers of loaders and pools, by every start method, and processes on their own have it."""
    program, folder = tmp_path / "program.py", tmp_path / "out"
    program.write_text(PROGRAM)
    folder.mkdir()
    start: list[object] = {
        "run": [python, "-m", "undertow", "run", program],
        "file": [python, "-m", "undertow", program],
        "module": [python, "-m", "undertow", "-m", "program"],
        "adopted": [python, program],
    }[how]
    if how == "adopted":
        call(python, "-m", "undertow", "adopt")
    before = everything(python)
    said = call(*start, "--epochs", folder, expect=7, PYTHONPATH=str(tmp_path))
    assert f"arguments ['--epochs', '{folder}'] __main__" in said
    assert "loader 140.0" in said
    both = f"{VERSION} {VERSION}"
    for method in ("spawn", "fork", "forkserver") if os.name == "posix" else ("spawn",):
        assert f"{method} ['{both}']" in said
    assert f"spawned ['0', '1'] {{'{both}'}}" in said
    assert f"child {VERSION}" in said
    assert {p for p in everything(python) - before if p.suffix != ".pyc"} == set()


@pytest.mark.parametrize("start", ["run {0}", "{0}", "run -- {0}", "run -m program", "-m program"])
def test_a_program_gets_all_its_arguments(start: str, tmp_path: Path) -> None:
    """Also those that this command knows, and `--`."""
    program = tmp_path / "program.py"
    program.write_text("import sys; print(sys.argv[1:])")
    given = ["-x", "--", "-m", "--undo", "-h", "--", "1"]
    words = [sys.executable, "-m", "undertow", *start.format(program).split(), *given]
    path = os.pathsep.join([str(tmp_path), str(Path(ut.__file__).parent.parent)])
    said = subprocess.run(
        words, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    assert said.stdout.strip() == str(given)


def test_nothing_to_run(capsys: pytest.CaptureFixture[str]) -> None:
    """A command without a program says what it wants."""
    assert ut.cli.main(["run"]) == 1
    assert "[run] expects a script" in capsys.readouterr().err


def test_the_path_grows_once() -> None:
    """However deep programs start programs, the folder stands on the path once, at its front."""
    one = path_with_torch(os.pathsep.join(["a", "b"]))
    assert one == path_with_torch(one) == os.pathsep.join([str(FOLDER), "a", "b"])
    assert path_with_torch(None) == path_with_torch("") == str(FOLDER)


def test_versions_compare_by_their_numbers() -> None:
    """With text, tuples and whatever is written as a version; text that is none is text."""
    early = ["1.9", "2.0.dev3", "2.0a1", "2.0rc1", "2.0", "2.0+cpu", "2.0.post1"]
    order = [*early, "2.1", "2.10", "2.13.0", "2.13.0+undertow", "3"]
    for i, a in enumerate(order):
        for j, b in enumerate(order):
            mine = TorchVersion(a)
            assert (mine < b, mine <= b, mine == b) == (i < j, i <= j, i == j), (a, b)
            assert (mine > b, mine >= b, mine != b) == (i > j, i >= j, i != j), (a, b)
    here = TorchVersion("2.13.0")
    assert here == (2, 13) == here
    assert here > (2, 9, 1)
    assert here < (3,)
    assert here == "2.13"
    assert here != "parrot"
    assert here < "parrot"
    assert {here: 1}["2.13.0"] == 1
