"""`SummaryWriter`: what happens in a training, as event files that TensorBoard shows.

The records are those of the package `tensorboard`, which the extra of that name brings. It is
imported when a writer is made.
"""

from __future__ import annotations

import os
import socket
import struct
import time
import wave
import zlib
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.tensor import Tensor
from ..errors import ArgumentError, UnsupportedError

__all__ = ["SummaryWriter"]


class SummaryWriter:
    """Writes scalars, histograms, pictures, sound and text into a folder for TensorBoard.

    The interface is torch's. The folder is `runs/<time>_<machine><comment>` unless it is named.

    >>> import tempfile, undertow as ut
    >>> from undertow.utils.tensorboard import SummaryWriter  # doctest: +SKIP
    >>> with SummaryWriter(tempfile.mkdtemp()) as writer:  # doctest: +SKIP
    ...     for step in range(3):
    ...         writer.add_scalar("loss", ut.tensor(1.0 / (step + 1)), step)
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str] | None = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ) -> None:
        self._records = _records()
        if not log_dir:
            stamp = time.strftime("%b%d_%H-%M-%S")
            log_dir = Path("runs") / f"{stamp}_{socket.gethostname()}{comment}"
        self.log_dir = os.fspath(log_dir)
        self.purge_step = purge_step
        self._options = (max_queue, flush_secs, filename_suffix)
        self._writers: dict[str, Any] = {}
        self._main = self._writer("")
        if purge_step is not None and purge_step > 0:  # what was written from there on is void
            session = self._records.SessionLog(status=self._records.SessionLog.START)
            self._main.add_event(
                self._records.Event(wall_time=time.time(), step=purge_step, session_log=session)
            )

    def _writer(self, below: str) -> Any:
        """The writer of a folder below; each is one run to TensorBoard."""
        if below not in self._writers:
            folder = os.path.join(self.log_dir, below) if below else self.log_dir
            try:
                self._writers[below] = self._records.EventFileWriter(folder, *self._options)
            except OSError as error:
                raise ArgumentError(
                    f"[SummaryWriter] cannot write to {folder!r}: {error.strerror or error}"
                ) from error
        return self._writers[below]

    def _add(
        self, value: Any, step: int | None, walltime: float | None = None, below: str = ""
    ) -> None:
        event = self._records.Event(
            wall_time=time.time() if walltime is None else walltime,
            summary=self._records.Summary(value=[value]),
        )
        if step is not None:
            event.step = int(step)
        self._writer(below).add_event(event)

    # Numbers --------------------------------------------------------------------------------------
    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """One number of a curve."""
        self._scalar(tag, scalar_value, global_step, walltime)

    def _scalar(
        self, tag: str, value: Any, step: int | None, walltime: float | None, below: str = ""
    ) -> None:
        array = _array(value, "add_scalar")
        if array.size != 1:
            raise ArgumentError(
                f"[add_scalar] {tag!r} takes one number, got the shape {array.shape}"
            )
        made = self._records.Summary.Value(tag=tag, simple_value=float(array.reshape(())))
        self._add(made, step, walltime, below)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, Any],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Several curves of one picture; each is a run of its own, as in torch."""
        for tag, value in tag_scalar_dict.items():
            below = f"{main_tag.replace('/', '_')}_{tag}"
            self._scalar(main_tag, value, global_step, walltime, below)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: int | None = None,
        bins: str | Sequence[float] = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """How values are distributed: a gradient, a layer's weights.

        `bins` are the edges, or a rule of NumPy's. The default edges grow by a tenth each.
        """
        array = _array(values, "add_histogram").astype(np.float64).ravel()
        if not array.size:
            raise ArgumentError(f"[add_histogram] {tag!r} has no values")
        if not np.isfinite(array).all():
            raise ArgumentError(f"[add_histogram] {tag!r} has values that are not finite")
        edges: Any = _growing(array) if isinstance(bins, str) and bins == "tensorflow" else bins
        counts, limits = np.histogram(array, edges)
        if max_bins is not None and len(counts) > max_bins:
            counts, limits = np.histogram(array, max_bins)
        self.add_histogram_raw(
            tag,
            array.min(),
            array.max(),
            array.size,
            array.sum(),
            (array * array).sum(),
            limits[1:],
            counts,
            global_step,
            walltime,
        )

    def add_histogram_raw(
        self,
        tag: str,
        min: float,
        max: float,
        num: int,
        sum: float,
        sum_squares: float,
        bucket_limits: Any,
        bucket_counts: Any,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """A histogram that is counted already; a limit is the upper end of its bucket."""
        if len(bucket_limits) != len(bucket_counts):
            raise ArgumentError(
                f"[add_histogram_raw] {len(bucket_limits)} limits for {len(bucket_counts)} buckets"
            )
        made = self._records.HistogramProto(
            min=float(min),
            max=float(max),
            num=float(num),
            sum=float(sum),
            sum_squares=float(sum_squares),
            bucket_limit=[float(v) for v in bucket_limits],
            bucket=[float(v) for v in bucket_counts],
        )
        value = self._records.Summary.Value(tag=tag, histo=made)
        self._add(value, global_step, walltime)

    def add_tensor(
        self, tag: str, tensor: Any, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """All elements of a tensor, as they are."""
        made = self._records.make_tensor_proto(_array(tensor, "add_tensor"))
        self._add(self._records.Summary.Value(tag=tag, tensor=made), global_step, walltime)

    # Pictures and sound ---------------------------------------------------------------------------
    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """A picture of 1, 3 or 4 channels: uint8, or floats from 0 to 1."""
        pixels = _pixels(_array(img_tensor, "add_image"), dataformats, "HWC")
        high, wide, channels = pixels.shape
        image = self._records.Summary.Image(
            height=high, width=wide, colorspace=channels, encoded_image_string=_png(pixels)
        )
        self._add(self._records.Summary.Value(tag=tag, image=image), global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Several pictures of one size, side by side in rows of eight."""
        pixels = _pixels(_array(img_tensor, "add_images"), dataformats, "NHWC")
        number, high, wide, channels = pixels.shape
        if not number:
            raise ArgumentError(f"[add_images] {tag!r} has no picture: the batch is empty")
        columns = min(number, 8)
        rows = -(-number // columns)
        sheet = np.zeros((rows * high, columns * wide, channels), np.uint8)
        for i, one in enumerate(pixels):
            y, x = i // columns * high, i % columns * wide
            sheet[y : y + high, x : x + wide] = one
        self.add_image(tag, sheet, global_step, walltime, "HWC")

    def add_figure(
        self,
        tag: str,
        figure: Any,
        global_step: int | None = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """A figure of matplotlib, or a list of figures."""
        figures = figure if isinstance(figure, (list, tuple)) else [figure]
        for each in figures:
            from matplotlib.backends.backend_agg import FigureCanvasAgg

            canvas: Any = FigureCanvasAgg(each)
            canvas.draw()
            pixels = np.array(canvas.buffer_rgba())
            self.add_image(tag, pixels, global_step, walltime, "HWC")
        if close:
            from matplotlib import pyplot

            for each in figures:
                pyplot.close(each)

    def add_audio(
        self,
        tag: str,
        snd_tensor: Any,
        global_step: int | None = None,
        sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:
        """Sound from -1 to 1, of one channel."""
        sound = _array(snd_tensor, "add_audio").astype(np.float64).squeeze()
        if sound.ndim != 1:
            raise ArgumentError(f"[add_audio] takes one channel, got the shape {sound.shape}")
        file = BytesIO()
        with wave.open(file, "wb") as written:
            written.setnchannels(1)
            written.setsampwidth(2)
            written.setframerate(sample_rate)
            written.writeframes((np.clip(sound, -1, 1) * 32767).astype("<i2").tobytes())
        made = self._records.Summary.Audio(
            sample_rate=sample_rate,
            num_channels=1,
            length_frames=len(sound),
            encoded_audio_string=file.getvalue(),
            content_type="audio/wav",
        )
        self._add(self._records.Summary.Value(tag=tag, audio=made), global_step, walltime)

    # Words ----------------------------------------------------------------------------------------
    def add_text(
        self,
        tag: str,
        text_string: str,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """A text, read as Markdown."""
        records = self._records
        about = records.SummaryMetadata(
            plugin_data=records.SummaryMetadata.PluginData(plugin_name="text")
        )
        made = records.make_tensor_proto(np.array([text_string.encode()], object))
        value = records.Summary.Value(tag=f"{tag}/text_summary", metadata=about, tensor=made)
        self._add(value, global_step, walltime)

    def add_hparams(
        self,
        hparam_dict: Mapping[str, bool | str | float | None],
        metric_dict: Mapping[str, Any],
        hparam_domain_discrete: Mapping[str, Sequence[Any]] | None = None,
        run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:
        """What a run was made with and what it reached, for the table of hyperparameters."""
        for name, value in hparam_dict.items():
            if value is not None and not isinstance(value, (bool, str, int, float)):
                raise ArgumentError(
                    f"[add_hparams] {name!r} is a number, a text or a bool, got "
                    f"{type(value).__name__}"
                )
        api = self._records.hparams
        domains = hparam_domain_discrete or {}
        known = [
            api.HParam(name, api.Discrete(list(domains[name])) if name in domains else None)
            for name in hparam_dict
        ]
        below = run_name or str(time.time())
        writer = self._writer(below)
        metrics = [api.Metric(name) for name in metric_dict]
        given = {name: value for name, value in hparam_dict.items() if value is not None}
        for summary in (
            api.hparams_config_pb(hparams=known, metrics=metrics),
            api.hparams_pb(given),
        ):
            writer.add_event(self._records.Event(wall_time=time.time(), summary=summary))
        for name, value in metric_dict.items():
            self._scalar(name, value, global_step, None, below)

    # What is not there ----------------------------------------------------------------------------
    def add_graph(self, *args: Any, **kwargs: Any) -> None:
        """Refused: `ut.draw(model, x).save("graph.html")` draws a model."""
        raise UnsupportedError(
            "[add_graph] graphs are not written as events; ut.draw(model, x).save('graph.html') "
            "draws one"
        )

    def __getattr__(self, name: str) -> Any:
        if name in _REFUSED:
            raise UnsupportedError(f"[{name}] this kind of event is not written here")
        raise AttributeError(f"SummaryWriter has no {name!r}")

    # The files ------------------------------------------------------------------------------------
    def get_logdir(self) -> str:
        """The folder."""
        return self.log_dir

    def flush(self) -> None:
        """Write what waits."""
        for writer in self._writers.values():
            writer.flush()

    def close(self) -> None:
        """Write what waits, and end; what is added later begins new files."""
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


_REFUSED = frozenset(
    """
    add_video add_embedding add_mesh add_pr_curve add_pr_curve_raw add_onnx_graph
    add_custom_scalars add_custom_scalars_marginchart add_custom_scalars_multilinechart
    add_image_with_boxes
    """.split()  # noqa: SIM905
)


def _records() -> ModuleType:
    """The names of the package that are used, in one place; an error tells how to install it."""
    try:
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
        from tensorboard.plugins.hparams import summary_v2
        from tensorboard.summary.writer.event_file_writer import EventFileWriter
        from tensorboard.util.tensor_util import make_tensor_proto
    except ImportError as error:
        raise ModuleNotFoundError(
            "[SummaryWriter] writes by the package tensorboard, which cannot be imported "
            f"({error}); pip install 'undertow[tensorboard]'",
            name="tensorboard",
        ) from error
    found = ModuleType("tensorboard records")
    vars(found).update(
        Event=Event,
        SessionLog=SessionLog,
        HistogramProto=HistogramProto,
        Summary=Summary,
        SummaryMetadata=SummaryMetadata,
        EventFileWriter=EventFileWriter,
        hparams=summary_v2,  # its `api` needs TensorFlow
        make_tensor_proto=make_tensor_proto,
    )
    return found


def _array(value: Any, what: str) -> NDArray[Any]:
    """A tensor of any device, or what NumPy reads, as an array of numbers."""
    if isinstance(value, Tensor):
        value = value.detach().cpu()
        value = (value.float() if value.dtype.name == "bfloat16" else value).numpy()
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise ArgumentError(f"[{what}] takes numbers, got {type(value).__name__} {array.dtype}")
    return array


def _growing(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Edges around all values, each a tenth farther from zero than the one before."""
    most = max(float(np.abs(values).max()), 1e-12) * 1.1
    number = int(np.ceil(np.log(most / 1e-12) / np.log(1.1))) + 1
    edges = 1e-12 * 1.1 ** np.arange(number + 1)
    every = np.concatenate([-edges[::-1], [0.0], edges])
    first = max(int(np.searchsorted(every, values.min(), "right")) - 1, 0)
    last = min(int(np.searchsorted(every, values.max(), "right")), len(every) - 1)
    return every[first : last + 1]


def _pixels(image: NDArray[Any], given: str, wanted: str) -> NDArray[np.uint8]:
    """Bytes in the order that is wanted; one channel may have no dimension."""
    given = given.upper()
    if len(given) != image.ndim or len(set(given)) != len(given) or not set(given) <= set(wanted):
        raise ArgumentError(
            f"[add_image] a picture of shape {image.shape} does not fit dataformats={given!r}"
        )
    if "C" not in given:
        image, given = image[..., None], given + "C"
    if set(given) != set(wanted):
        raise ArgumentError(f"[add_image] dataformats has the letters {wanted}, got {given!r}")
    image = image.transpose([given.index(letter) for letter in wanted])
    if image.shape[-1] not in (1, 3, 4):
        raise ArgumentError(f"[add_image] has 1, 3 or 4 channels, got {image.shape[-1]}")
    if image.dtype != np.uint8:
        image = np.clip(np.nan_to_num(image.astype(np.float64)) * 255, 0, 255).astype(np.uint8)
    return np.ascontiguousarray(image)


def _png(pixels: NDArray[np.uint8]) -> bytes:
    """A picture as a PNG file, which is rows of bytes that zlib has compressed."""
    high, wide, channels = pixels.shape
    kind = {1: 0, 3: 2, 4: 6}[channels]

    def chunk(name: bytes, data: bytes) -> bytes:
        body = name + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    rows = np.concatenate([np.zeros((high, 1), np.uint8), pixels.reshape(high, -1)], axis=1)
    head = struct.pack(">IIBBBBB", wide, high, 8, kind, 0, 0, 0)
    parts = [
        chunk(b"IHDR", head),
        chunk(b"IDAT", zlib.compress(rows.tobytes())),
        chunk(b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)
