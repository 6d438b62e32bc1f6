"""The hot calls of wgpu without its Python layer: the one file that knows wgpu's private FFI.

Recording a dispatch takes three calls. Through the public objects of wgpu they cost three times
what they cost through the FFI below, which is private: so it is used with the versions it was
tested with, behind the objects of the public API, and the public API is used with any other.
"""

from __future__ import annotations

from typing import Any

TESTED = ((0, 32), (0, 33))  # from the first on, before the second


class Recorder:
    """Records dispatches by wgpu's public API."""

    raw = False

    def handle(self, thing: Any) -> Any:
        """What `dispatch` takes for a pipeline, a bind group or a compute pass."""
        return thing

    def dispatch(
        self, encoder: Any, pipeline: Any, bindings: Any, offset: int, groups: tuple[int, int, int]
    ) -> None:
        """Record a dispatch in a compute pass; `offset` is that of its parameters."""
        encoder.set_pipeline(pipeline)
        encoder.set_bind_group(0, bindings, [offset])
        encoder.dispatch_workgroups(*groups)


class RawRecorder(Recorder):
    """The same by calls of the library itself; errors show when the commands are finished."""

    raw = True

    def __init__(self) -> None:
        from wgpu.backends.wgpu_native._ffi import ffi, lib

        self._offsets = ffi.new("uint32_t[1]")
        self._set_pipeline = lib.wgpuComputePassEncoderSetPipeline
        self._set_bindings = lib.wgpuComputePassEncoderSetBindGroup
        self._dispatch = lib.wgpuComputePassEncoderDispatchWorkgroups

    def handle(self, thing: Any) -> Any:
        return thing._internal

    def dispatch(
        self, encoder: Any, pipeline: Any, bindings: Any, offset: int, groups: tuple[int, int, int]
    ) -> None:
        offsets = self._offsets
        offsets[0] = offset
        self._set_pipeline(encoder, pipeline)
        self._set_bindings(encoder, 0, bindings, 1, offsets)
        self._dispatch(encoder, *groups)


def recorder(version: tuple[int, ...]) -> Recorder:
    """The raw one where this version of wgpu was tested with it, else the public one."""
    if TESTED[0] <= tuple(version[:2]) < TESTED[1]:
        try:
            return RawRecorder()
        except (ImportError, AttributeError):
            pass
    return Recorder()
