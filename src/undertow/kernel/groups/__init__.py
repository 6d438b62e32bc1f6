"""The forms for devices whose threads run in groups: loop IR with 32-bit offsets.

Each is one launch. Elements are dealt out in blocks, or a group of threads works on one row; see
Note [groups] in kernel/ir.
"""
