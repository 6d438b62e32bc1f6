"""AdamW, where torch has it."""

from .adam import AdamW as AdamW
