"""Devices that run generated text: every form from the loop IR, over a runtime."""

from __future__ import annotations
