"""Programs without a release: mamba-minimal and LLMs-from-scratch, below ECOSYSTEM_SOURCES."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType
from typing import Any

from part import Numbers, integers, part, source, step


def load(name: str, path: str) -> ModuleType:
    """A module out of a file."""
    folder, _, file = path.partition("/")
    where = source(folder) / file
    spec = importlib.util.spec_from_file_location(name, where)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@part("mamba-minimal", quick=True)
def mamba() -> Numbers:
    made: Any = load("mamba_minimal", "mamba-minimal/model.py")
    return step(
        made.Mamba(made.ModelArgs(d_model=16, n_layer=2, vocab_size=24)), integers(24, 2, 10)
    )


SMALL = {
    "vocab_size": 24,
    "context_length": 16,
    "emb_dim": 16,
    "n_heads": 2,
    "n_layers": 2,
    "drop_rate": 0.0,
    "qkv_bias": True,
}


@part("LLMs-from-scratch: GPT")
def gpt() -> Numbers:
    made: Any = load("llms_gpt", "LLMs-from-scratch/ch04/01_main-chapter-code/gpt.py")
    return step(made.GPTModel(SMALL), integers(24, 2, 12))


@part("LLMs-from-scratch: grouped queries")
def grouped_queries() -> Numbers:
    made: Any = load("llms_gqa", "LLMs-from-scratch/ch04/04_gqa/gpt_with_kv_gqa.py")
    return step(made.GPTModel({**SMALL, "n_kv_groups": 1}), integers(24, 2, 12))


@part("LLMs-from-scratch: latent attention")
def latent_attention() -> Numbers:
    made: Any = load("llms_mla", "LLMs-from-scratch/ch04/05_mla/gpt_with_kv_mla.py")
    return step(made.GPTModel({**SMALL, "latent_dim": 8}), integers(24, 2, 12))


@part("LLMs-from-scratch: experts")
def experts() -> Numbers:
    made: Any = load("llms_moe", "LLMs-from-scratch/ch04/07_moe/gpt_with_kv_moe.py")
    more = {"num_experts": 4, "num_experts_per_tok": 2, "hidden_dim": 16}
    return step(made.GPTModel({**SMALL, **more}), integers(24, 2, 12))


@part("LLMs-from-scratch: Llama 3", dtype="float32", tolerance=1e-4)
def llama3() -> Numbers:
    import torch

    made: Any = load("llms_llama", "LLMs-from-scratch/pkg/llms_from_scratch/llama3.py")
    more = {
        "hidden_dim": 32,
        "n_kv_groups": 1,
        "rope_base": 10000.0,
        "dtype": torch.float32,
        "rope_freq": {
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_context_length": 16,
        },
    }
    return step(made.Llama3Model({**SMALL, **more}), integers(24, 2, 12))


@part("LLMs-from-scratch: Qwen 3", dtype="float32", tolerance=1e-4)
def qwen3() -> Numbers:
    import torch

    made: Any = load("llms_qwen", "LLMs-from-scratch/pkg/llms_from_scratch/qwen3.py")
    more = {
        "hidden_dim": 32,
        "n_kv_groups": 1,
        "head_dim": 8,
        "qk_norm": True,
        "num_experts": 0,
        "rope_base": 10000.0,
        "dtype": torch.float32,
    }
    return step(made.Qwen3Model({**SMALL, **more}), integers(24, 2, 12))
