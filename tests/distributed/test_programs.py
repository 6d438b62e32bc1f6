"""Programs written for torch, in the shape of well-known ones, under `undertow run -n`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from processes import SOURCE, needs_mpi

# As nanoGPT trains: everything from the environment, accumulation by require_backward_grad_sync.
CHARACTERS = """
import math, os
import torch
import torch.nn as nn
from torch.distributed import destroy_process_group, init_process_group
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

ddp = int(os.environ.get("RANK", -1)) != -1
assert ddp
init_process_group(backend="gloo")
ddp_rank, ddp_local_rank = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
ddp_world_size = int(os.environ["WORLD_SIZE"])
master_process = ddp_rank == 0
seed_offset = ddp_rank
gradient_accumulation_steps = 4
assert gradient_accumulation_steps % ddp_world_size == 0
gradient_accumulation_steps //= ddp_world_size
torch.manual_seed(1337 + seed_offset)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.ln = nn.LayerNorm(width)
        self.attention = nn.Linear(width, 3 * width)
        inner = 4 * width
        self.mlp = nn.Sequential(nn.Linear(width, inner), nn.GELU(), nn.Linear(inner, width))

    def forward(self, x):
        q, k, v = self.attention(self.ln(x)).split(x.shape[-1], dim=2)
        x = x + F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.mlp(x)


class GPT(nn.Module):
    def __init__(self, symbols=27, width=32):
        super().__init__()
        self.wte = nn.Embedding(symbols, width)
        self.blocks = nn.ModuleList([Block(width) for _ in range(2)])
        self.lm_head = nn.Linear(width, symbols, bias=False)
        self.wte.weight = self.lm_head.weight

    def forward(self, idx, targets):
        x = self.wte(idx)
        for block in self.blocks:
            x = block(x)
        logits = self.lm_head(x)
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))


text = torch.tensor([ord(c) % 27 for c in "the undertow runs back under the wave. " * 40])


def get_batch():
    ix = torch.randint(len(text) - 17, (8,))
    x = torch.stack([text[i : i + 16] for i in ix])
    return x, torch.stack([text[i + 1 : i + 17] for i in ix])


model = GPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scaler = torch.amp.GradScaler("cpu", enabled=False)
model = DDP(model, device_ids=None)
raw_model = model.module
first = None
for step in range(25):
    for micro_step in range(gradient_accumulation_steps):
        model.require_backward_grad_sync = micro_step == gradient_accumulation_steps - 1
        logits, loss = model(*get_batch())
        loss = loss / gradient_accumulation_steps
        scaler.scale(loss).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    lossf = loss.item() * gradient_accumulation_steps
    first = first or lossf
assert lossf < 0.7 * first, (first, lossf)
digest = torch.stack([p.detach().double().sum() for p in raw_model.parameters()])
others = [torch.zeros_like(digest) for _ in range(ddp_world_size)]
torch.distributed.all_gather(others, digest)
assert all(torch.equal(o, digest) for o in others)
if master_process:
    print("learned", flush=True)
destroy_process_group()
"""

# As pytorch/examples' distributed/ddp does: a launcher's environment, save on one, load on all.
EXAMPLE = """
import os, sys, tempfile
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.optim as optim
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class ToyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net1 = nn.Linear(10, 10)
        self.relu = nn.ReLU()
        self.net2 = nn.Linear(10, 5)

    def forward(self, x):
        return self.net2(self.relu(self.net1(x)))


dist.init_process_group("gloo" if dist.is_available() else None)
rank = dist.get_rank()
ddp_model = DDP(ToyModel())
loss_fn, optimizer = nn.MSELoss(), optim.SGD(ddp_model.parameters(), lr=0.001)
data = TensorDataset(torch.randn(64, 10), torch.randn(64, 5))
sampler = DistributedSampler(data)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for x, y in DataLoader(data, batch_size=8, sampler=sampler):
        optimizer.zero_grad()
        loss_fn(ddp_model(x), y).backward()
        optimizer.step()
path = os.path.join(sys.argv[1], "model.checkpoint")
if rank == 0:
    torch.save(ddp_model.state_dict(), path)
dist.barrier()
ddp_model.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
total = torch.tensor([float(len(sampler))])
dist.all_reduce(total, op=dist.ReduceOp.SUM)
assert total.item() == 64
if rank == 0:
    print("learned", flush=True)
dist.destroy_process_group()
"""


@needs_mpi
@pytest.mark.parametrize("program", [CHARACTERS, EXAMPLE], ids=["characters", "example"])
def test_a_program_for_torch(program: str, tmp_path: Path) -> None:
    """It imports torch, finds Undertow, and its two processes learn together."""
    script = tmp_path / "train.py"
    script.write_text(program)
    done = subprocess.run(
        [sys.executable, "-m", "undertow", "run", "-n", "2", str(script), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("learned") == 1
