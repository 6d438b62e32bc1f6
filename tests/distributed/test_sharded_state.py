"""Optimisers and checkpoints that processes share."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import undertow as ut
from processes import needs_mpi, run
from undertow.distributed import checkpoint

ZERO = """
from undertow.distributed.optim import ZeroRedundancyOptimizer
from undertow.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group(timeout=200)
me, n = dist.get_rank(), dist.get_world_size()


def trained(make, steps, model=None, resume=None):
    ut.manual_seed(3)
    linear = ut.nn.Linear
    ddp = DDP(ut.nn.Sequential(linear(6, 50), ut.nn.ReLU(), linear(50, 40), linear(40, 1)))
    weights = [p for p in ddp.parameters() if p.ndim > 1]
    biases = [p for p in ddp.parameters() if p.ndim == 1]
    optimizer = make([{"params": weights, "lr": 3e-3}, {"params": biases, "lr": 1e-2}])
    schedule = ut.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    if resume is not None:
        ddp.load_state_dict(resume[0])
        optimizer.load_state_dict(resume[1])
    g = ut.Generator().manual_seed(me)
    for _ in range(steps):
        optimizer.zero_grad()
        (ddp(ut.randn(5, 6, generator=g)) ** 2).mean().backward()
        optimizer.step()
        schedule.step()
    return ddp, optimizer


def same(a, b):
    for (name, x), y in zip(a.state_dict().items(), b.state_dict().values()):
        assert ut.equal(x, y), name
"""


@needs_mpi
def test_zero_gives_the_bits_of_the_optimiser_itself(tmp_path: Path) -> None:
    """With a part of its state; and a state that was brought together can be loaded anywhere."""
    body = (
        ZERO
        + """
zero = lambda groups: ZeroRedundancyOptimizer(groups, ut.optim.AdamW, weight_decay=0.1)
plain = lambda groups: ut.optim.AdamW(groups, weight_decay=0.1)
a, sharded = trained(zero, 6)
b, whole = trained(plain, 6)
same(a, b)
assert 0 < len(sharded.optim.state) < len(whole.state)
counts = [None] * n
dist.all_gather_object(counts, len(sharded.optim.state))
assert sum(counts) == len(whole.state)
sharded.consolidate_state_dict(to=1)
kept = [sharded.state_dict() if me == 1 else None]
dist.broadcast_object_list(kept, 1)
for key, values in whole.state_dict()["state"].items():
    for name, value in values.items():
        assert ut.equal(ut.as_tensor(value), ut.as_tensor(kept[0]["state"][key][name])), (key, name)
if me == 0:
    try:
        sharded.state_dict()
    except ValueError as error:
        print("told", error, flush=True)
c, _ = trained(zero, 3, resume=(a.state_dict(), kept[0]))
d, _ = trained(plain, 3, resume=(b.state_dict(), whole.state_dict()))
same(c, d)
print("fine", flush=True)
"""
    )
    out = run(tmp_path, 3, body)
    assert out.count("fine") == 3
    assert "call consolidate_state_dict" in out


CHECKPOINT = """
from undertow.distributed import checkpoint

if len(sys.argv) > 3:
    dist.init_process_group(timeout=200)
me = dist.get_rank() if dist.is_initialized() else 0
n = dist.get_world_size() if dist.is_initialized() else 1


def state(seed):
    g = ut.Generator().manual_seed(seed)
    model = ut.nn.Linear(30, 20)
    with ut.no_grad():
        for p in model.parameters():
            p.copy_(ut.randn(*p.shape, generator=g))
    optimizer = ut.optim.Adam(model.parameters(), lr=0.1 * (seed + 1))
    (model(ut.ones(2, 30)) ** 2).sum().backward()
    optimizer.step()
    return {
        "model": model, "optimizer": optimizer, "step": 7 * seed, "name": f"n{seed}", "none": None,
        "big": ut.randn(1500, 1000, generator=g), "list": [1, ut.full((2,), float(seed))],
        "half": ut.randn(9, generator=g).bfloat16(), "strided": ut.randn(4, 6, generator=g).t(),
    }
"""


@needs_mpi
def test_checkpoints_of_one_number_of_processes_are_read_by_another(tmp_path: Path) -> None:
    """Saved by 3, now and later, read by 1 and by 2."""
    save = """
    kept = state(1)
    checkpoint.save(kept, checkpoint_id=sys.argv[1])
    checkpoint.save(kept, checkpoint_id=sys.argv[1])  # in the place of the first
    mine = {f"rank{me}": ut.full((3,), float(me))}
    future = checkpoint.async_save({**kept, "mine": mine}, checkpoint_id=sys.argv[2])
    kept["big"].zero_()  # what is saved was copied
    dist.all_reduce(kept["half"])
    future.result()
    """
    load = """
    wanted = state(1)
    for place in sys.argv[1:3]:
        found = state(2)
        checkpoint.load(found, checkpoint_id=place)
        assert (found["step"], found["name"], found["none"], found["list"][0]) == (7, "n1", None, 1)
        pairs = [(found[k], wanted[k]) for k in ("big", "half", "strided")]
        pairs.append((found["list"][1], wanted["list"][1]))
        pairs.append((found["model"].weight, wanted["model"].weight))
        assert all(ut.equal(a, b) for a, b in pairs)
        assert found["optimizer"].param_groups[0]["lr"] == 0.2
        for p, q in zip(found["model"].parameters(), wanted["model"].parameters()):
            a, b = found["optimizer"].state[p], wanted["optimizer"].state[q]
            assert a.keys() == b.keys()
            assert all(ut.equal(ut.as_tensor(a[k]), ut.as_tensor(b[k])) for k in a)
    rest = {"mine": {f"rank{i}": ut.zeros(3) for i in range(3)}}
    checkpoint.load(rest, checkpoint_id=sys.argv[2])
    assert [t.tolist() for t in rest["mine"].values()] == [[float(i)] * 3 for i in range(3)]
    print("fine", flush=True)
    """
    from textwrap import dedent

    places = tmp_path / "first", tmp_path / "second"
    run(tmp_path, 3, CHECKPOINT + dedent(save), *places, "group")
    assert sorted(p.name for p in places[0].iterdir()) == [
        *(f"{i}.safetensors" for i in range(3)),
        "metadata.json",
    ]
    assert run(tmp_path, 1, CHECKPOINT + dedent(load), *places).count("fine") == 1
    assert run(tmp_path, 2, CHECKPOINT + dedent(load), *places, "group").count("fine") == 2
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


@needs_mpi
def test_a_disk_that_is_full_for_one_process(tmp_path: Path) -> None:
    """Every process has the error, which names the rank, and the old checkpoint stays."""
    body = """
    from undertow.distributed import checkpoint
    from undertow.distributed.checkpoint import writing

    dist.init_process_group(timeout=200)
    me = dist.get_rank()
    checkpoint.save({"x": ut.ones(3)}, checkpoint_id=sys.argv[1])
    if me == 1:
        def full(*args):
            raise OSError(28, "No space left on device")
        writing.write_file = full
    try:
        checkpoint.save({"x": ut.zeros(3), f"own{me}": ut.ones(2)}, checkpoint_id=sys.argv[1])
    except checkpoint.CheckpointException as error:
        print("TOLD", error, flush=True)
    dist.barrier()
    now = {"x": ut.zeros(3)}
    checkpoint.load(now, checkpoint_id=sys.argv[1])
    assert now["x"].tolist() == [1, 1, 1]
    """
    out = run(tmp_path, 2, body, tmp_path / "kept")
    assert out.count("TOLD [save] the checkpoint was not written; rank 1: OSError: [Errno 28]") == 2
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


@needs_mpi
def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    """A small file system: each process names who had no room, and nothing else is left there."""
    place = tmp_path / "disk"
    place.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=3m", "none", str(place)]
    if shutil.which("mount") is None or subprocess.run(words, check=False).returncode:
        pytest.skip("a file system of its own needs root")
    body = """
    from undertow.distributed import checkpoint

    dist.init_process_group()
    me, kept = dist.get_rank(), sys.argv[1] + "/kept"
    checkpoint.save({"x": ut.ones(3)}, checkpoint_id=kept)
    for save in (checkpoint.save, lambda *a, **k: checkpoint.async_save(*a, **k).result()):
        try:
            save({"x": ut.zeros(3), f"own{me}": ut.ones(10**6)}, checkpoint_id=kept)
        except checkpoint.CheckpointException as error:
            print("TOLD", error)
    now = {"x": ut.zeros(3)}
    checkpoint.load(now, checkpoint_id=kept)
    assert now["x"].tolist() == [1, 1, 1]
    dist.barrier()
    """
    try:
        out = run(tmp_path, 2, body, place)
        assert len(re.findall(r"TOLD \[save\] .* rank \d: .*No space left", out)) == 4, out
        assert [p.name for p in place.iterdir()] == ["kept"]
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_what_a_checkpoint_cannot_hold_or_give(tmp_path: Path) -> None:
    place = tmp_path / "c"
    with pytest.raises(TypeError, match='got object at /"a"'):
        checkpoint.save({"a": object()}, checkpoint_id=place)
    checkpoint.save({"a": ut.ones(2), "b": (1, 2)}, checkpoint_id=place)
    with pytest.raises(ValueError, match=r"shape \(2,\) in .* and \(3,\) here"):
        checkpoint.load({"a": ut.ones(3)}, checkpoint_id=place)
    with pytest.raises(ValueError, match='has no tensor for /"c"'):
        checkpoint.load({"c": ut.ones(3)}, checkpoint_id=place)
    with pytest.raises(ValueError, match="is no checkpoint"):
        checkpoint.load({"c": ut.ones(3)}, checkpoint_id=tmp_path / "nowhere")
    (place / "metadata.json").write_text("{")
    with pytest.raises(ValueError, match="is damaged"):
        checkpoint.load({"a": ut.ones(2)}, checkpoint_id=place)


@needs_mpi
def test_saves_of_some_processes_and_of_those_that_end(tmp_path: Path) -> None:
    """`async_save` in a group does not shift the groups of others; destroying waits for it."""
    body = """
    from undertow.distributed import checkpoint

    dist.init_process_group(timeout=200)
    me, some = dist.get_rank(), dist.new_group([0, 1])
    if me < 2:
        place = sys.argv[1] + "/some"
        checkpoint.async_save({"x": ut.ones(2)}, checkpoint_id=place, process_group=some).result()
    others = dist.new_group([1, 2])
    dist.barrier(others)
    checkpoint.async_save({"x": ut.ones(1 << 20)}, checkpoint_id=sys.argv[1] + "/all")
    open(sys.argv[1] + "/file", "w").close()
    checkpoint.async_save({"x": ut.ones(1)}, checkpoint_id=sys.argv[1] + "/file/below")
    dist.destroy_process_group()
    assert os.path.exists(sys.argv[1] + "/all/metadata.json")
    """
    out = run(tmp_path, 3, body, tmp_path)
    assert (tmp_path / "some" / "metadata.json").exists()
    assert out.count("[async_save] [save] the checkpoint was not written; rank 0: NotADir") == 3


def test_a_checkpoint_that_cannot_get_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old one gets its name back."""
    place = tmp_path / "c"
    checkpoint.save({"a": ut.ones(2)}, checkpoint_id=place)
    rename = Path.rename

    def refuse(self: Path, target: Path) -> Path:
        if target == place and not self.name.endswith(".old"):
            raise OSError(5, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(checkpoint.CheckpointException, match="Input/output error"):
        checkpoint.save({"a": ut.zeros(2)}, checkpoint_id=place)
    found = {"a": ut.zeros(2)}
    checkpoint.load(found, checkpoint_id=place)
    assert found["a"].tolist() == [1, 1]
    assert [p.name for p in tmp_path.iterdir()] == ["c"]
