"""Samples for `undertow.ops.nn.positional_losses`: the references are those of nn.functional."""

from __future__ import annotations

import numpy as np

import undertow as ut
from op_samples import TABLE, Bad, Const, S, arr, op, positive

from . import ctc, losses, margin  # noqa: F401 (their entries)

REDUCTIONS = ("none", "mean", "sum")
X, Y, Z = arr(4, 3), arr(4, 3, seed=1), arr(4, 3, seed=2)
SIGNS = Const([1.0, -1.0, 1.0, -1.0])
UNIT = arr(4, 3, seed=3, low=0.1, high=0.9)


def loss(name, tensors, names, calls, **more):
    """An entry: `calls` are arguments after the tensors, called `names` in nn.functional."""

    def reference(*args, **kwargs):
        given = dict(zip(names.split(), args[len(tensors) :], strict=False)) | kwargs
        given["reduction"] = REDUCTIONS[given.get("reduction", 0)]
        inputs = args[: len(tensors)]
        return TABLE[f"nn.functional.{name}"].reference(*inputs, **given)

    count = names.split().index("reduction")
    wrong = S(*tensors, *calls[-1][:count], 3)
    message = rf"\[{name}\] reduction must be 0 \(none\), .*, got 3"
    bad = [Bad(wrong, ut.errors.ArgumentError, message)]
    op(name, reference, [S(*tensors, *call) for call in calls], bad=bad, **more)


loss(
    "binary_cross_entropy_with_logits",
    (X, UNIT),
    "weight pos_weight reduction",
    [(), (Const(positive(3)), None, 1), (None, Const(positive(3)), 2)],
)
for name, tensors, calls in (
    ("cosine_embedding_loss", (X, Y, SIGNS), [(), (0.2, 1), (0.0, 2)]),
    ("hinge_embedding_loss", (X[:, 0], SIGNS), [(), (0.3, 1), (1.0, 2)]),
    ("margin_ranking_loss", (X[:, 0], Y[:, 0], SIGNS), [(), (0.3, 1), (0.0, 2)]),
):
    loss(name, tensors, "margin reduction", calls)
loss("kl_div", (X, UNIT), "reduction", [(), (1,), (2,)])
loss(
    "poisson_nll_loss",
    (X, positive(4, 3, seed=5)),
    "log_input full eps reduction",
    [(True, False, 1e-8, 1), (True, True, 1e-8, 0), (True, False, 1e-8, 2)],
)
loss(
    "triplet_margin_loss",
    (X, Y, Z),
    "margin p eps swap reduction",
    [(), (0.5, 2.0, 1e-6, True, 1), (1.0, 2.0, 1e-6, False, 2)],
)
LOG_PROBS = np.log(np.random.default_rng(2).dirichlet(np.ones(4), (5, 2)))
loss(
    "ctc_loss",
    (LOG_PROBS, np.array([[1, 2], [3, 1]]), [5, 4], [2, 1]),
    "blank reduction zero_infinity",
    [(), (0, 1), (0, 2)],
    torch_grad=False,  # torch's is for log_probs that come from a log_softmax
)
