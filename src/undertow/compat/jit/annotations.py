"""Types that programs write for TorchScript."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: UP035

from ...core.tensor import Tensor
from ._script import refuse

__all__ = ["Any", "Dict", "List", "Optional", "Tensor", "Tuple", "Union"]


class BroadcastingListCls:
    """`BroadcastingList2[int]`: a list, or a number that stands for all of it."""

    def __getitem__(self, types: Any) -> None:
        return None


BroadcastingList1 = BroadcastingListCls()
BroadcastingList2 = BroadcastingList3 = BroadcastingList4 = BroadcastingList1
BroadcastingList5 = BroadcastingList6 = BroadcastingList1


def ann_to_type(ann: Any, loc: Any, rcb: Any = None) -> Any:
    """Refused: there is no TorchScript."""
    refuse("annotations.ann_to_type")


def try_ann_to_type(ann: Any, loc: Any, rcb: Any = None) -> Any:
    """Refused: there is no TorchScript."""
    refuse("annotations.try_ann_to_type")
