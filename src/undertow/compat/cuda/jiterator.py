"""`undertow.cuda.jiterator`: kernels from C++ text, which torch compiles for CUDA devices only."""

from __future__ import annotations

from typing import Any, NoReturn

from ...errors import AbsentDeviceError


class _JittedFunction:
    """A kernel that could be made, and cannot be called without a CUDA device, as in torch."""

    def __init__(self, code_string: str, outputs: int, **kwargs: Any) -> None:
        self.code_string, self.outputs, self.kwargs = code_string, outputs, kwargs

    def __call__(self, *tensors: Any, **kwargs: Any) -> NoReturn:
        raise AbsentDeviceError(
            "[cuda.jiterator] its kernels run on CUDA devices only, and there is none here; write "
            "the function in Undertow's ops"
        )


def _create_jit_fn(code_string: str, **kwargs: Any) -> _JittedFunction:
    """A kernel of one output."""
    return _JittedFunction(code_string, 1, **kwargs)


def _create_multi_output_jit_fn(
    code_string: str, num_outputs: int, **kwargs: Any
) -> _JittedFunction:
    """A kernel of several outputs."""
    return _JittedFunction(code_string, num_outputs, **kwargs)
