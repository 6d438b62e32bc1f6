"""openai-whisper: its spectrogram, a small model and greedy decoding."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from part import Numbers, compare, fill, integers, normal, part, step


def small() -> Any:
    """A Whisper with two layers of 16 channels."""
    from whisper.model import ModelDimensions, Whisper

    sizes = ModelDimensions(
        n_mels=80,
        n_audio_ctx=20,
        n_audio_state=16,
        n_audio_head=2,
        n_audio_layer=2,
        n_vocab=51865,
        n_text_ctx=16,
        n_text_state=16,
        n_text_head=2,
        n_text_layer=2,
    )
    return Whisper(sizes)


@part("spectrogram", quick=True, dtype="float32", tolerance=1e-4)
def spectrogram() -> Numbers:
    from whisper.audio import log_mel_spectrogram

    sound = np.sin(np.arange(16000) / 20).astype(np.float32)
    return compare(lambda: log_mel_spectrogram(sound), gradients=False)


@part("model", quick=True, dtype="float32", tolerance=1e-4)
def model() -> Numbers:
    return step(small(), normal(1, 80, 40), integers(100, 1, 8))


@part("decoding", dtype="float32", tolerance=1e-4)
def decoding() -> Numbers:
    import whisper

    made = fill(small()).eval()
    options = whisper.DecodingOptions(language="en", fp16=False, sample_len=5)
    with torch.no_grad():
        said = whisper.decode(made, normal(80, 40, grad=False), options)
    return compare(lambda: torch.tensor([float(t) for t in said.tokens] + [said.avg_logprob]))
