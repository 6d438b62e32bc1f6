"""Anomaly detection: where in the forward a bad gradient comes from."""

from __future__ import annotations

from ..core.modes import Setting, Switch, current


class detect_anomaly(Switch):
    """Remember where every operation was called, and check every gradient for NaN.

    An error in the backward then names the line of the forward call whose gradient failed. With
    `check_nan=False` only errors that are raised anyway are explained. It costs time and memory:
    for finding bugs.

    >>> import undertow as ut
    >>> x = ut.tensor(0.0, requires_grad=True)
    >>> with ut.autograd.detect_anomaly():
    ...     y = 0.0 / x
    ...     try:
    ...         y.backward()
    ...     except ut.errors.GradientError as error:
    ...         print(str(error).split(";")[0])
    [RdivBackward0] its backward returned NaN in gradient 0
    """

    __slots__ = ()

    def __init__(self, check_nan: bool = True) -> None:
        super().__init__(anomaly=True, check_nan=bool(check_nan))


class set_detect_anomaly(Setting):
    """Switch anomaly detection on or off at once; as a context manager, until its end.

    >>> import undertow as ut
    >>> with ut.autograd.set_detect_anomaly(True):
    ...     ut.autograd.is_anomaly_enabled()
    True
    """

    __slots__ = ()

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        super().__init__(anomaly=bool(mode), check_nan=bool(check_nan))


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """`set_detect_anomaly` as a function.

    >>> import undertow as ut
    >>> ut.set_anomaly_enabled(False)
    """
    set_detect_anomaly(mode, check_nan)


def is_anomaly_enabled() -> bool:
    """Whether anomaly detection is on in this context.

    >>> import undertow as ut
    >>> with ut.autograd.detect_anomaly():
    ...     ut.is_anomaly_enabled()
    True
    >>> ut.is_anomaly_enabled()
    False
    """
    return current().anomaly


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly detection, if on, looks for NaN.

    >>> import undertow as ut
    >>> with ut.autograd.detect_anomaly(check_nan=False):
    ...     ut.is_anomaly_check_nan_enabled()
    False
    """
    return current().check_nan
