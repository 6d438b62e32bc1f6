"""`fully_shard`: parameters in pieces, with the bits of DistributedDataParallel."""

from __future__ import annotations

from pathlib import Path

import pytest

import undertow as ut
from processes import needs_mpi, run
from undertow.distributed.fsdp import fully_shard

BODY = """
import hashlib
from undertow.distributed import fsdp
from undertow.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group(timeout=200)
me, n = dist.get_rank(), dist.get_world_size()


class Net(ut.nn.Module):
    def __init__(self):
        super().__init__()
        ut.manual_seed(5 + 0 * me)
        self.first = ut.nn.Linear(6, 33)
        self.layers = ut.nn.ModuleList([ut.nn.Linear(33, 33) for _ in range(3)])
        self.norm = ut.nn.LayerNorm(33)
        self.last = ut.nn.Linear(33, 1)

    def forward(self, x):
        x = self.first(x)
        for layer in self.layers:
            x = x + ut.nn.functional.gelu(layer(x))
        return self.last(self.norm(x))


def sharded(net, **options):
    for layer in net.layers:
        fsdp.fully_shard(layer, **options)
    return fsdp.fully_shard(net, **options)


def trained(model, steps=4, optimizer=None, seed=0):
    optimizer = optimizer or ut.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)
    g = ut.Generator().manual_seed(100 * seed + me)
    for _ in range(steps):
        optimizer.zero_grad()
        if isinstance(model, DDP):
            with model.no_sync():
                (model(ut.randn(5, 6, generator=g)) ** 2).mean().backward()
        else:
            model.set_requires_gradient_sync(False)
            (model(ut.randn(5, 6, generator=g)) ** 2).mean().backward()
            model.set_requires_gradient_sync(True)
        (model(ut.randn(5, 6, generator=g)) ** 2).mean().backward()
        optimizer.step()
    return optimizer


def same(a, b):
    assert list(a) == list(b), (list(a), list(b))
    for name in a:
        assert a[name].shape == b[name].shape and ut.equal(a[name], b[name]), name
"""

BITS = """
ddp = DDP(Net())
whole = trained(ddp)
for frees in (None, True, False):
    model = sharded(Net(), reshard_after_forward=frees)
    optimizer = trained(model)
    same(model.state_dict(), ddp.module.state_dict())
# 1/n of parameters, gradients and state; nothing whole is left
wanted = sum(p.numel() for p in ddp.parameters())
mine = sum(p.numel() for p in model.parameters())
assert mine < wanted * 0.7 or n == 1, (mine, wanted)
for p in model.parameters():
    assert p.grad.shape == p.shape and optimizer.state[p]["exp_avg"].shape == p.shape
for unit in fsdp.module.units(model):
    assert not unit.gathered
    assert all(r.full._array.strides == (0,) * r.full.ndim for r in unit.rows)
# states: of the optimiser, sharded and full, and on with them
full = fsdp.optim_state_dict(model, optimizer)
for key, values in whole.state_dict()["state"].items():
    for name, value in values.items():
        assert ut.equal(ut.as_tensor(value), ut.as_tensor(full["state"][key][name])), (key, name)
other = sharded(Net())
other.load_state_dict(model.state_dict())
second = ut.optim.AdamW(other.parameters(), lr=1e-2, weight_decay=0.1)
fsdp.load_optim_state_dict(other, second, full)
third = sharded(Net())
third.load_sharded_state_dict(model.sharded_state_dict())
same(third.state_dict(), model.state_dict())
trained(other, optimizer=second, seed=1)
trained(ddp, optimizer=whole, seed=1)
same(other.state_dict(), ddp.module.state_dict())
# a norm over all processes; the library's own would see rows only
norm = other.clip_grad_norm_(1e-3)
wanted = ut.nn.utils.clip_grad_norm_(ddp.parameters(), 1e-3)
assert ut.allclose(norm, wanted, rtol=1e-5)
try:
    ut.nn.utils.clip_grad_norm_(other.parameters(), 1.0)
except NotImplementedError as error:
    assert "clip_grad_norm_" in str(error)
else:
    raise AssertionError
# of a parent that is not sharded: whole; of a module inside of a unit: refused, but loaded
parent = ut.nn.Sequential(sharded(Net()), ut.nn.Linear(1, 2))
parent[0].load_state_dict(model.state_dict())
kept = parent.state_dict()
same({k[2:]: v for k, v in kept.items() if k.startswith("0.")}, model.state_dict())
parent.load_state_dict({k: ut.full_like(v, 3.0) for k, v in kept.items()})
assert all((v == 3).all() for v in parent.state_dict().values())
parent.load_state_dict(kept)
same(parent[0].state_dict(), model.state_dict())
try:
    parent[0].first.state_dict()
except NotImplementedError as error:
    assert "[state_dict] this Linear is part of a module that was sharded" in str(error)
else:
    raise AssertionError
parent[0].first.load_state_dict({"weight": ut.zeros(33, 6), "bias": ut.ones(33)})
assert (parent.state_dict()["0.first.bias"] == 1).all()
for rows, assign in ((32, False), (33, True)):
    try:
        parent[0].first.load_state_dict({"weight": ut.zeros(rows, 6)}, strict=False, assign=assign)
    except (ValueError, NotImplementedError) as error:
        assert "[load_state_dict]" in str(error)
    else:
        raise AssertionError
with fsdp.summon_full_params(other):
    with ut.no_grad():
        other.first.weight.fill_(2.0)
assert (other.state_dict()["first.weight"] == 2).all()
from undertow.distributed import checkpoint
try:
    checkpoint.save({"o": second}, checkpoint_id="nowhere")
except NotImplementedError as error:
    assert "optim_state_dict" in str(error)
else:
    raise AssertionError
print("fine", flush=True)
"""


@needs_mpi
@pytest.mark.parametrize("count", [2, 3])
def test_the_bits_of_data_parallel(tmp_path: Path, count: int) -> None:
    """Also after loading states, with gradients that are summed up, and uneven rows."""
    assert run(tmp_path, count, BODY + BITS).count("fine") == count


@needs_mpi
def test_mixed_precision_checkpoints_and_errors(tmp_path: Path) -> None:
    body = """
policy = fsdp.MixedPrecisionPolicy(ut.bfloat16, ut.float32, ut.float32)
seen = []
net = Net()
net.last.register_forward_pre_hook(lambda m, args: seen.append((m.weight.dtype, args[0].dtype)))
for layer in net.layers:
    fsdp.fully_shard(layer, mp_policy=fsdp.MixedPrecisionPolicy(ut.bfloat16, ut.float32))
model = fsdp.fully_shard(net, mp_policy=policy)
plain = Net()
x = ut.randn(4, 6)
out = model(x)
assert out.dtype == ut.float32 and seen == [(ut.bfloat16, ut.bfloat16)]
assert ut.allclose(out, plain(x), atol=0.05)
out.mean().backward()
assert all(p.dtype == p.grad.dtype == ut.float32 for p in model.parameters())
plain(x).mean().backward()
with fsdp.summon_full_params(model):
    assert model.first.weight.dtype == ut.float32
r = model.first.weight._rows_of
mine = plain.first.weight.grad.clone()
dist.all_reduce(mine, dist.ReduceOp.AVG)
assert ut.allclose(model.first.weight.grad, mine[r.mine], atol=0.02)

# recomputed activations: the same gradients as without
from undertow.utils.checkpoint import checkpoint as recomputed
class Blocks(Net):
    def forward(self, x):
        x = self.first(x)
        for layer in self.layers:
            x = x + recomputed(layer, x, use_reentrant=False)
        return self.last(x) + 0 * self.norm(x).sum()
a, b = sharded(Blocks(), reshard_after_forward=True), DDP(Blocks())
for m in (a, b):
    (m(x) ** 2).mean().backward()
for p, q in zip(a.parameters(), b.parameters()):
    assert ut.equal(p.grad, q.grad[p._rows_of.mine])

# a failed pass is given up; then a gradient that is missing is told
def fail(g):
    raise ValueError("bad batch")
y = x.clone().requires_grad_()
y.register_hook(fail)
a.zero_grad()
try:
    a(y).sum().backward()
except ValueError:
    a.zero_grad()
(a(x) ** 2).mean().backward()
for p, q in zip(a.parameters(), b.parameters()):
    assert ut.equal(p.grad, q.grad[p._rows_of.mine])
class Half(Net):
    def forward(self, x):
        return self.first(x)
c = fsdp.fully_shard(Half())
try:
    c(x).sum().backward()
except Exception as error:
    print("TOLD", error, flush=True)
"""
    out = run(tmp_path, 2, BODY + body)
    assert out.count("TOLD [fully_shard] no gradient came for 'layers.0.weight'") == 2


def test_one_process_and_what_is_refused() -> None:
    ut.distributed.init_process_group(rank=0, world_size=1)
    try:
        model = fully_shard(ut.nn.Linear(3, 2))
        x = ut.ones(4, 3)
        model(x).sum().backward()
        assert model.weight.grad is not None
        assert model.weight.grad.tolist() == [[4.0] * 3] * 2
        assert isinstance(model, ut.nn.Linear)
        assert type(model).__name__ == "FSDPLinear"
        with pytest.raises(ValueError, match="sharded already"):
            fully_shard(model)
        with pytest.raises(NotImplementedError, match="mesh is not supported"):
            fully_shard(ut.nn.Linear(1, 1), mesh=object())
        scalar = ut.nn.Module()
        scalar.p = ut.nn.Parameter(ut.tensor(1.0))
        with pytest.raises(NotImplementedError, match="'p' is a scalar"):
            fully_shard(scalar)
    finally:
        ut.distributed.destroy_process_group()
