"""Time-Series-Library: its models in each of the four tasks, small.

It has no release: ECOSYSTEM_SOURCES names the folder with its sources, Time-Series-Library.
"""

from __future__ import annotations

import ast
import sys
from argparse import Namespace
from importlib import import_module
from typing import Any

from part import Numbers, normal, part, source, step, uniform

# Models that need no other package than those of its requirements that are here.
MODELS = """
Autoformer Crossformer DLinear ETSformer FEDformer FiLM FreTS Informer KANAD Koopa LightTS MICN
MSGNet MambaSimple MambaSingleLayer MultiPatchFormer Nonstationary_Transformer PAttn PatchTST
Pyraformer Reformer SCINet SegRNN TSMixer TemporalFusionTransformer TiDE TimeFilter TimeMixer
TimeXer TimesNet Transformer WPMixer iTransformer
""".split()  # noqa: SIM905
TASKS = {
    "forecast": "long_term_forecast",
    "imputation": "imputation",
    "anomalies": "anomaly_detection",
    "classes": "classification",
}
SMALL = {
    "seq_len": 48,
    "label_len": 24,
    "pred_len": 24,
    "enc_in": 4,
    "dec_in": 4,
    "c_out": 4,
    "d_model": 16,
    "d_ff": 16,
    "n_heads": 2,
    "e_layers": 2,
    "d_layers": 1,
    "dropout": 0.0,
    "num_class": 3,
    "seg_len": 12,
    "patch_len": 8,
    "num_kernels": 2,
    "top_k": 3,
    "factor": 1,
    "moving_avg": 9,
    "d_conv": 4,
    "expand": 2,
    "down_sampling_layers": 1,
    "down_sampling_window": 2,
    "down_sampling_method": "avg",
    "data": "ETTh1",
    "node_dim": 4,
    "conv_channel": 8,
    "skip_channel": 8,
    "gcn_depth": 2,
    "propalpha": 0.3,
    "subgraph_size": 2,
    "device": "cpu",
    "use_gpu": False,
    "gpu": 0,
    "features": "M",
    "embed": "timeF",
    "freq": "h",
    "p_hidden_dims": [16, 16],
    "p_hidden_layers": 2,
}


def defaults() -> dict[str, Any]:
    """What the options of run.py are when nobody gives them."""
    found = {}
    for node in ast.walk(ast.parse((source("Time-Series-Library") / "run.py").read_text())):
        match node:
            case ast.Call(
                func=ast.Attribute(attr="add_argument"), args=[ast.Constant(value=name), *_]
            ):
                given = {k.arg: k.value for k in node.keywords}
                value = given.get("default", ast.Constant(None))
                try:
                    found[str(name).lstrip("-")] = ast.literal_eval(value)
                except ValueError:
                    continue
    return found


# Models whose complex weights are single whatever the default dtype is.
SINGLE = {"FEDformer", "FiLM"}
QUICK = {("PatchTST", "forecast"), ("Informer", "forecast"), ("TimesNet", "classes")}


def options_of(model: str, task: str) -> Namespace:
    """The options of a run of one model, as the scripts of the library set them, but small."""
    options = Namespace(**{**defaults(), **SMALL, "task_name": TASKS[task]})
    if task != "forecast":
        options.pred_len = 0
    if model == "TemporalFusionTransformer":
        options.enc_in = options.dec_in = options.c_out = 7  # the columns of ETTh1
    elif model == "ETSformer":
        options.d_layers = options.e_layers
    elif model == "MICN":
        options.seq_len = options.label_len = 96
    elif model == "TimeMixer" and task == "classes":
        options.channel_independence = 0
    return options


def run(model: str, task: str) -> Numbers:
    """One model, forward and backward."""
    folder = str(source("Time-Series-Library"))
    if folder not in sys.path:
        sys.path.insert(0, folder)
    options = options_of(model, task)
    made = import_module(f"models.{model}").Model(options)
    length, ahead = options.seq_len, options.label_len + options.pred_len
    x = normal(2, length, options.enc_in, grad=False)  # some models change it in place
    if task == "classes":
        return step(made, x, uniform(2, length, seed=4, grad=False) * 0 + 1, None, None)
    if task == "anomalies":
        return step(made, x, None, None, None)
    marks = uniform(2, length, 4, seed=1, grad=False)
    later = uniform(2, ahead, 4, seed=2, grad=False)
    decoder = normal(2, ahead, options.dec_in, seed=3, grad=False)
    if task == "forecast":
        return step(made, x, marks, decoder, later)
    mask = (uniform(2, length, options.enc_in, seed=5, grad=False) > 0.25).to(x.dtype)
    return step(made, x * mask, marks, None, None, mask)


def add(model: str, task: str) -> None:
    """A part that runs one model in one task."""
    single = {"dtype": "float32", "tolerance": 2e-4} if model in SINGLE else {}
    part(f"{model} {task}", quick=(model, task) in QUICK, **single)(lambda: run(model, task))


for model in MODELS:
    for task in TASKS:
        add(model, task)
