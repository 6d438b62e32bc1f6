"""Devices that run generated text: all forms from the loop IR, over a runtime of eight functions."""

from __future__ import annotations
