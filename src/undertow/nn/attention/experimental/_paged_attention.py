"""Keys and values in pages: a name."""

from __future__ import annotations

from typing import Any

from ....errors import UnsupportedError


class PagedAttention:
    """Keys and values in pages, which torch's kernels read: there are none here."""

    def __init__(self, *args: Any, **options: Any) -> None:
        raise UnsupportedError(
            "[PagedAttention] keys and values lie in one tensor here; use flex_attention with a "
            "block mask"
        )
