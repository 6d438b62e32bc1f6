"""The backend of a device that runs generated text: every form, over its runtime."""

from __future__ import annotations

from .maps import Maps


class GeneratedBackend(Maps):
    """All forms from the loop IR; see runtime.py for what a device brings."""
