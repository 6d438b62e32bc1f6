"""Every error that Undertow raises on purpose.

Each class is also the builtin that users expect to catch: torch raises RuntimeError where NumPy
raises ValueError, so code written for either keeps working. A message opens with the op's name in
brackets, then gives the offending values and the fix.
"""

from __future__ import annotations

import math
from pickle import UnpicklingError
from typing import Any


class UndertowError(Exception):
    """Base of all of Undertow's errors."""


class ArgumentError(UndertowError, ValueError, RuntimeError):
    """An argument has a value that the op does not accept."""


class ShapeError(ArgumentError):
    """Shapes do not fit each other or the op."""


class LinAlgError(ArgumentError):
    """A matrix has no such factors, inverse or solution, or an iteration did not converge.

    >>> import undertow as ut
    >>> try:
    ...     ut.linalg.cholesky(ut.tensor([[1.0, 2.0], [2.0, 1.0]]))
    ... except ut.linalg.LinAlgError as error:
    ...     print(error)
    [linalg.cholesky] the matrix is not positive definite: ...not positive
    """


class DTypeError(UndertowError, TypeError, RuntimeError):
    """A dtype, or the Python type of an argument, does not fit the op."""


class DimError(UndertowError, IndexError, RuntimeError):
    """A dimension number is out of range for the tensor, or it has too few dimensions."""


class BoundsError(UndertowError, IndexError, RuntimeError):
    """An index points outside the tensor."""


class IndexingError(UndertowError, IndexError, TypeError):
    """Something that cannot index this tensor: by its type, its shape, or the number of indices."""


class DeviceError(UndertowError, RuntimeError):
    """Tensors are on different devices, or a device does not exist."""


class DeviceTypeError(DeviceError, TypeError):
    """Something that names no device, such as a list."""


class AbsentDeviceError(DeviceError, AssertionError):
    """Something was asked of a kind of device that is not here."""


class OutOfMemoryError(UndertowError, MemoryError, RuntimeError):
    """A result that does not fit into memory.

    >>> import undertow as ut
    >>> try:
    ...     ut.ones(1 << 50)
    ... except ut.OutOfMemoryError:
    ...     print("4 PiB are too much")
    4 PiB are too much
    """


class GradientError(UndertowError, RuntimeError):
    """A gradient was asked for that cannot be had, or a rule returned a wrong one."""


class FreedError(GradientError):
    """A second backward through a graph whose saved values were freed by the first."""


class VersionError(GradientError):
    """A value that a gradient needs was changed in place after it was saved."""


class InplaceError(GradientError):
    """An in-place operation on a tensor that does not allow it."""


class UnsupportedError(UndertowError, NotImplementedError, RuntimeError):
    """Something that Undertow does not do (yet); the message says what to use instead."""


class ExchangeError(UnsupportedError, BufferError):
    """Memory that another library cannot be shown; DLPack's word for it is BufferError."""


class ExchangeGradientError(GradientError, BufferError):
    """Memory that another library cannot be shown, since a gradient would be lost."""


class DistError(UndertowError, RuntimeError):
    """Something went wrong between processes."""


class DistBackendError(DistError):
    """A collective operation could not be done."""


class DistNetworkError(DistError):
    """A connection could not be had, or was lost."""


class DistStoreError(DistError):
    """A store of keys could not answer, in time or at all."""


class DistributedError(DistBackendError):
    """A process failed, left or stopped, or did something else than the others.

    The message names the rank, the collective and the tensor.
    """


class FileError(ArgumentError, UnpicklingError):
    """A file that is damaged, of another format, or asks for what it may not have."""


def does_not_fit(shape: Any, dtype: Any) -> str:
    """What to say of an array that there is no memory for; `dtype` is NumPy's.

    >>> import numpy as np
    >>> does_not_fit((1000000, 1000000), np.dtype(np.float32))
    'a float32 array of shape (1000000, 1000000) takes 4,000,000,000,000 bytes, ...'
    """
    size = math.prod(shape) * dtype.itemsize
    return (
        f"a {dtype} array of shape {tuple(shape)} takes {size:,} bytes, which cannot be had; "
        "compute it in parts, or reduce it before it is as large"
    )


def out_of_memory(op: str, error: MemoryError) -> OutOfMemoryError:
    """The error to raise where `op` met a MemoryError: it names the op, the shape and the bytes.

    An error that names an op already, the innermost one that failed, stays as it is.
    """
    if isinstance(error, OutOfMemoryError) and str(error).startswith("["):
        return error
    shape = getattr(error, "shape", None)  # NumPy's error tells
    reason = str(error) if shape is None else does_not_fit(shape, getattr(error, "dtype", None))
    return OutOfMemoryError(f"[{op}] {reason or 'there is not enough memory'}")
