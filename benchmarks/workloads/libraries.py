"""Steps of models as their own libraries write them, for whichever `torch` a process has.

It is also the process that runs them: it makes the workload that it is told, and then a block of
runs for every line that it reads, and writes a line of JSON for each.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

Step = Callable[[], Any]
BLOCK = 3  # runs for a line, of which the best counts


def _step(model: Any, optimizer: Any, loss: Callable[[], Any]) -> tuple[Step, Step]:
    """Forward, backward and an update; and the loss of the untrained model, without dropout."""
    _settle(model)

    def check() -> Any:
        import torch

        model.eval()
        with torch.no_grad():
            found = float(loss())
        model.train()
        return found

    def step() -> None:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return step, check


def _settle(model: Any) -> None:
    """The same weights in every library: drawn here, and zeros for biases."""
    import torch

    rng = np.random.default_rng(0)
    with torch.no_grad():
        for name, p in sorted(model.named_parameters()):
            if name.endswith("bias"):
                p.zero_()
            elif p.ndim > 1:
                fan = int(np.prod(p.shape[1:]))
                drawn = rng.standard_normal(tuple(p.shape)).astype("f") / np.sqrt(np.float32(fan))
                p.copy_(torch.from_numpy(drawn))


def _floats(*shape: int) -> Any:
    import torch

    return torch.from_numpy(np.random.default_rng(1).standard_normal(shape).astype("f"))


def _whole(high: int, *shape: int) -> Any:
    import torch

    return torch.from_numpy(np.random.default_rng(2).integers(0, high, shape))


def resnet50() -> tuple[Step, Step]:
    """ResNet-50 of torchvision, 2 images, SGD."""
    import torch
    from torchvision.models import resnet50

    model = resnet50(weights=None)
    x, y = _floats(2, 3, 224, 224), _whole(1000, 2)
    sgd = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    return _step(model, sgd, lambda: torch.nn.functional.cross_entropy(model(x), y))


def vit_tiny() -> tuple[Step, Step]:
    """ViT-tiny of timm, 4 images, AdamW."""
    import timm
    import torch

    model = timm.create_model("vit_tiny_patch16_224")
    x, y = _floats(4, 3, 224, 224), _whole(1000, 4)
    adam = torch.optim.AdamW(model.parameters(), lr=1e-3)
    return _step(model, adam, lambda: torch.nn.functional.cross_entropy(model(x), y))


def bert_tiny() -> tuple[Step, Step]:
    """BERT-tiny of transformers (2 layers, 128 wide), 8 texts of 128 tokens, AdamW."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    sizes = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2}
    model = BertForSequenceClassification(BertConfig(**sizes, intermediate_size=512))
    x, y = _whole(30522, 8, 128), _whole(2, 8)
    adam = torch.optim.AdamW(model.parameters(), lr=1e-3)
    return _step(model, adam, lambda: model(input_ids=x, labels=y).loss)


def _gpt2(layers: int = 2) -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    # Two of its twelve layers, and a vocabulary that does not hide them.
    return GPT2LMHeadModel(GPT2Config(n_layer=layers, vocab_size=8192, bos_token_id=0))


def gpt2_layers() -> tuple[Step, Step]:
    """2 layers of GPT-2 small of transformers, 2 texts of 128 tokens, AdamW."""
    import torch

    model, x = _gpt2(), _whole(8192, 2, 128)
    adam = torch.optim.AdamW(model.parameters(), lr=1e-4)
    return _step(model, adam, lambda: model(input_ids=x, labels=x).loss)


def generation() -> tuple[Step, Step]:
    """The same layers write 48 tokens, one by one with the keys and values kept."""
    import torch

    model, x = _gpt2(), _whole(8192, 1, 8)
    _settle(model)
    model.eval()
    how = {"max_new_tokens": 48, "min_new_tokens": 48, "do_sample": False, "pad_token_id": 0}

    def run() -> Any:
        return model.generate(x, attention_mask=torch.ones_like(x), **how)

    return run, lambda: float(run().float().sum())


def whisper_tiny() -> tuple[Step, Step]:
    """Whisper-tiny of transformers, 30 seconds of sound and 64 tokens, AdamW."""
    import torch
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    model = WhisperForConditionalGeneration(WhisperConfig())
    x, y = _floats(1, 80, 3000), _whole(50000, 1, 64)
    adam = torch.optim.AdamW(model.parameters(), lr=1e-4)
    return _step(model, adam, lambda: model(input_features=x, labels=y).loss)


def patchtst() -> tuple[Step, Step]:
    """PatchTST of transformers, 16 windows of 96 steps of 7 series, Adam."""
    import torch
    from transformers import PatchTSTConfig, PatchTSTForPrediction

    lengths = {"context_length": 96, "patch_length": 16, "patch_stride": 8, "prediction_length": 96}
    model = PatchTSTForPrediction(PatchTSTConfig(num_input_channels=7, **lengths))
    x, y = _floats(16, 96, 7), _floats(16, 96, 7)
    adam = torch.optim.Adam(model.parameters(), lr=1e-3)
    return _step(model, adam, lambda: model(past_values=x, future_values=y).loss)


def gcn() -> tuple[Step, Step]:
    """A GCN of PyG on a graph of Cora's size, Adam."""
    import torch
    from torch_geometric.nn import GCN

    model = GCN(1433, 16, 2, 7, dropout=0.5)
    x, edges, y = (_floats(2708, 1433) > 2).float(), _whole(2708, 2, 10556), _whole(7, 2708)
    adam = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    return _step(model, adam, lambda: torch.nn.functional.cross_entropy(model(x, edges), y))


def small_cnn() -> tuple[Step, Step]:
    """A CNN of two layers, an epoch of 640 images by a DataLoader with a transform, Adam."""
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, Dataset

    x, y = _floats(640, 1, 28, 28), _whole(10, 640)

    class Images(Dataset):  # type: ignore[type-arg,misc]
        """Images one by one, normalised as they are asked for."""

        def __len__(self) -> int:
            return len(x)

        def __getitem__(self, i: int) -> Any:
            return (x[i] - 0.13) / 0.31, y[i]

    model = nn.Sequential(
        *(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(32 * 49, 10)),
    )
    _settle(model)
    adam = torch.optim.Adam(model.parameters(), lr=1e-3)
    loader = DataLoader(Images(), batch_size=64, shuffle=True)

    def run() -> None:
        for images, labels in loader:
            adam.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            adam.step()

    with torch.no_grad():
        first = float(nn.functional.cross_entropy(model(x), y))
    return run, lambda: first


WORKLOADS: dict[str, Callable[[], tuple[Step, Step]]] = {
    made.__name__: made
    for made in (
        *(resnet50, vit_tiny, bert_tiny, gpt2_layers, whisper_tiny, patchtst, gcn),
        *(generation, small_cnn),
    )
}


def serve(name: str, threads: int) -> None:
    """Make a workload, and run a block of it for every line of the input."""
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    step, check = WORKLOADS[name]()
    told: dict[str, Any] = {"name": name, "torch": torch.__version__, "loss": check()}
    for _ in range(2):  # compiles, and fills caches
        step()
    print(json.dumps(told), flush=True)
    clock = time.process_time if threads == 1 else time.perf_counter
    for _ in sys.stdin:
        best = float("inf")
        for _ in range(BLOCK):
            start = clock()
            step()
            best = min(best, clock() - start)
        print(json.dumps({"name": name, "seconds": best}), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
