"""The classifiers: their form, how they begin, what they learn, and how they are kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.errors import FileError, ShapeError
from undertow.files.safetensors import save_file
from undertow.models import FCN, MODELS, Classifier, InceptionTime, ResNet1d
from undertow.models.saved import Description, load_classifier, save_classifier
from undertow.models.training import Training, evaluated, scores_of

every = pytest.mark.parametrize("name", MODELS)


def waves(number: int = 12, length: int = 16) -> Any:
    """Series of two classes that differ by their frequency."""
    random = np.random.default_rng(0)
    classes = np.arange(number) % 2
    phase = random.uniform(0, 6, (number, 1))
    values = np.sin((0.4 + classes[:, None]) * np.arange(length) + phase)
    return ut.utils.data.TensorDataset(
        ut.from_numpy(values[:, None].astype(np.float32)), ut.from_numpy(classes)
    )


@every
def test_shapes(name: str) -> None:
    model = MODELS[name](3, 5)
    x = ut.randn(2, 3, 21)
    assert model(x).shape == (2, 5)
    assert model.activation_maps(x).shape == (2, 5, 21)
    assert model(ut.randn(2, 3, 1)).shape == (2, 5), "shorter than every kernel"


def conv_parameters(inputs: int, outputs: int, kernel: int, bias: bool = True) -> int:
    return inputs * outputs * kernel + bias * outputs


def test_number_of_parameters() -> None:
    """Worked out from the layers as the papers list them."""

    def parameters(model: Classifier) -> int:
        return sum(p.numel() for p in model.parameters())

    conv, norm = conv_parameters, lambda c: 2 * c
    head = 128 * 2 + 2
    fcn = conv(1, 128, 8) + conv(128, 256, 5) + conv(256, 128, 3) + norm(128 + 256 + 128) + head
    assert parameters(FCN(1, 2)) == fcn
    resnet = head
    for into, out in ((1, 64), (64, 128), (128, 128)):
        resnet += conv(into, out, 8) + conv(out, out, 5) + conv(out, out, 3) + norm(3 * out)
        resnet += (conv(into, out, 1) if into != out else 0) + norm(out)
    assert parameters(ResNet1d(1, 2)) == resnet
    inception = head
    for depth in range(6):
        into = 128 if depth else 1
        thin = 32 if into > 1 else 1
        inception += conv(into, 32, 1, bias=False) * (into > 1)
        inception += sum(conv(thin, 32, k, bias=False) for k in (40, 20, 10))
        inception += conv(into, 32, 1, bias=False) + norm(128)
    inception += sum(conv(into, 128, 1, bias=False) + norm(128) for into in (1, 128))
    assert parameters(InceptionTime(1, 2)) == inception


@every
def test_begins_as_keras_does(name: str) -> None:
    """Glorot's uniform weights and no biases."""
    for path, module in MODELS[name](2, 3).named_modules():
        if isinstance(module, ut.nn.Conv1d | ut.nn.Linear):
            weight = module.weight
            field = weight[0, 0].numel()
            limit = (6 / (field * (weight.shape[0] + weight.shape[1]))) ** 0.5
            largest = weight.abs().max().item()
            assert largest <= limit * (1 + 1e-6), path
            assert largest > 0.5 * limit, path
            assert module.bias is None or not module.bias.any(), path
        elif isinstance(module, ut.nn.BatchNorm1d):
            assert module.eps == 1e-3


@every
def test_maps_are_the_scores_before_their_mean(name: str) -> None:
    ut.manual_seed(0)
    model = MODELS[name](1, 3).eval()
    x = ut.randn(2, 1, 30)
    mean = model.activation_maps(x).mean(dim=2) + model.head.bias
    np.testing.assert_allclose(mean.detach(), model(x).detach(), rtol=1e-4, atol=1e-5)


@every
def test_gradients_reach_every_parameter(name: str) -> None:
    model = MODELS[name](1, 2)
    model(ut.randn(4, 1, 12)).square().sum().backward()
    for path, parameter in model.named_parameters():
        assert parameter.grad is not None, path
        assert bool(parameter.grad.isfinite().all()), path


def test_wrong_series() -> None:
    with pytest.raises(ShapeError, match=r"\[FCN\] expects series of shape \(number, 2, length\)"):
        FCN(2, 3)(ut.zeros(5, 1, 10))
    with pytest.raises(ShapeError, match=r"got \(5, 10\)"):
        ResNet1d(2, 3)(ut.zeros(5, 10))
    with pytest.raises(ShapeError, match="num_classes must be 1 or more, got 0"):
        InceptionTime(1, 0)


@every
def test_it_learns(name: str) -> None:
    ut.manual_seed(0)
    data = waves(24)
    training = Training(MODELS[name](1, 2), data, lr=1e-3, batch_size=8, seed=0)
    for _ in range(8):
        assert training.epoch_of_training()
    losses = [row["loss"] for row in training.history]
    assert min(losses) < 0.5 * losses[0]
    assert training.best_loss == min(losses)
    training.take_best()
    assert evaluated(training.model, data)[1] == 1.0
    assert scores_of(training.model, data.tensors[0]).shape == (24, 2)


def test_stopping_anywhere_changes_nothing() -> None:
    """A training that is stopped after every batch and goes on in a new object: the same bits."""

    def new() -> Training:
        ut.manual_seed(1)
        return Training(FCN(1, 2), waves(10), lr=1e-3, batch_size=3, seed=5)

    whole = new()
    for _ in range(3):
        whole.epoch_of_training()
    training, stops = new(), 0
    while training.epochs < 3:
        if not training.epoch_of_training(lambda: True):
            stops += 1
            state, history = training.state(), training.history
            training = new()
            training.load_state(state)
            training.history = history
    assert stops == 3 * 3  # between the four batches of three epochs
    for ours, theirs in zip(training.history, whole.history, strict=True):
        assert {**ours, "seconds": 0} == {**theirs, "seconds": 0}
    for key, value in whole.state()["model"].items():
        assert bool((training.state()["model"][key] == value).all()), key


def test_a_state_that_does_not_fit() -> None:
    training = Training(FCN(1, 2), waves(10), lr=1e-3, batch_size=3, seed=5)
    training.epoch_of_training(lambda: True)
    other = Training(FCN(1, 2), waves(8), lr=1e-3, batch_size=3, seed=5)
    with pytest.raises(ValueError, match="the state is of 10 series, these are 8"):
        other.load_state(training.state())
    with pytest.raises(ValueError, match="the state has no best"):
        other.load_state({k: v for k, v in training.state().items() if k != "best"})


# Files -------------------------------------------------------------------------------------------
ABOUT = Description("fcn", 1, 16, ("down", "up"), True, "waves")


def test_kept_in_a_file(tmp_path: Path) -> None:
    model = FCN(1, 2).eval()
    path = tmp_path / "model.safetensors"
    save_classifier(model, ABOUT, path, {"accuracy": 1.0})
    again, about = load_classifier(path)
    assert about == ABOUT
    assert not again.training
    x = ut.randn(3, 1, 16)
    assert bool((again(x) == model(x)).all())


@pytest.mark.parametrize(
    "change, message",
    [
        ({"model": "oracle"}, "has a model 'oracle'; known here are fcn"),
        ({"classes": []}, "damaged"),
        ({"classes": [1, 2]}, "labels are not text"),
        ({"channels": -1}, "damaged"),
        ({"channels": "many"}, "damaged"),
        ({"colour": "red"}, "damaged"),
        ({"classes": ["a", "b", "c"]}, "size mismatch"),
    ],
)
def test_damaged_files(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = tmp_path / "model.safetensors"
    about = {"model": "fcn", "channels": 1, "length": 16, "classes": ["a", "b"], "normalise": True}
    told = {"undertow.classifier": json.dumps({**about, **change})}
    save_file(dict(FCN(1, 2).state_dict()), path, told)
    with pytest.raises((FileError, ValueError), match=message):
        load_classifier(path)
    save_file({"x": ut.ones(2)}, path)
    with pytest.raises(FileError, match="not one of `undertow train`"):
        load_classifier(path)
