"""`SummaryWriter`: TensorBoard's own reader reads back what was written."""

from __future__ import annotations

import subprocess
import sys
import warnings
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.utils.tensorboard import SummaryWriter


@pytest.fixture
def records() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")

    def read(folder: Path) -> Any:
        found = accumulator.EventAccumulator(str(folder), size_guidance={})
        found.Reload()
        return found

    return read


def test_scalars_come_back(records: Any, tmp_path: Path) -> None:
    with SummaryWriter(tmp_path / "run") as writer:
        assert writer.get_logdir() == str(tmp_path / "run")
        for step in range(3):
            loss = (ut.ones(4, requires_grad=True) * step).sum()
            writer.add_scalar("loss", loss, step, walltime=100.0 + step)
        writer.add_scalar("half", ut.tensor(1.5, dtype=ut.bfloat16), 7)
        writer.add_scalars("both", {"a": 1, "b": np.float32(2)}, 5)
    found = records(tmp_path / "run")
    rows = [(e.step, e.value, e.wall_time) for e in found.Scalars("loss")]
    assert rows == [(0, 0.0, 100.0), (1, 4.0, 101.0), (2, 8.0, 102.0)]
    assert [(e.step, e.value) for e in found.Scalars("half")] == [(7, 1.5)]
    for name, value in (("a", 1.0), ("b", 2.0)):
        below = records(tmp_path / "run" / f"both_{name}")
        assert [(e.step, e.value) for e in below.Scalars("both")] == [(5, value)]


@pytest.mark.parametrize("bins", ["tensorflow", "auto", [-10.0, 0.0, 10.0]])
def test_histograms_count_every_value(records: Any, tmp_path: Path, bins: Any) -> None:
    values = ut.randn(100, 5, generator=ut.Generator().manual_seed(3))
    with SummaryWriter(tmp_path) as writer:
        writer.add_histogram("weights", values, 2, bins=bins)
        writer.add_histogram("zeros", ut.zeros(9), 2, bins=bins)
    found = records(tmp_path)
    (event,) = found.Histograms("weights")
    array = values.numpy().astype(np.float64)
    told = event.histogram_value
    assert event.step == 2
    assert told.num == sum(told.bucket) == 500
    assert (told.min, told.max) == (array.min(), array.max())
    assert told.sum == pytest.approx(array.sum())
    limits = np.array(told.bucket_limit)
    below = [(array < limit).sum() for limit in limits[:-1]]
    assert np.cumsum(told.bucket)[:-1].tolist() == below
    assert sum(found.Histograms("zeros")[0].histogram_value.bucket) == 9


def test_pictures_are_png_files(records: Any, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    pixels = ut.randint(0, 256, (3, 5, 7), dtype=ut.uint8)
    with SummaryWriter(tmp_path) as writer:
        writer.add_image("bytes", pixels, 1)
        writer.add_image("grey", ut.tensor([[0.0, 1.0], [2.0, -1.0]]), 1, dataformats="HW")
        writer.add_images("many", ut.ones(9, 1, 2, 3), 1)
    found = records(tmp_path)

    def shown(tag: str) -> Any:
        (event,) = found.Images(tag)
        return np.array(image.open(BytesIO(event.encoded_image_string)))

    assert (shown("bytes") == pixels.permute(1, 2, 0).numpy()).all()
    assert shown("grey").tolist() == [[0, 255], [255, 0]]
    many = shown("many")
    assert many.shape == (4, 24)
    assert many[2:, :3].all()
    assert not many[2:, 3:].any()


def test_figures_sound_text_tensors(records: Any, tmp_path: Path) -> None:
    figure = pytest.importorskip("matplotlib.figure").Figure(figsize=(2, 1), dpi=50)
    with SummaryWriter(tmp_path) as writer:
        writer.add_figure("figure", figure, 1, close=False)
        writer.add_audio("sound", ut.sin(ut.arange(100) / 3), 1, sample_rate=8000)
        writer.add_text("note", "*hello* ü", 4)
        writer.add_tensor("all", ut.arange(3), 5)
    found = records(tmp_path)
    assert (found.Images("figure")[0].width, found.Images("figure")[0].height) == (100, 50)
    sound = found.Audio("sound")[0]
    assert (sound.sample_rate, sound.length_frames) == (8000, 100)
    assert sound.encoded_audio_string[:4] == b"RIFF"
    (text,) = found.Tensors("note/text_summary")
    assert text.tensor_proto.string_val[0].decode() == "*hello* ü"
    from tensorboard.util.tensor_util import make_ndarray

    assert make_ndarray(found.Tensors("all")[0].tensor_proto).tolist() == [0, 1, 2]


def test_hyperparameters(records: Any, tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        writer.add_hparams({"lr": 0.1, "model": "fcn", "best": True}, {"score": 0.75}, run_name="a")
        with pytest.raises(ut.errors.ArgumentError, match="lr"):
            writer.add_hparams({"lr": [1]}, {})  # type: ignore[dict-item]
    found = records(tmp_path / "a")
    assert found.Scalars("score")[0].value == 0.75
    about = found.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    given = HParamsPluginData.FromString(about).session_start_info.hparams
    assert given["lr"].number_value == 0.1
    assert given["model"].string_value == "fcn"
    assert given["best"].bool_value


def test_bad_input(records: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ut.errors.ArgumentError, match="cannot write"):
        SummaryWriter(tmp_path / "file" / "below")
    with SummaryWriter(tmp_path / "run") as writer:
        for call, words in (
            (lambda: writer.add_scalar("a", ut.ones(2)), "one number"),
            (lambda: writer.add_scalar("a", "text"), "takes numbers"),
            (lambda: writer.add_histogram("a", ut.tensor([1.0, float("nan")])), "not finite"),
            (lambda: writer.add_histogram("a", []), "no values"),
            (lambda: writer.add_image("a", ut.ones(2, 3)), "dataformats"),
            (lambda: writer.add_image("a", ut.ones(2, 3, 3)), "channels"),
            (lambda: writer.add_images("a", ut.ones(0, 3, 2, 2)), "no picture"),
        ):
            with pytest.raises(ut.errors.ArgumentError, match=words):
                call()
        with pytest.raises(ut.errors.UnsupportedError, match="draw"):
            writer.add_graph(ut.nn.Linear(2, 2))
        with pytest.raises(ut.errors.UnsupportedError, match="add_video"):
            writer.add_video("a", ut.ones(1))
        with pytest.raises(AttributeError, match="add_nothing"):
            writer.add_nothing()


def test_without_the_package_an_error_tells_what_to_install() -> None:
    code = (
        "import sys; sys.modules['tensorboard'] = None\n"
        "from undertow.utils.tensorboard import SummaryWriter\n"
        "try: SummaryWriter('nowhere')\n"
        "except ModuleNotFoundError as error: print(error)"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout
    assert "pip install 'undertow[tensorboard]'" in told
