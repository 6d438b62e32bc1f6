"""Undertow under torch's name; `undertow adopt` puts this file here, `adopt --undo` removes it."""

from undertow.compat.stand_in import stand_in_for

stand_in_for(__name__)
