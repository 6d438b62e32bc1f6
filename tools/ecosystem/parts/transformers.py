"""Transformers: a small model of most kinds, generation, training, and files."""

from __future__ import annotations

import tempfile
from typing import Any

from part import Numbers, fill, integers, measure, normal, part, step, uniform

TEXT = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "vocab_size": 40,
    "max_position_embeddings": 32,
}
CALM = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
BOTH = {
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
    "vocab_size": 40,
    "max_position_embeddings": 32,
    "dropout": 0.0,
}
T5 = {"decoder_start_token_id": 0, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2}
T5 |= {"num_heads": 2, "vocab_size": 40, "dropout_rate": 0.0}
GPT = {"n_embd": 16, "n_layer": 2, "n_head": 2, "vocab_size": 40, "n_positions": 32}
PICTURES = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "image_size": 16,
    "patch_size": 4,
    **CALM,
}
SOUND = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "vocab_size": 12,
    "conv_dim": (8, 8),
    "conv_kernel": (5, 3),
    "conv_stride": (3, 2),
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 4,
    "num_conv_pos_embedding_groups": 2,
    "mask_time_prob": 0.0,
}
FEW_KEYS = {**TEXT, "num_key_value_heads": 1}


def words(*sizes: int) -> dict[str, Any]:
    """Two sentences, the second of which is shorter."""
    import torch

    mask = torch.tensor([[1] * 10, [1] * 7 + [0] * 3])
    return {"input_ids": integers(40, 2, 10, low=1), "attention_mask": mask}


def answers(length: int, high: int = 40) -> dict[str, Any]:
    """Labels for two sentences."""
    return {"labels": integers(high, 2, length, low=1, seed=5)}


def model(name: str, config: str, settings: dict[str, Any], attention: str = "") -> Any:
    """A model of a class and a configuration."""
    import transformers

    made = getattr(transformers, config)(**settings)
    if attention:
        made._attn_implementation = attention
    return getattr(transformers, name)(made)


def add(name: str, kind: str, settings: dict[str, Any], inputs: Any, **how: Any) -> None:
    """A part that runs a model: `kind` is "Bert ForMaskedLM"."""
    stem, head = kind.split()
    attention, config = how.pop("attention", ""), how.pop("config", f"{stem}Config")

    @part(name, **how)
    def run() -> Numbers:
        made = model(stem + head, config, settings, attention)
        return step(made, **inputs())


def labelled() -> dict[str, Any]:
    """Sentences and a label for each word."""
    return {**words(), **answers(10)}


def pairs() -> dict[str, Any]:
    """Sentences and shorter answers."""
    return {**words(), **answers(6)}


def pictures() -> dict[str, Any]:
    """Two small pictures."""
    return {"pixel_values": uniform(2, 3, 16, 16)}


def larger() -> dict[str, Any]:
    """Two pictures."""
    return {"pixel_values": uniform(2, 3, 32, 32)}


ROUGH = {"tolerance": 1e-5}  # of models that compute in float32 inside
SINGLE: dict[str, Any] = {"dtype": "float32", "tolerance": 1e-4}  # that torch runs in float32 only
add("bert", "Bert ForMaskedLM", {**TEXT, **CALM}, labelled, quick=True)
add("bert eager", "Bert Model", {**TEXT, **CALM}, words, attention="eager")
add("roberta", "Roberta ForMaskedLM", {**TEXT, **CALM}, words)
add("albert", "Albert ForMaskedLM", {**TEXT, **CALM, "embedding_size": 8}, words)
add("electra", "Electra ForPreTraining", {**TEXT, **CALM, "embedding_size": 8}, words)
add("gpt2", "GPT2 LMHeadModel", GPT, labelled, quick=True)
add("gpt bigcode", "GPTBigCode ForCausalLM", {**GPT, "n_inner": 32}, words)
add("gptj", "GPTJ ForCausalLM", {**GPT, "rotary_dim": 4, "n_inner": 32}, words)
add("gpt neox", "GPTNeoX ForCausalLM", TEXT, words, **ROUGH)
add("opt", "OPT ForCausalLM", {**TEXT, "ffn_dim": 32, "word_embed_proj_dim": 16}, words)
add("falcon", "Falcon ForCausalLM", TEXT, words, **ROUGH)
add("llama", "Llama ForCausalLM", FEW_KEYS, labelled, quick=True, **ROUGH)
add("mistral", "Mistral ForCausalLM", {**FEW_KEYS, "sliding_window": 4}, words, **ROUGH)
add("qwen2", "Qwen2 ForCausalLM", FEW_KEYS, words, **ROUGH)
add("qwen3", "Qwen3 ForCausalLM", {**FEW_KEYS, "head_dim": 8}, words, **ROUGH)
add("gemma", "Gemma ForCausalLM", {**FEW_KEYS, "head_dim": 8}, words, **ROUGH)
add("phi", "Phi ForCausalLM", TEXT, words, **ROUGH)
add("t5", "T5 ForConditionalGeneration", T5, pairs, quick=True, **ROUGH)
add("bart", "Bart ForConditionalGeneration", BOTH, pairs)
add("pegasus", "Pegasus ForConditionalGeneration", BOTH, pairs)
add(
    "whisper",
    "Whisper ForConditionalGeneration",
    {
        **BOTH,
        "num_mel_bins": 8,
        "max_source_positions": 20,
        "max_target_positions": 32,
        "pad_token_id": 0,
        "decoder_start_token_id": 1,
    },
    lambda: {"input_features": normal(2, 8, 40), **answers(6)},
    quick=True,
)
add(
    "wav2vec2",
    "Wav2Vec2 ForCTC",
    SOUND,
    lambda: {"input_values": normal(2, 160), **answers(5, 12)},
    quick=True,
    **ROUGH,
)
add(
    "hubert",
    "Hubert ForCTC",
    SOUND,
    lambda: {"input_values": normal(2, 160), **answers(5, 12)},
    **ROUGH,
)
add("vit", "ViT ForImageClassification", PICTURES, pictures, quick=True)
add("deit", "DeiT Model", PICTURES, pictures)
add(
    "beit",
    "Beit ForImageClassification",
    {**PICTURES, "use_relative_position_bias": True},
    pictures,
)
add(
    "swin",
    "Swin ForImageClassification",
    {
        "image_size": 32,
        "patch_size": 2,
        "embed_dim": 8,
        "depths": [1, 2],
        "num_heads": [2, 2],
        "window_size": 4,
    },
    larger,
)
add(
    "convnext",
    "ConvNext ForImageClassification",
    {"hidden_sizes": [8, 8, 16, 16], "depths": [1, 1, 1, 1]},
    larger,
)
add(
    "mamba",
    "Mamba ForCausalLM",
    {"hidden_size": 16, "state_size": 4, "num_hidden_layers": 2, "vocab_size": 40},
    lambda: {"input_ids": integers(40, 2, 10, low=1)},
    **ROUGH,
)
add(
    "patchtst",
    "PatchTST ForPrediction",
    {
        "num_input_channels": 3,
        "context_length": 32,
        "patch_length": 8,
        "patch_stride": 8,
        "prediction_length": 8,
        "d_model": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "ffn_dim": 32,
    },
    lambda: {"past_values": normal(2, 32, 3), "future_values": normal(2, 8, 3, seed=2)},
)


FEW_EXPERTS = {"num_experts_per_tok": 2, **FEW_KEYS}
add("mixtral", "Mixtral ForCausalLM", {**FEW_EXPERTS, "num_local_experts": 4}, words, **SINGLE)
add(
    "qwen2 moe",
    "Qwen2Moe ForCausalLM",
    {
        **FEW_EXPERTS,
        "num_experts": 4,
        "moe_intermediate_size": 16,
        "shared_expert_intermediate_size": 16,
    },
    words,
    **SINGLE,
)
add(
    "qwen3 moe",
    "Qwen3Moe ForCausalLM",
    {**FEW_EXPERTS, "num_experts": 4, "moe_intermediate_size": 16, "head_dim": 8},
    words,
    **SINGLE,
)
add(
    "gpt oss",
    "GptOss ForCausalLM",
    {**FEW_EXPERTS, "num_local_experts": 4, "head_dim": 8, "sliding_window": 4},
    words,
    **SINGLE,
)
add(
    "deepseek v3",
    "DeepseekV3 ForCausalLM",
    {
        **TEXT,
        "num_key_value_heads": 2,
        "moe_intermediate_size": 16,
        "n_routed_experts": 4,
        "num_experts_per_tok": 2,
        "n_group": 2,
        "topk_group": 1,
        "kv_lora_rank": 8,
        "q_lora_rank": 8,
        "qk_rope_head_dim": 4,
        "qk_nope_head_dim": 4,
        "v_head_dim": 8,
        "first_k_dense_replace": 1,
    },
    words,
    **SINGLE,
)
add(
    "gemma2", "Gemma2 ForCausalLM", {**FEW_KEYS, "head_dim": 8, "sliding_window": 4}, words, **ROUGH
)
add(
    "gemma3",
    "Gemma3 ForCausalLM",
    {**FEW_KEYS, "head_dim": 8, "sliding_window": 4},
    words,
    config="Gemma3TextConfig",
    **ROUGH,
)
add("phi3", "Phi3 ForCausalLM", {**FEW_KEYS, "pad_token_id": 0}, words, **ROUGH)
add("olmo2", "Olmo2 ForCausalLM", FEW_KEYS, words, **ROUGH)
add("stablelm", "StableLm ForCausalLM", FEW_KEYS, words, **ROUGH)
add("starcoder2", "Starcoder2 ForCausalLM", FEW_KEYS, words, **ROUGH)
add("cohere", "Cohere ForCausalLM", FEW_KEYS, words, **ROUGH)
add("bloom", "Bloom ForCausalLM", {**TEXT, "n_layer": 2, "n_head": 2}, words, **ROUGH)
add(
    "gpt neo",
    "GPTNeo ForCausalLM",
    {
        **TEXT,
        "num_layers": 2,
        "num_heads": 2,
        "attention_types": [[["global", "local"], 1]],
        "window_size": 4,
    },
    words,
    **ROUGH,
)
add("mpt", "Mpt ForCausalLM", {"d_model": 16, "n_heads": 2, "n_layers": 2, "vocab_size": 40}, words)
add("codegen", "CodeGen ForCausalLM", {**GPT, "n_head": 4, "rotary_dim": 4}, words)
add(
    "jamba",
    "Jamba ForCausalLM",
    {
        **FEW_EXPERTS,
        "num_experts": 4,
        "attn_layer_period": 2,
        "attn_layer_offset": 1,
        "mamba_d_state": 4,
        "mamba_dt_rank": 4,
    },
    words,
    **SINGLE,
)
add(
    "mamba2",
    "Mamba2 ForCausalLM",
    {
        "hidden_size": 16,
        "num_heads": 4,
        "head_dim": 8,
        "state_size": 4,
        "n_groups": 2,
        "chunk_size": 4,
        "num_hidden_layers": 2,
        "vocab_size": 40,
    },
    lambda: {"input_ids": integers(40, 2, 10, low=1)},
    **ROUGH,
)
add(
    "recurrent gemma",
    "RecurrentGemma ForCausalLM",
    {**FEW_KEYS, "lru_width": 16, "attention_window_size": 4, "num_hidden_layers": 3},
    words,
    **ROUGH,
)
add("marian", "Marian MTModel", {**BOTH, "pad_token_id": 0, "decoder_start_token_id": 1}, pairs)
add("mbart", "MBart ForConditionalGeneration", BOTH, pairs)
add("m2m 100", "M2M100 ForConditionalGeneration", BOTH, pairs)
add(
    "led",
    "LED ForConditionalGeneration",
    {
        **BOTH,
        "attention_window": 4,
        "max_encoder_position_embeddings": 32,
        "max_decoder_position_embeddings": 32,
    },
    pairs,
)
add(
    "switch transformers",
    "SwitchTransformers ForConditionalGeneration",
    {**T5, "num_decoder_layers": 2, "num_experts": 4, "expert_capacity": 8},
    pairs,
    **ROUGH,
)
add("xlm roberta", "XLMRoberta ForSequenceClassification", {**TEXT, **CALM}, words)
add(
    "deberta v2",
    "DebertaV2 ForMaskedLM",
    {
        **TEXT,
        **CALM,
        "relative_attention": True,
        "pos_att_type": ["p2c", "c2p"],
        "position_buckets": 4,
    },
    words,
    **ROUGH,
)
add(
    "distilbert",
    "DistilBert ForMaskedLM",
    {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32, "vocab_size": 40},
    labelled,
)
add(
    "xlnet",
    "XLNet LMHeadModel",
    {"d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 32, "vocab_size": 40},
    words,
    **SINGLE,
)
add("longformer", "Longformer ForMaskedLM", {**TEXT, **CALM, "attention_window": 4}, words)
add(
    "big bird",
    "BigBird ForMaskedLM",
    {**TEXT, **CALM, "block_size": 2, "num_random_blocks": 1},
    lambda: {"input_ids": integers(40, 2, 24, low=1)},
)
add("mpnet", "MPNet ForMaskedLM", {**TEXT, **CALM}, words)
add("fnet", "FNet ForMaskedLM", TEXT, lambda: {"input_ids": integers(40, 2, 10, low=1)})
add("convbert", "ConvBert ForMaskedLM", {**TEXT, **CALM, "embedding_size": 8}, words)
add("roformer", "RoFormer ForMaskedLM", {**TEXT, **CALM, "embedding_size": 8}, words)
add(
    "modernbert",
    "ModernBert ForMaskedLM",
    {**TEXT, "pad_token_id": 0, "local_attention": 4, "reference_compile": False},
    words,
    **ROUGH,
)
add(
    "perceiver",
    "Perceiver ForMaskedLM",
    {
        "d_model": 16,
        "d_latents": 16,
        "num_latents": 4,
        "num_self_attends_per_block": 1,
        "num_self_attention_heads": 2,
        "num_cross_attention_heads": 2,
        "vocab_size": 40,
        "max_position_embeddings": 10,
        "qk_channels": 16,
        "v_channels": 16,
        "attention_probs_dropout_prob": 0.0,
    },
    words,
)
add(
    "speech to text",
    "Speech2Text ForConditionalGeneration",
    {
        **BOTH,
        "input_feat_per_channel": 8,
        "conv_channels": 16,
        "max_source_positions": 40,
        "max_target_positions": 32,
        "pad_token_id": 0,
        "decoder_start_token_id": 1,
    },
    lambda: {"input_features": normal(2, 24, 8), **answers(6)},
)
add(
    "wavlm",
    "WavLM ForCTC",
    SOUND,
    lambda: {"input_values": normal(2, 160), **answers(5, 12)},
    **ROUGH,
)
add(
    "audio spectrogram transformer",
    "AST ForAudioClassification",
    {
        **{k: v for k, v in PICTURES.items() if k != "image_size"},
        "max_length": 24,
        "num_mel_bins": 8,
        "frequency_stride": 4,
        "time_stride": 4,
    },
    lambda: {"input_values": normal(2, 24, 8)},
)
add("dinov2", "Dinov2 ForImageClassification", PICTURES, pictures)
add(
    "vit mae",
    "ViTMAE ForPreTraining",
    {
        **PICTURES,
        "decoder_hidden_size": 16,
        "decoder_num_hidden_layers": 1,
        "decoder_num_attention_heads": 2,
        "decoder_intermediate_size": 32,
    },
    pictures,
)
add(
    "yolos",
    "Yolos ForObjectDetection",
    {**PICTURES, "image_size": [16, 16], "num_detection_tokens": 3},
    pictures,
)
add(
    "resnet",
    "ResNet ForImageClassification",
    {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1]},
    larger,
)
add(
    "segformer",
    "Segformer ForSemanticSegmentation",
    {
        "hidden_sizes": [8, 8, 16, 16],
        "depths": [1, 1, 1, 1],
        "num_attention_heads": [1, 1, 2, 2],
        "decoder_hidden_size": 16,
    },
    larger,
)
add(
    "swinv2",
    "Swinv2 ForImageClassification",
    {
        "image_size": 32,
        "patch_size": 2,
        "embed_dim": 8,
        "depths": [1, 2],
        "num_heads": [2, 2],
        "window_size": 4,
    },
    larger,
)
add(
    "videomae",
    "VideoMAE ForVideoClassification",
    {**PICTURES, "num_frames": 4},
    lambda: {"pixel_values": uniform(1, 4, 3, 16, 16)},
)
add(
    "time series transformer",
    "TimeSeriesTransformer ForPrediction",
    {
        "prediction_length": 4,
        "context_length": 8,
        "lags_sequence": [1, 2],
        "d_model": 16,
        "encoder_layers": 1,
        "decoder_layers": 1,
        "encoder_ffn_dim": 16,
        "decoder_ffn_dim": 16,
        "num_time_features": 1,
    },
    lambda: {
        "past_values": normal(2, 10),
        "past_time_features": normal(2, 10, 1, seed=1, grad=False),
        "past_observed_mask": normal(2, 10, seed=2, grad=False) > -2,
        "future_values": normal(2, 4, seed=3),
        "future_time_features": normal(2, 4, 1, seed=4, grad=False),
    },
)
add(
    "patchtsmixer",
    "PatchTSMixer ForPrediction",
    {
        "context_length": 32,
        "patch_length": 8,
        "patch_stride": 8,
        "num_input_channels": 3,
        "prediction_length": 8,
        "d_model": 16,
        "num_layers": 2,
    },
    lambda: {"past_values": normal(2, 32, 3), "future_values": normal(2, 8, 3, seed=2)},
)


@part("clip")
def clip() -> Numbers:
    import transformers

    config = transformers.CLIPConfig(
        text_config={**TEXT, "projection_dim": 8, "eos_token_id": 39},
        vision_config={**PICTURES, "projection_dim": 8},
        projection_dim=8,
    )
    made = transformers.CLIPModel(config)
    return step(made, **words(), **pictures(), loss=lambda out: out.logits_per_text)


@part("detr")
def detr() -> Numbers:
    import transformers

    backbone = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], out_features=["stage2"]
    )
    named = {k: v for k, v in BOTH.items() if k not in ("vocab_size", "max_position_embeddings")}
    made = transformers.DetrForObjectDetection(
        transformers.DetrConfig(
            **named, num_queries=4, backbone_config=backbone, use_timm_backbone=False, backbone=None
        )
    )
    return step(made, **larger(), loss=lambda out: (out.logits, out.pred_boxes))


def generated(**how: Any) -> Numbers:
    """The tokens that a small Llama writes."""
    ends = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    made = fill(model("LlamaForCausalLM", "LlamaConfig", {**FEW_KEYS, **ends})).eval()
    found = made.generate(**words(), max_new_tokens=8, do_sample=False, **how)
    return {"tokens": [float(t) for t in found.ravel().tolist()]}


@part("generate greedily", quick=True)
def greedy() -> Numbers:
    return generated()


@part("generate with beams")
def beams() -> Numbers:
    return generated(num_beams=3)


@part("generate without a cache")
def uncached() -> Numbers:
    return generated(use_cache=False)


@part("generate with a static cache")
def static() -> Numbers:
    return generated(cache_implementation="static")


@part("save and load", dtype="float32", tolerance=1e-4, quick=True)
def files() -> Numbers:
    import transformers

    with tempfile.TemporaryDirectory() as folder:
        made = fill(model("GPT2LMHeadModel", "GPT2Config", GPT)).eval()
        made.save_pretrained(folder)
        read = transformers.GPT2LMHeadModel.from_pretrained(folder).eval()
        return {"logits": measure(read(integers(40, 2, 10, low=1)).logits)}


@part("lora", quick=True)
def lora() -> Numbers:
    import peft

    made = model("GPT2LMHeadModel", "GPT2Config", GPT)
    how = peft.LoraConfig(r=2, target_modules=["c_attn"], fan_in_fan_out=True)
    return step(peft.get_peft_model(made, how), integers(40, 2, 10, low=1))


@part("accelerate")
def accelerated() -> Numbers:
    import accelerate
    import torch

    runner = accelerate.Accelerator(cpu=True)
    layer = fill(torch.nn.Linear(3, 2))
    data = torch.utils.data.TensorDataset(
        normal(8, 3, grad=False), normal(8, 2, seed=1, grad=False)
    )
    layer, optimizer, loader = runner.prepare(
        layer,
        torch.optim.SGD(layer.parameters(), lr=0.1),
        torch.utils.data.DataLoader(data, batch_size=4),
    )
    for x, y in loader:
        runner.backward(((layer(x) - y) ** 2).mean())
        runner.clip_grad_norm_(layer.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    return {"weight": measure(runner.unwrap_model(layer).weight)}
