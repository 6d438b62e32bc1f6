"""`nn.SyncBatchNorm` over processes against one batch norm that sees all of the batch."""

from __future__ import annotations

from pathlib import Path

from processes import needs_mpi, run

BODY = """
dist.init_process_group(timeout=200)
me, n = dist.get_rank(), dist.get_world_size()
g = ut.Generator().manual_seed(1)
whole = ut.randn(9, 3, 4, generator=g, dtype=ut.float64) * 3 + 5
weights = ut.randn(9, 3, 4, generator=g, dtype=ut.float64)
ends = [0, 2, 5, 9] if n == 3 else [0, 4, 9]  # uneven
mine = slice(ends[me], ends[me + 1])
for momentum in (0.1, None):
    plain = ut.nn.BatchNorm1d(3, momentum=momentum, dtype=ut.float64)
    with ut.no_grad():
        plain.weight.copy_(ut.tensor([1.0, 2.0, -1.0]))
    model = ut.nn.Sequential(ut.nn.BatchNorm1d(3, momentum=momentum, dtype=ut.float64))
    model = ut.nn.SyncBatchNorm.convert_sync_batchnorm(model)
    model[0].load_state_dict(plain.state_dict())
    for step in range(2):
        x, part = whole.clone().requires_grad_(), whole[mine].clone().requires_grad_()
        wanted, found = plain(x), model(part)
        assert ut.allclose(found, wanted[mine], rtol=1e-12, atol=1e-12)
        a = ut.autograd.grad((wanted.tanh() * weights).sum(), [x, plain.weight, plain.bias])
        (found.tanh() * weights[mine]).sum().backward()
        assert ut.allclose(part.grad, a[0][mine], rtol=1e-9, atol=1e-11)
        for p, q in zip((model[0].weight, model[0].bias), a[1:]):
            total = p.grad.clone()
            dist.all_reduce(total)
            assert ut.allclose(total, q, rtol=1e-9, atol=1e-11)
            p.grad = None
    for name, value in plain.state_dict().items():
        other = model[0].state_dict()[name]
        assert ut.allclose(other.double(), value.double(), rtol=1e-12), name
    model.eval(), plain.eval()
    assert ut.allclose(model(whole[:1 + me]), plain(whole[:1 + me]), rtol=1e-12)  # no collective
try:
    ut.nn.parallel.DistributedDataParallel(model, shards=n if n == 2 else 2 * n)
except (NotImplementedError, ValueError) as error:
    print("TOLD", error, flush=True)
model.train()
ddp = ut.nn.parallel.DistributedDataParallel(
    ut.nn.Sequential(ut.nn.Conv1d(3, 4, 3), ut.nn.SyncBatchNorm(4), ut.nn.Conv1d(4, 2, 1))
)
ut.manual_seed(me)
for _ in range(3):
    (ddp(ut.randn(2, 3, 6)) ** 2).mean().backward()
hashes = [None] * n
kept = [t.tolist() for t in ddp.module[1].state_dict().values()]
dist.all_gather_object(hashes, (kept, [p.grad.tolist() for p in ddp.parameters()]))
assert all(h == hashes[0] for h in hashes)
try:
    ut.nn.SyncBatchNorm(2)(ut.ones(1 if me == 0 else 0, 2))
except ValueError as error:
    print("FEW", error, flush=True)
# Halves: sums that float16 does not have
many = ut.full((300, 2, 3), 200.0 + 100 * me).half().requires_grad_()
layer = ut.nn.SyncBatchNorm(2)
y = layer(many)
every = ut.cat([ut.full((300, 2, 3), 200.0 + 100 * i) for i in range(n)])
wanted = ut.nn.BatchNorm1d(2)(every)[300 * me : 300 * (me + 1)]
assert y.dtype == ut.float16 and ut.allclose(y.float(), wanted, atol=1e-3)
y.sum().backward()
assert many.grad.dtype == ut.float16 and many.grad.isfinite().all()
print("DONE", flush=True)
"""


@needs_mpi
def test_statistics_and_gradients_are_those_of_the_whole_batch(tmp_path: Path) -> None:
    out = run(tmp_path, 2, BODY)
    assert out.count("DONE") == 2
    assert out.count("TOLD [DistributedDataParallel] shards run one after the other") == 2
    assert out.count("FEW [SyncBatchNorm] training needs more than one element") == 2
    assert run(tmp_path, 3, BODY).count("DONE") == 3
