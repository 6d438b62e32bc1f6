"""DistributedDataParallel in real processes: against one process, and bits for any number."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

import pytest

import undertow as ut
from processes import needs_mpi, run

MODEL = """
import hashlib
from undertow.nn.parallel import DistributedDataParallel as DDP
import undertow.nn.functional as F

dist.init_process_group("gloo", timeout=200)
me, n = dist.get_rank(), dist.get_world_size()


def network(seed=0):
    ut.manual_seed(seed)
    return ut.nn.Sequential(
        ut.nn.Linear(20, 600), ut.nn.Tanh(), ut.nn.Linear(600, 700), ut.nn.ReLU(),
        ut.nn.Linear(700, 3),
    )


def data(rows=24, seed=5):
    g = ut.Generator().manual_seed(seed)
    x = ut.randn(rows, 20, generator=g)
    return x, ut.randn(rows, 3, generator=g)


def alike(model, tolerance=0.0):
    # the same parameters and gradients at every rank
    for name, p in model.named_parameters():
        for value in (p.detach(), p.grad):
            if value is None:
                continue
            found = [ut.zeros_like(value) for _ in range(n)]
            dist.all_gather(found, value)
            assert all(ut.equal(found[0], other) for other in found), name


def close(a, b):
    for (name, p), q in zip(a.named_parameters(), b.parameters()):
        assert ut.allclose(p.grad, q.grad, rtol=1e-4, atol=1e-6), name
"""


@needs_mpi
@pytest.mark.parametrize("count", [2, 3])
def test_gradients_are_averages(count: int, tmp_path: Path) -> None:
    """As one process has them for the whole batch; also accumulated, as views, and by hooks."""
    body = """
    x, y = data()
    mine = slice(me, None, n)
    whole = network()
    F.mse_loss(whole(x), y).backward()

    for options in (dict(), dict(gradient_as_bucket_view=True), dict(bucket_cap_mb=0.001),
                    dict(find_unused_parameters=True), dict(static_graph=True)):
        ddp = DDP(network(seed=me), **options)  # rank 0's parameters are everybody's
        assert list(ddp.state_dict())[0] == "module.0.weight"
        for _ in range(2):
            ddp.zero_grad()
            F.mse_loss(ddp(x[mine]), y[mine]).backward()
            alike(ddp)
            close(ddp.module, whole)

    # accumulation: two halves, of which the first is not sent
    ddp = DDP(network())
    half = len(x[mine]) // 2
    with ddp.no_sync():
        F.mse_loss(ddp(x[mine][:half]), y[mine][:half]).div(2).backward()
    before = ddp.module[0].weight.grad.clone()
    found = [ut.zeros_like(before) for _ in range(n)]
    dist.all_gather(found, before)
    assert not ut.equal(found[0], found[1])
    F.mse_loss(ddp(x[mine][half:]), y[mine][half:]).div(2).backward()
    alike(ddp)
    close(ddp.module, whole)

    from undertow.distributed.algorithms.ddp_comm_hooks import default_hooks as hooks
    half, brain = hooks.fp16_compress_hook, hooks.bf16_compress_hook
    for hook, digits in ((hooks.allreduce_hook, 1e-4), (half, 1e-2), (brain, 5e-2)):
        ddp = DDP(network())
        ddp.register_comm_hook(None, hook)
        F.mse_loss(ddp(x[mine]), y[mine]).backward()
        alike(ddp)
        for p, q in zip(ddp.parameters(), whole.parameters()):
            assert ut.allclose(p.grad, q.grad, rtol=digits, atol=digits * 1e-1), hook
    # halves whose sum float16 does not have
    for hook, dtype in ((half, ut.float32), (None, ut.float16)):
        ddp = DDP(ut.nn.Linear(1, 1, bias=False, dtype=dtype))
        if hook is not None:
            ddp.register_comm_hook(None, hook)
        ddp(ut.full((1, 1), 40000.0, dtype=dtype)).sum().backward()
        assert abs(ddp.module.weight.grad.item() - 40000) < 100

    from undertow.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power
    for rank, digits in ((len(x), 1e-3), (2, 0.35)):  # the gradients of so many rows; fewer
        ddp = DDP(network(), bucket_cap_mb=0.5)
        state = power.PowerSGDState(None, matrix_approximation_rank=rank, start_powerSGD_iter=2)
        ddp.register_comm_hook(state, power.powerSGD_hook)
        sums = [ut.zeros_like(p) for p in ddp.parameters()]
        steps = 2 if rank > 2 else 20  # errors are made up for by later steps
        for step in range(2 + steps):
            ddp.zero_grad()
            F.mse_loss(ddp(x[mine]), y[mine]).backward()
            alike(ddp)
            for s, p in zip(sums, ddp.parameters()):
                s += p.grad if step > 1 else 0.0
        assert state.errors and any(state.errors.values())
        for s, q in zip(sums, whole.parameters()):
            assert (s / steps - q.grad).norm() <= digits * q.grad.norm()
    print("fine", flush=True)
    """
    assert run(tmp_path, count, MODEL + dedent(body)).count("fine") == count


@needs_mpi
def test_unused_parameters(tmp_path: Path) -> None:
    """Zeros of who has not used them; nothing where nobody has; else an error with their names."""
    body = """
    class Branches(ut.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = ut.nn.Linear(4, 4)
            self.second = ut.nn.Linear(4, 4)
            self.never = ut.nn.Linear(4, 4)

        def forward(self, x, second):
            x = self.first(x)
            return self.second(x) if second else x

    ut.manual_seed(0)
    ddp = DDP(Branches(), find_unused_parameters=True)
    x = ut.ones(2, 4) * (me + 1)
    for step in range(2):
        ddp.zero_grad()
        ddp(x, second=me == 0).sum().backward()
        alike(ddp)
        assert ddp.module.never.weight.grad is None
        # one process of two used it, with these gradients
        inner = ddp.module.first(ut.ones(2, 4)).detach()
        wanted = inner.sum(0).expand(4, 4) / n
        assert ut.allclose(ddp.module.second.weight.grad, wanted, rtol=1e-5)
    strict = DDP(Branches())
    try:
        strict(x, second=me == 0).sum().backward()
    except RuntimeError as error:
        print("TOLD", me, str(error).splitlines()[0], flush=True)
        raise
    """
    out = run(tmp_path, 2, MODEL + dedent(body), expect=None)
    told = dict(re.findall(r"TOLD (\d) (.*)", out))
    assert re.search(
        r"no gradient came for 'never.(weight|bias)'.*find_unused", "\n".join(told.values())
    )


@needs_mpi
def test_uneven_inputs_and_buffers(tmp_path: Path) -> None:
    """`join` answers for who has no more inputs; buffers are those of rank 0."""
    body = """
    ut.manual_seed(me)
    model = ut.nn.Sequential(ut.nn.Linear(4, 5), ut.nn.BatchNorm1d(5), ut.nn.Linear(5, 1))
    ddp = DDP(model)
    optimizer = ut.optim.SGD(ddp.parameters(), lr=0.1)
    steps = 0
    with ddp.join():
        for _ in range(3 + 2 * me):
            optimizer.zero_grad()
            ddp(ut.randn(6, 4)).sum().backward()
            optimizer.step()
            steps += 1
    assert steps == 3 + 2 * me
    found = [None] * n
    dist.all_gather_object(found, [v.tolist() for v in model.state_dict().values()])
    assert found[0] == found[1]

    ddp = DDP(ut.nn.Linear(1, 1, bias=False))
    with ddp.join(divide_by_initial_world_size=False):
        for _ in range(1 + me):
            ddp.zero_grad()
            (ddp(ut.ones(1, 1)) * (me + 1)).sum().backward()
            seen = ddp.module.weight.grad.item()
    assert seen == (1.5 if me == 0 else 2.0), seen
    try:
        with ddp.join(throw_on_early_termination=True):
            for _ in range(1 + me):
                ddp(ut.ones(1, 1)).sum().backward()
    except ValueError as error:
        print("fine", error, flush=True)
    """
    assert run(tmp_path, 2, MODEL + dedent(body)).count("fine") == 2


SHARDS = """
ut.set_num_threads(int(sys.argv[1]))
from undertow.utils.data import DataLoader, DistributedSampler, TensorDataset

ut.manual_seed(me)  # rank 0's parameters are everybody's
model = ut.nn.Sequential(
    ut.nn.Conv1d(3, 16, 5, padding=2), ut.nn.BatchNorm1d(16), ut.nn.ReLU(), ut.nn.Flatten(),
    ut.nn.Dropout(0.3), ut.nn.Linear(320, 900), ut.nn.Tanh(), ut.nn.Linear(900, 4),
)
if me == 0:
    ut.manual_seed(0)
    for p in model.parameters():
        ut.nn.init.normal_(p, 0, 0.1)
ddp = DDP(model, shards=8)
optimizer = ut.optim.Adam(ddp.parameters(), lr=1e-3)
g = ut.Generator().manual_seed(1)
x = ut.randn(250, 3, 20, generator=g)
y = (x.sum((1, 2)) > 0).long() + 2 * (x[:, 0].sum(1) > 0).long()
sampler = DistributedSampler(TensorDataset(x, y), shards=8)
loader = DataLoader(TensorDataset(x, y), batch_size=64 // n, sampler=sampler)
steps = 0
for epoch in range(4):
    sampler.set_epoch(epoch)
    for a, b in loader:
        optimizer.zero_grad()
        if steps % 5 == 2:  # two passes in one step
            with ddp.no_sync():
                F.cross_entropy(ddp(a), b).backward()
        F.cross_entropy(ddp(a), b).backward()
        optimizer.step()
        steps += 1
mark = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters()))
if me == 0:
    for b in model.buffers():
        mark.update(b.numpy().tobytes())
    print("HASH", mark.hexdigest(), steps, flush=True)
alike(model)
"""


@needs_mpi
def test_the_same_bits_for_every_number_of_processes_and_threads(tmp_path: Path) -> None:
    """Shards of convolution, batch norm and dropout, a shuffled sampler, Adam: one hash."""
    hashes = set()
    for count, threads in [(1, 1), (1, 2), (2, 1), (2, 2), (4, 1), (8, 1)]:
        out = run(tmp_path, count, MODEL + SHARDS, threads)
        hashes |= set(re.findall(r"HASH (\w+ \d+)", out))
    assert len(hashes) == 1


def test_shards_in_one_process_without_a_group() -> None:
    """The gradient is that of the batch; what cannot be dealt out is an error."""
    ut.manual_seed(0)
    layer = ut.nn.Linear(3, 2)
    ddp = ut.nn.parallel.DistributedDataParallel(layer, shards=4)
    x = ut.randn(8, 3)
    wanted = ut.autograd.grad((layer(x) ** 2).mean(), list(layer.parameters()))
    out = ddp(x)
    assert ut.allclose(out, layer(x), rtol=1e-6)
    (out**2).mean().backward()
    for p, g in zip(layer.parameters(), wanted, strict=True):
        assert p.grad is not None
        assert ut.allclose(p.grad, g, rtol=1e-5)
    with pytest.raises(ValueError, match="a batch of 6 rows cannot be dealt to 4 shards"):
        ddp(ut.ones(6, 3))
    with pytest.raises(ValueError, match="power of two"):
        ut.nn.parallel.DistributedDataParallel(layer, shards=6)


def test_shards_after_zero_grad_a_failed_pass_and_a_freeze() -> None:
    """Sums of `no_sync` count unless they were cleared; what failed or is frozen does not."""
    layer = ut.nn.Linear(3, 1, bias=False)
    ddp = ut.nn.parallel.DistributedDataParallel(layer, shards=2, find_unused_parameters=True)
    x = ut.ones(2, 3)
    for clear, wanted in [(None, 2), (True, 1), (False, 1)]:
        ddp.zero_grad()
        with ddp.no_sync():
            ddp(x).mean().backward()
        if clear is not None:
            ddp.zero_grad(set_to_none=clear)
        ddp(x).mean().backward()
        assert layer.weight.grad is not None
        assert layer.weight.grad.tolist() == [[wanted] * 3]

    def fail(gradient: object) -> None:
        raise ValueError("bad batch")

    ddp.zero_grad()
    rows = x.clone().requires_grad_()
    rows.register_hook(fail)
    with pytest.raises(ValueError, match="bad batch"):
        ddp(rows).mean().backward()
    ddp(x).mean().backward()
    assert layer.weight.grad is not None
    assert layer.weight.grad.tolist() == [[1] * 3]
    both = ut.nn.Sequential(ut.nn.Linear(3, 1), ut.nn.Linear(1, 1))
    ddp = ut.nn.parallel.DistributedDataParallel(both, shards=2, find_unused_parameters=True)
    both[0].weight.requires_grad_(False)
    ddp(x).mean().backward()
    assert both[0].weight.grad is None
    assert both[1].weight.grad is not None


def test_a_scalar_parameter_without_a_gradient() -> None:
    class Net(ut.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = ut.nn.Parameter(ut.tensor(1.0))
            self.big = ut.nn.Parameter(ut.ones(600, 600))

        def forward(self) -> ut.Tensor:
            return self.big.sum()

    ut.distributed.init_process_group(rank=0, world_size=1)
    try:
        net = ut.nn.parallel.DistributedDataParallel(Net(), find_unused_parameters=True)
        net().backward()
        assert net.module.scale.grad is None
    finally:
        ut.distributed.destroy_process_group()


@needs_mpi
def test_after_a_pass_that_failed(tmp_path: Path) -> None:
    """The next pass is averaged; one that lacks a gradient ends the group; evaluation is free."""
    body = """
    class Net(ut.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = (ut.nn.Linear(2, 2, bias=False) for _ in range(2))

        def forward(self, x, way):
            if way == "b":
                return self.b(x)
            h = self.a(x)
            if way == "fail":
                h.register_hook(fail)
            return self.b(h) if way != "a" else h

    def fail(gradient):
        raise ValueError("bad batch")

    normed = DDP(ut.nn.Sequential(ut.nn.Linear(2, 2), ut.nn.BatchNorm1d(2)))
    with normed.join():
        for _ in range(1 + me):
            with normed.no_sync():
                normed(ut.randn(4, 2)).sum().backward()
            normed(ut.randn(4, 2)).sum().backward()
    normed.eval()
    with ut.no_grad():
        for _ in range(1 + 2 * me):
            normed(ut.randn(4, 2))
    normed.train()
    normed(ut.randn(4, 2)).sum().backward()

    x = ut.ones(1, 2) * (me + 1)
    for cap in (25, 1e-9):
        d = DDP(Net(), find_unused_parameters=True, bucket_cap_mb=cap)
        try:
            d(x, "fail").sum().backward()
        except ValueError:
            d.zero_grad()
        d(x, "a").sum().backward()
        assert d.module.a.weight.grad.tolist() == [[1.5, 1.5]] * 2

    d = DDP(Net(), bucket_cap_mb=1e-9)
    try:
        d(x, "ab" if me else "b").sum().backward()  # rank 0 lacks one, catches it, and goes on
    except Exception:
        d.zero_grad()
    try:
        d(x, "ab").sum().backward()
    except dist.DistributedError as error:
        print("TOLD", error, flush=True)
    """
    out = run(tmp_path, 2, MODEL + dedent(body))
    assert "cannot be used after an error: [DistributedDataParallel] no gradient came" in out
