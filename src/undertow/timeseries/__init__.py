"""Labelled time series out of CSV, `.ts` and `.npz` files, or by a name of the UCR archive."""

from .load import load, read
from .long import Columns
from .published import published
from .series import TimeSeries
from .ucr import names

__all__ = ["Columns", "TimeSeries", "load", "names", "published", "read"]
