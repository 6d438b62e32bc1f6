"""Errors of torch's compiler, to be caught; nothing here raises most of them."""

from ...errors import UnsupportedError


class TorchDynamoException(RuntimeError):
    """Base of them all."""


class InternalTorchDynamoError(TorchDynamoException):
    """A defect of the compiler."""


class BackendCompilerFailed(TorchDynamoException):
    """A compiler that failed."""


class Unsupported(TorchDynamoException, UnsupportedError):
    """Something that cannot be compiled."""


class UserError(Unsupported):
    """A program that cannot be compiled."""


class TorchRuntimeError(TorchDynamoException):
    """An error while shapes are followed."""


class ResetRequired(TorchDynamoException):
    """Something was changed after compiling."""


class RestartAnalysis(TorchDynamoException):
    """Compiling starts again."""


class TensorifyScalarRestartAnalysis(RestartAnalysis):
    """Compiling starts again with a number as a tensor."""


class RecompileError(TorchDynamoException):
    """Compiled once more where that was forbidden."""


class FailOnRecompileLimitHit(TorchDynamoException):
    """Compiled too often."""
