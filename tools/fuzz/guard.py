"""An allocator that stops a kernel where it reads or writes beyond an array, or one that is freed.

Each array of NumPy's, and each block and all scratch memory that the CPU backend keeps, ends at a
page that nobody may touch. Fresh memory is full of NaNs. What is freed cannot be touched either,
as long as it is among the last `LATE` ones. Less than 16 bytes between an array's end and that page
are looked at when it is freed. Whoever breaks a rule ends the process, which `faulthandler` tells.

    PYTHONPATH=tools python -m fuzz programs --guard --seconds 600
"""

from __future__ import annotations

import ctypes
import threading
from pickle import PickleBuffer
from typing import Any

import numpy as np

from undertow.backends import memory
from undertow.backends.cpu.codegen import jit
from undertow.backends.cpu.products import gemm

LATE = 4096  # a power of two
_SET_HANDLER = 304  # PyDataMem_SetHandler in the table that NumPy gives to compiled extensions
_TEXT = f"""
@places = internal global [{LATE} x ptr] zeroinitializer
@sizes = internal global [{LATE} x i64] zeroinitializer
@turn = internal global i64 0
declare ptr @mmap(ptr, i64, i32, i32, i32, i64)
declare i32 @munmap(ptr, i64)
declare i32 @mprotect(ptr, i64, i32)
declare i32 @madvise(ptr, i64, i32)
declare ptr @memset(ptr, i32, i64)
declare ptr @memcpy(ptr, ptr, i64)
declare void @abort()

define internal ptr @made(i64 %size, i32 %fill) {{
  %more = add i64 %size, 15
  %end = and i64 %more, -16
  %upper = add i64 %end, 4095
  %room = and i64 %upper, -4096
  %whole = add i64 %room, 8192
  %base = call ptr @mmap(ptr null, i64 %whole, i32 3, i32 34, i32 -1, i64 0)
  %failed = icmp eq ptr %base, inttoptr (i64 -1 to ptr)
  br i1 %failed, label %none, label %some
none:
  ret ptr null
some:
  store i64 %whole, ptr %base
  %size.at = getelementptr i64, ptr %base, i64 1
  store i64 %size, ptr %size.at
  %last = add i64 %room, 4096
  %guard = getelementptr i8, ptr %base, i64 %last
  %p = call i32 @mprotect(ptr %guard, i64 4096, i32 0)
  %back = sub i64 0, %end
  %data = getelementptr i8, ptr %guard, i64 %back
  %filled = call ptr @memset(ptr %data, i32 %fill, i64 %size)
  %behind = getelementptr i8, ptr %data, i64 %size
  %slack = sub i64 %end, %size
  %marked = call ptr @memset(ptr %behind, i32 165, i64 %slack)
  ret ptr %data
}}

define internal ptr @base(ptr %data) {{
  %at = ptrtoint ptr %data to i64
  %less = sub i64 %at, 1
  %page = and i64 %less, -4096
  %same = and i64 %at, 4095
  %whole = icmp eq i64 %same, 0
  %here = select i1 %whole, i64 %at, i64 %page
  %before = sub i64 %here, 4096
  %p = inttoptr i64 %before to ptr
  ret ptr %p
}}

define internal ptr @fresh(ptr %ctx, i64 %size) {{
  %p = call ptr @made(i64 %size, i32 255)
  ret ptr %p
}}

define internal ptr @zeros(ptr %ctx, i64 %count, i64 %each) {{
  %size = mul i64 %count, %each
  %p = call ptr @made(i64 %size, i32 0)
  ret ptr %p
}}

define internal void @freed(ptr %ctx, ptr %data, i64 %told) {{
entry:
  %null = icmp eq ptr %data, null
  br i1 %null, label %done, label %look
look:
  %base = call ptr @base(ptr %data)
  %whole = load i64, ptr %base
  %size.at = getelementptr i64, ptr %base, i64 1
  %size = load i64, ptr %size.at
  %more = add i64 %size, 15
  %end = and i64 %more, -16
  br label %check
check:
  %i = phi i64 [ %size, %look ], [ %i.next, %good ]
  %rest = icmp ult i64 %i, %end
  br i1 %rest, label %byte, label %away
byte:
  %at = getelementptr i8, ptr %data, i64 %i
  %mark = load i8, ptr %at
  %right = icmp eq i8 %mark, -91
  br i1 %right, label %good, label %wrong
wrong:
  call void @abort()
  unreachable
good:
  %i.next = add i64 %i, 1
  br label %check
away:
  %a = call i32 @madvise(ptr %base, i64 %whole, i32 4)
  %p = call i32 @mprotect(ptr %base, i64 %whole, i32 0)
  %n = atomicrmw add ptr @turn, i64 1 seq_cst
  %place = and i64 %n, {LATE - 1}
  %place.at = getelementptr ptr, ptr @places, i64 %place
  %size.there = getelementptr i64, ptr @sizes, i64 %place
  %old.size = load i64, ptr %size.there
  store i64 %whole, ptr %size.there
  %old = atomicrmw xchg ptr %place.at, ptr %base seq_cst
  %first = icmp eq ptr %old, null
  br i1 %first, label %done, label %unmap
unmap:
  %u = call i32 @munmap(ptr %old, i64 %old.size)
  br label %done
done:
  ret void
}}

define internal ptr @moved(ptr %ctx, ptr %data, i64 %size) {{
entry:
  %p = call ptr @made(i64 %size, i32 255)
  %null = icmp eq ptr %data, null
  br i1 %null, label %done, label %copy
copy:
  %base = call ptr @base(ptr %data)
  %size.at = getelementptr i64, ptr %base, i64 1
  %old = load i64, ptr %size.at
  %fewer = icmp ult i64 %old, %size
  %count = select i1 %fewer, i64 %old, i64 %size
  %c = call ptr @memcpy(ptr %p, ptr %data, i64 %count)
  call void @freed(ptr %ctx, ptr %data, i64 %old)
  br label %done
done:
  ret ptr %p
}}

define void @guard(ptr %table) {{
  store ptr @fresh, ptr %table
  %b = getelementptr ptr, ptr %table, i64 1
  store ptr @zeros, ptr %b
  %c = getelementptr ptr, ptr %table, i64 2
  store ptr @moved, ptr %c
  %d = getelementptr ptr, ptr %table, i64 3
  store ptr @freed, ptr %d
  ret void
}}
"""


class _Handler(ctypes.Structure):
    """NumPy's PyDataMem_Handler."""

    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", ctypes.c_void_p),
        ("calls", ctypes.c_void_p * 4),
    )


_made: Any = None
_capsule: Any = None


def install() -> None:
    """Guard what this thread, and every thread that starts from now on, allocates."""
    global _made, _capsule
    if _made is None:
        _made = _Handler(b"guard", 1)
        entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(jit.load("guard", _TEXT))
        entry(ctypes.addressof(_made.calls))
        new = ctypes.pythonapi.PyCapsule_New
        new.restype = ctypes.py_object
        new.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        _capsule = new(ctypes.addressof(_made), b"mem_handler", None)
        memory._lines = _lines
        gemm.fresh_scratch = _scratch
        run = threading.Thread.run

        def guarded(self: threading.Thread) -> None:
            _set()
            run(self)

        threading.Thread.run = guarded  # type: ignore[method-assign]
    _set()


def _set() -> None:
    core = getattr(np, "_core", None) or np.core
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    table = pointer(core._multiarray_umath._ARRAY_API, None)
    place = ctypes.c_void_p.from_address(table + 8 * _SET_HANDLER).value
    ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(place)(_capsule)


def _lines(size: int, beside: Any) -> tuple[Any, int]:
    """In the place of `memory._lines`: memory that begins a line and ends at the page."""
    block: Any = np.empty(-(-size // memory.LINE) * memory.LINE, np.uint8)
    return PickleBuffer(block), 0


def _scratch(size: int) -> tuple[int, int, Any]:
    """In the place of `gemm.fresh_scratch`, which rounds up."""
    block: Any = np.empty(size, np.uint8)
    return size, jit.address(block), block
