"""Modules, optimisers and datasets saved whole: read when asked for, by names that are allowed."""

import copy
import io
import pathlib
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

import undertow as ut
from undertow.errors import FileError


class Net(ut.nn.Module):
    """A module of a user's."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = ut.nn.Sequential(ut.nn.Linear(2, 4), ut.nn.BatchNorm1d(4), ut.nn.ReLU())
        self.head = ut.nn.Linear(4, 1)
        self.tied = self.head.weight
        self.options = {"depth": 2, "shape": (1, 2), "kind": Path}
        self.register_buffer("scale", ut.full((1,), 3.0))

    def forward(self, x: Any) -> Any:
        return self.head(self.layers(x)) * self.scale


def written(obj: Any) -> io.BytesIO:
    file = io.BytesIO()
    ut.save(obj, file)
    file.seek(0)
    return file


def harmful(*args: Any) -> None:
    raise AssertionError("a function of a file was called")


def test_a_module_comes_back_whole() -> None:
    net = ut.nn.Sequential(ut.nn.Conv1d(2, 3, 3), ut.nn.Flatten(), ut.nn.LazyLinear(4)).eval()
    x = ut.randn(2, 2, 8)
    expected = net(x)
    file = written({"epoch": 3, "net": net})
    with pytest.raises(FileError, match=r"asks for torch\.nn\..*weights_only=False"):
        ut.load(file)
    file.seek(0)
    found = ut.load(file, weights_only=False)
    assert found["epoch"] == 3
    assert ut.equal(found["net"](x), expected)
    assert not found["net"].training
    found["net"].register_forward_hook(lambda *_: None)


def test_classes_of_the_user_are_allowed_by_the_user() -> None:
    net = Net()
    file = written(net)
    names = ut.serialization.get_unsafe_globals_in_checkpoint(file)
    assert f"{__name__}.Net" in names
    assert "torch.nn.Linear" in names
    for allowed in ([Net, Path], [sys.modules[__name__], pathlib]):
        file.seek(0)
        with pytest.raises(FileError, match=r"asks for .*\.Net"):
            ut.load(file, weights_only=False)
        file.seek(0)
        with ut.serialization.safe_globals(allowed):
            found = ut.load(file, weights_only=False)
        assert type(found) is Net
        assert found.options == net.options
        assert found.tied is found.head.weight
        x = ut.randn(3, 2)
        assert ut.equal(found(x), net(x))


def test_names_of_modules_count_only_for_whole_files() -> None:
    file = written(Net())
    with ut.serialization.safe_globals([sys.modules[__name__], pathlib]), pytest.raises(FileError):
        ut.load(file)


@pytest.mark.parametrize("name", ["os\nsystem", "builtins\neval", "torch\nload", "torch.hub\nload"])
def test_other_names_are_refused(name: str) -> None:
    from undertow.files.archive import archive

    code = b"\x80\x02c%s\n(X\x01\0\0\0xtR." % name.encode()
    file = io.BytesIO(b"".join(archive([("archive/data.pkl", code)])))
    with pytest.raises(FileError, match="asks for"):
        ut.load(file, weights_only=False)


def test_functions_that_nobody_allowed_are_not_called() -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return harmful, (1,)

    from undertow.files.archive import archive

    code = pickle.dumps(Trap(), 2)
    file = io.BytesIO(b"".join(archive([("archive/data.pkl", code)])))
    with pytest.raises(FileError, match="harmful"):
        ut.load(file, weights_only=False)


def test_what_has_no_name_is_refused_when_saving() -> None:
    class Local(ut.nn.Module):
        pass

    with pytest.raises(FileError, match="top of a module"):
        written(Local())
    net = ut.nn.Linear(1, 1)
    net.register_forward_hook(lambda *_: None)
    with pytest.raises(FileError, match=r"lambda.*by its name"):
        written(net)
    net = ut.nn.Linear(1, 1)
    net.register_load_state_dict_pre_hook(test_what_has_no_name_is_refused_when_saving)
    with pytest.raises(FileError, match="hooks of load_state_dict"):
        written(net)


def test_an_optimizer_goes_on_where_it_was() -> None:
    p = ut.nn.Parameter(ut.ones(3))
    optimizer = ut.optim.Adam([p], lr=0.1)
    schedule = ut.optim.lr_scheduler.StepLR(optimizer, 2)

    def step(p: Any, optimizer: Any, schedule: Any) -> None:
        optimizer.zero_grad()
        (p * p).sum().backward()
        optimizer.step()
        schedule.step()

    step(p, optimizer, schedule)
    others = ut.load(written([p, optimizer, schedule]), weights_only=False)
    copied = copy.deepcopy((p, optimizer)), pickle.loads(pickle.dumps((p, optimizer)))
    for _ in range(3):
        step(p, optimizer, schedule)
        step(*others)
    assert ut.equal(p, others[0])
    assert optimizer.param_groups[0]["lr"] == others[1].param_groups[0]["lr"]
    for q, twin in copied:
        assert twin.param_groups[0]["params"][0] is q
        assert twin.state[q]["step"] == 1


def test_a_dataset() -> None:
    data = ut.utils.data.TensorDataset(ut.arange(6).reshape(3, 2), ut.zeros(3))
    found = ut.load(written(data), weights_only=False)
    assert len(found) == 3
    assert found[1][0].tolist() == [2, 3]


class OnlySlots:
    __slots__ = ("left", "right")


def test_an_object_with_slots_alone() -> None:
    thing = OnlySlots()
    thing.left, thing.right = 1, [2]
    with ut.serialization.safe_globals([OnlySlots]):
        found = ut.load(written(thing), weights_only=False)
    assert (found.left, found.right) == (1, [2])


def test_the_environment_can_forbid_whole_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(ut.nn.Linear(1, 1))
    assert isinstance(ut.load(file, weights_only=False), ut.nn.Linear)
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    file.seek(0)
    with pytest.raises(FileError, match="Linear"):
        ut.load(file, weights_only=False)
