"""Machine code that Python calls as one of its own functions, without ctypes between them.

Note [native calls]
Around a small kernel ctypes and `struct` take a microsecond: the address of each array, the tuple
of numbers, their bytes, the call. A function of CPython's is a machine address with a signature,
`PyObject *f(PyObject *self, PyObject **args, Py_ssize_t count)`, and LLVM can make one as well as a
C compiler. So there are five kinds, made once for all kernels and all ufuncs; what they are about
is a table of 64-bit numbers, the `self` of the function:
  launch  puts the pool, the addresses of arrays, what the plan knows and numbers side by side (Note
          [packed arguments]) on the stack, and calls a kernel.
  guard   asks what every small call asks of its arrays, class, dtype and number of elements, and
          calls a ufunc; or gives None.
  quick   is a ufunc of arithmetic, which it calls for all but what small tensors mostly are: arrays
          of one shape in row-major order, or one and a number. These it computes by itself, in a
          third of the time; the four operations are rounded exactly, so the bits are the same.
  layout  writes down, as bytes, all that a plan depends on of its operands (`plan_of`): an array's
          dtype, shape and strides, and the class of a number.
  many    calls one kernel after the other, each with words that are there already: a program.
All read an array's fields where NumPy's own headers, and so every compiled extension, have them.
`refusal` has looked whether they are there, and tells what is not. The functions are called with
the arrays that they were made for. The caller holds these, and Python's lock unless `launch` was
told to let it go.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..codegen.jit import load
from .choice import MODE

_HEAD = object.__basicsize__  # Python's own fields, the class last; an array's are behind them
_FASTCALL = 0x80  # how a function takes its arguments: METH_FASTCALL
_WORD = (1 << 64) - 1
_KINDS = {"f32": 0, "f64": 1, "i64": 2}


class _Method(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


@functools.cache
def possible() -> bool:
    """Whether there are compiled functions, and objects are laid out as these expect."""
    return not refusal()


@functools.cache
def refusal() -> str:
    """Why there are no compiled functions; empty if there are.

    Only what is known is read at all: behind the head of an object of another interpreter there may
    be anything.
    """
    if MODE == "never":
        return "there are no generated kernels"
    if sys.implementation.name != "cpython":
        return f"{sys.implementation.name} lays objects out in another way than CPython"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "this build of Python may run without its lock"
    if ctypes.sizeof(ctypes.c_void_p) != 8 or _HEAD != 16:
        return f"the head of an object has {_HEAD} bytes, not 16"
    wrong = [name for name, found, expected in _fields() if found != expected]
    return f"objects have another layout: {', '.join(wrong)}" if wrong else ""


def _fields() -> Iterator[tuple[str, Any, Any]]:
    """What is read of objects: what it is, what is found there, and what it should be."""
    word, number = ctypes.c_size_t.from_address, ctypes.c_int.from_address
    sample: Any = np.zeros((2, 3), np.float32)
    for value in (sample, 1.5, 7, b"sample"):
        yield f"class of {type(value).__name__}", word(id(value) + _HEAD - 8).value, id(type(value))
    real, text = 1.5, b"sample"
    yield "value of float", ctypes.c_double.from_address(id(real) + _HEAD).value, real
    at = id(text) + bytes.__basicsize__ - 1
    yield "value of bytes", ctypes.string_at(at, len(text)), text
    at = id(sample) + _HEAD
    yield "data of array", word(at).value, sample.__array_interface__["data"][0]
    yield "rank of array", number(at + 8).value, 2
    yield "dtype of array", word(at + 40).value, id(sample.dtype)
    yield "flags of array", number(at + 48).value, sample.flags.num
    # Through these addresses only if the fields around them are where they should be.
    kind = number(id(sample.dtype) + _HEAD + 12).value
    yield "number of dtype", kind, sample.dtype.num
    whole = word(at).value == sample.__array_interface__["data"][0] and number(at + 8).value == 2
    yield "shape of array", word(word(at + 16).value + 8).value if whole else None, 3
    yield "strides of array", word(word(at + 24).value + 8).value if whole else None, 4


def launcher(
    address: int, buffers: int, known: Sequence[int], kinds: Sequence[str], release: bool
) -> Callable[..., None]:
    """A kernel as a function of its pool, its arrays and then its numbers, of these `kinds`.

    `known` are the integers between them, which a plan knows. `release` tells that other threads of
    Python may run meanwhile.
    """
    head = [address, buffers, len(known), len(kinds), int(release), id(None)]
    names = "Py_IncRef PyFloat_AsDouble PyLong_AsUnsignedLongLongMask PyErr_Occurred"
    names += " PyEval_SaveThread PyEval_RestoreThread"
    return _function("launch", [*head, *_symbols(names), *[_KINDS[k] for k in kinds], *known])


def many(calls: Sequence[tuple[int, int]], release: bool) -> Callable[[], None]:
    """Kernels, by their addresses and those of their packed arguments, as one function."""
    head = [len(calls), int(release), id(None)]
    names = "Py_IncRef PyEval_SaveThread PyEval_RestoreThread"
    return _function("many", [*head, *_symbols(names), *[word for call in calls for word in call]])


def guard(
    compute: Callable[..., Any], arrays: Sequence[bool], dtypes: Sequence[Any], limit: int
) -> Callable[..., Any]:
    """`compute` of small arrays, which come first, and numbers; None for all other operands.

    What the first array and another are broadcast to is small as well.

    The arrays have one of three dtypes, all the same; numbers beside those of the third are ints.
    """
    kept = [compute, np.asarray, *dtypes]
    _alive.append(kept)
    compute_id, whole, *known = [0 if k is None else id(k) for k in kept]
    facts = [compute_id, whole, sum(arrays), len(arrays), limit, id(np.ndarray), id(int), id(None)]
    return _function(
        "guard", [*facts, *known, *_symbols("Py_IncRef Py_DecRef PyObject_Vectorcall")]
    )


def layout() -> Callable[..., Any]:
    """What a plan depends on of arrays, numbers and Nones, as bytes; None for other operands."""
    known = [np.ndarray, int, float, complex, type(None)]
    return _function("layout", [*[id(k) for k in known], id(None), *_symbols(_BYTES)])


_MOST = 1024  # elements for which setting up a ufunc takes longer than computing
ARITHMETIC = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
# In the table that NumPy gives to compiled extensions: PyArray_GetNDArrayCVersion, which tells what
# else is where in it, and PyArray_NewLikeArray.
_VERSION, _NEW_LIKE = 0, 277
_NUMPY = 0x02000000  # the version of all of NumPy 2


def quick(ufuncs: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """Of ufuncs by the names of their primitives, those of arithmetic, quicker for small arrays."""
    core = getattr(np, "_core", None) or np.core
    capsule = getattr(getattr(core, "_multiarray_umath", None), "_ARRAY_API", None)
    if capsule is None:
        return {}
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    entries = ctypes.c_void_p * (_NEW_LIKE + 1)
    known_as = entries.from_address(pointer(capsule, None))
    version = ctypes.CFUNCTYPE(ctypes.c_uint)(known_as[_VERSION] or 0)
    if version() != _NUMPY:
        return {}
    new = known_as[_NEW_LIKE] or 0
    dtypes = np.dtype(np.float32), np.dtype(np.float64)
    _alive.append(dtypes)
    known = [id(k) for k in (np.ndarray, float, *dtypes)]
    calls = _symbols("Py_IncRef PyObject_Vectorcall")
    return {
        name: _function(f"quick_{name}", [id(ufuncs[name]), *known, _MOST, new, *calls])
        for name in ARITHMETIC
    }


_BYTES = "Py_IncRef PyBytes_FromStringAndSize"
_alive: list[Any] = []  # what functions refer to by address: there are a few for each door


@functools.cache
def _symbols(names: str) -> list[int]:
    found = [ctypes.cast(getattr(ctypes.pythonapi, n), ctypes.c_void_p) for n in names.split()]
    return [f.value or 0 for f in found]


@functools.cache
def _method(name: str) -> _Method:
    method = _Method(name.encode(), load(name, _TEXTS[name]), _FASTCALL, None)
    _alive.append(method)  # of two threads that come at once each has one, the cache keeps one
    return method


def _function(name: str, table: list[int]) -> Callable[..., Any]:
    """One of the functions of this file, with a table as its `self`."""
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
        ("PyCFunction_NewEx", ctypes.pythonapi)
    )
    words = np.array([word & _WORD for word in table], np.uint64)
    made: Callable[..., Any] = make(ctypes.addressof(_method(name)), words, None)
    return made


# The text of the functions ---------------------------------------------------------------------
def _loop(name: str, count: str, body: str) -> str:
    """Lines that run `body`, which ends in a block of its own, for `%{name}.i` below `count`."""
    return f"""
  br label %{name}.before
{name}.before:
  br label %{name}.head
{name}.head:
  %{name}.i = phi i64 [ 0, %{name}.before ], [ %{name}.next, %{name}.tail ]
  %{name}.more = icmp slt i64 %{name}.i, {count}
  br i1 %{name}.more, label %{name}.body, label %{name}.after
{name}.body:
{body}
  br label %{name}.tail
{name}.tail:
  %{name}.next = add i64 %{name}.i, 1
  br label %{name}.head
{name}.after:"""


def _table(names: str) -> str:
    """Lines that load the table's entries in order; a capital letter is that of a pointer."""
    lines = ["  %table.place = getelementptr i8, ptr %self, i64 " + str(_HEAD)]
    lines.append("  %table = load ptr, ptr %table.place")
    for place, name in enumerate(names.split()):
        lines.append(f"  %{name}.at = getelementptr i64, ptr %table, i64 {place}")
        lines.append(f"  %{name} = load {'ptr' if name[0].isupper() else 'i64'}, ptr %{name}.at")
    return "\n".join(lines)


def _given(name: str, index: str) -> str:
    """Lines that load an argument and its class."""
    return f"""
  %{name}.given = getelementptr ptr, ptr %args, i64 {index}
  %{name} = load ptr, ptr %{name}.given
{_field(f"{name}.class", name, -8)}"""


def _field(name: str, of: str, offset: int, kind: str = "ptr") -> str:
    """Lines that load a field of an object, counted from the end of Python's own."""
    return f"""
  %{name}.place = getelementptr i8, ptr %{of}, i64 {_HEAD + offset}
  %{name} = load {kind}, ptr %{name}.place"""


_BUFFER = f"""
  %b.place = add i64 %b.i, 1
{_given("array", "%b.place")}
{_field("data", "array", 0)}
  %b.to = getelementptr i64, ptr %packed, i64 %b.place
  store ptr %data, ptr %b.to"""
_KNOWN = """
  %k.from = getelementptr i64, ptr %ints, i64 %k.i
  %k.value = load i64, ptr %k.from
  %k.place = add i64 %k.i, %first
  %k.to = getelementptr i64, ptr %packed, i64 %k.place
  store i64 %k.value, ptr %k.to"""
_NUMBER = f"""
  %n.index = add i64 %n.i, %first
{_given("number", "%n.index")}
  %n.place = add i64 %n.i, %then
  %n.to = getelementptr i64, ptr %packed, i64 %n.place
  %n.from = getelementptr i64, ptr %kinds, i64 %n.i
  %kind = load i64, ptr %n.from
  %whole = icmp eq i64 %kind, 2
  br i1 %whole, label %n.long, label %n.real
n.long:
  %long = call i64 %Long(ptr %number)
  store i64 %long, ptr %n.to
  br label %n.check
n.real:
  %double = call double %Double(ptr %number)
  store double %double, ptr %n.to
  %narrow = icmp eq i64 %kind, 0
  br i1 %narrow, label %n.single, label %n.check
n.single:
  %single = fptrunc double %double to float
  store float %single, ptr %n.to
  br label %n.check
n.check:
  %failed = call ptr %Failed()
  %wrong = icmp ne ptr %failed, null
  br i1 %wrong, label %error, label %n.stored
n.stored:"""
_LAUNCH = f"""
define ptr @launch(ptr %self, ptr %args, i64 %count) {{
{_table("Kernel buffers known numbers release Nothing Incref Double Long Failed Save Restore")}
  %kinds = getelementptr i64, ptr %table, i64 12
  %ints = getelementptr i64, ptr %kinds, i64 %numbers
  %first = add i64 %buffers, 1
  %then = add i64 %first, %known
  %all = add i64 %then, %numbers
  %packed = alloca i64, i64 %all, align 16
{_given("pool", "0")}
  %handle = call i64 %Long(ptr %pool)
  store i64 %handle, ptr %packed
{_loop("b", "%buffers", _BUFFER)}
{_loop("k", "%known", _KNOWN)}
{_loop("n", "%numbers", _NUMBER)}
  %released = icmp ne i64 %release, 0
  br i1 %released, label %apart, label %held
apart:
  %state = call ptr %Save()
  call void %Kernel(ptr %packed)
  call void %Restore(ptr %state)
  br label %done
held:
  call void %Kernel(ptr %packed)
  br label %done
done:
  call void %Incref(ptr %Nothing)
  ret ptr %Nothing
error:
  ret ptr null
}}
"""


_ONE = """
  %m.at = shl i64 %m.i, 1
  %m.entry.from = getelementptr ptr, ptr %calls, i64 %m.at
  %m.words.from = getelementptr ptr, ptr %m.entry.from, i64 1
  %m.entry = load ptr, ptr %m.entry.from
  %m.words = load ptr, ptr %m.words.from
  call void %m.entry(ptr %m.words)"""
_MANY = f"""
define ptr @many(ptr %self, ptr %args, i64 %given) {{
{_table("count release Nothing Incref Save Restore")}
  %calls = getelementptr i64, ptr %table, i64 6
  %released = icmp ne i64 %release, 0
  br i1 %released, label %apart, label %begin
apart:
  %saved = call ptr %Save()
  br label %begin
begin:
  %state = phi ptr [ null, %0 ], [ %saved, %apart ]
{_loop("m", "%count", _ONE)}
  br i1 %released, label %back, label %done
back:
  call void %Restore(ptr %state)
  br label %done
done:
  call void %Incref(ptr %Nothing)
  ret ptr %Nothing
}}
"""


def _last(name: str, rank: str, shape: str) -> str:
    """Lines that load the size of a dimension counted from the last; 1 before the first."""
    return f"""
  %{name}.index = sub i32 %{rank}, %w.next
  %{name}.there = icmp sge i32 %{name}.index, 0
  br label %{name}.before
{name}.before:
  br i1 %{name}.there, label %{name}.load, label %{name}.after
{name}.load:
  %{name}.from = getelementptr i64, ptr %{shape}, i32 %{name}.index
  %{name}.found = load i64, ptr %{name}.from
  br label %{name}.after
{name}.after:
  %{name} = phi i64 [ 1, %{name}.before ], [ %{name}.found, %{name}.load ]"""


_OPERAND = f"""{_given("o", "%o.i")}
  %array = icmp slt i64 %o.i, %arrays
  br i1 %array, label %o.array, label %o.number
o.number:
  %o.int = icmp eq ptr %o.class, %Int
  %o.real = xor i1 %is.c, true
  %o.fits = or i1 %o.int, %o.real
  br i1 %o.fits, label %o.usual, label %other
o.array:
  %o.known = icmp eq ptr %o.class, %Kind
  br i1 %o.known, label %o.dtypes, label %other
o.dtypes:
{_field("o.dtype", "o", 40)}
  %o.same = icmp eq ptr %o.dtype, %dtype
  br i1 %o.same, label %s.before, label %other
s.before:
{_field("dims", "o", 8, "i32")}
{_field("shape", "o", 16)}
  br label %s.head
s.head:
  %s.i = phi i32 [ 0, %s.before ], [ %s.next, %s.body ]
  %size = phi i64 [ 1, %s.before ], [ %product, %s.body ]
  %s.more = icmp slt i32 %s.i, %dims
  br i1 %s.more, label %s.body, label %s.after
s.body:
  %s.from = getelementptr i64, ptr %shape, i32 %s.i
  %length = load i64, ptr %s.from
  %product = mul i64 %size, %length
  %s.next = add i32 %s.i, 1
  br label %s.head
s.after:
  %small = icmp slt i64 %size, %limit
  br i1 %small, label %w.before, label %other
w.before:
  %longer = icmp sgt i32 %dims, %x.dims
  %rank = select i1 %longer, i32 %dims, i32 %x.dims
  br label %w.head
w.head:
  %w.i = phi i32 [ 0, %w.before ], [ %w.next, %w.tail ]
  %wide = phi i64 [ 1, %w.before ], [ %wider, %w.tail ]
  %w.more = icmp slt i32 %w.i, %rank
  br i1 %w.more, label %w.body, label %w.after
w.body:
  %w.next = add i32 %w.i, 1
{_last("x.length", "x.dims", "x.shape")}
{_last("o.length", "dims", "shape")}
  br label %w.tail
w.tail:
  %w.larger = icmp sgt i64 %x.length, %o.length
  %w.length = select i1 %w.larger, i64 %x.length, i64 %o.length
  %wider = mul i64 %wide, %w.length
  br label %w.head
w.after:
  %narrow = icmp slt i64 %wide, %limit
  br i1 %narrow, label %o.usual, label %other
o.usual:"""
_GUARD = f"""
define ptr @guard(ptr %self, ptr %args, i64 %count) {{
{_table("Compute Whole arrays given limit Kind Int Nothing A B C Incref Decref Call")}
  %one = alloca ptr, align 8
  %fits = icmp eq i64 %count, %given
  br i1 %fits, label %class, label %other
class:
{_given("x", "0")}
  %x.known = icmp eq ptr %x.class, %Kind
  br i1 %x.known, label %dtype.of, label %other
dtype.of:
{_field("dtype", "x", 40)}
  %is.a = icmp eq ptr %dtype, %A
  %is.b = icmp eq ptr %dtype, %B
  %is.c = icmp eq ptr %dtype, %C
  %is.ab = or i1 %is.a, %is.b
  %is.abc = or i1 %is.ab, %is.c
  br i1 %is.abc, label %every, label %other
every:
{_field("x.dims", "x", 8, "i32")}
{_field("x.shape", "x", 16)}
{_loop("o", "%given", _OPERAND)}
  %r = call ptr %Call(ptr %Compute, ptr %args, i64 %count, ptr null)
  %failed = icmp eq ptr %r, null
  br i1 %failed, label %give, label %look
give:
  ret ptr %r
look:
{_field("r.class", "r", -8)}
  %r.known = icmp eq ptr %r.class, %Kind
  br i1 %r.known, label %give, label %wrap
wrap:
  store ptr %r, ptr %one
  %w = call ptr %Call(ptr %Whole, ptr %one, i64 1, ptr null)
  call void %Decref(ptr %r)
  ret ptr %w
other:
  call void %Incref(ptr %Nothing)
  ret ptr %Nothing
}}
"""
_WORDS = 4  # of an array, before its shape and strides: three of its dtype, and its dimensions
_COUNTED = f"""{_given("c", "%c.i")}
  %c.sum = load i64, ptr %total
  %c.array = icmp eq ptr %c.class, %Kind
  br i1 %c.array, label %c.dims, label %c.number
c.dims:
{_field("c.rank", "c", 8, "i32")}
  %c.twice = mul i32 %c.rank, 2
  %c.both = zext i32 %c.twice to i64
  %c.words = add i64 %c.both, {_WORDS}
  br label %c.add
c.number:
  %c.int = icmp eq ptr %c.class, %Int
  %c.float = icmp eq ptr %c.class, %Float
  %c.complex = icmp eq ptr %c.class, %Complex
  %c.none = icmp eq ptr %c.class, %None
  %c.real = or i1 %c.int, %c.float
  %c.other = or i1 %c.complex, %c.none
  %c.known = or i1 %c.real, %c.other
  br i1 %c.known, label %c.add, label %unknown
c.add:
  %c.added = phi i64 [ %c.words, %c.dims ], [ 1, %c.number ]
  %c.then = add i64 %c.sum, %c.added
  store i64 %c.then, ptr %total"""
# A dtype's words are those behind its class: its kind, number, flags and size. By its address it
# would not be known: another dtype may get that.
_WRITTEN = f"""{_given("w", "%w.i")}
  %w.to = load ptr, ptr %next
  %w.array = icmp eq ptr %w.class, %Kind
  br i1 %w.array, label %w.dtype, label %w.number
w.number:
  store ptr %w.class, ptr %w.to
  %w.behind = getelementptr i64, ptr %w.to, i64 1
  store ptr %w.behind, ptr %next
  br label %w.done
w.dtype:
{_field("w.descr", "w", 40)}
{_field("w.first", "w.descr", 8, "i64")}
{_field("w.second", "w.descr", 16, "i64")}
{_field("w.third", "w.descr", 24, "i64")}
{_field("w.rank", "w", 8, "i32")}
{_field("w.shape", "w", 16)}
{_field("w.strides", "w", 24)}
  %w.dims = zext i32 %w.rank to i64
  store i64 %w.first, ptr %w.to
  %w.to.b = getelementptr i64, ptr %w.to, i64 1
  store i64 %w.second, ptr %w.to.b
  %w.to.c = getelementptr i64, ptr %w.to, i64 2
  store i64 %w.third, ptr %w.to.c
  %w.to.d = getelementptr i64, ptr %w.to, i64 3
  store i64 %w.dims, ptr %w.to.d
  %w.sizes = getelementptr i64, ptr %w.to, i64 {_WORDS}
  %w.steps = getelementptr i64, ptr %w.sizes, i64 %w.dims
  %w.end = getelementptr i64, ptr %w.steps, i64 %w.dims
  store ptr %w.end, ptr %next
  br label %d.head
d.head:
  %d.i = phi i64 [ 0, %w.dtype ], [ %d.next, %d.body ]
  %d.more = icmp slt i64 %d.i, %w.dims
  br i1 %d.more, label %d.body, label %w.done
d.body:
  %d.size.from = getelementptr i64, ptr %w.shape, i64 %d.i
  %d.size = load i64, ptr %d.size.from
  %d.size.to = getelementptr i64, ptr %w.sizes, i64 %d.i
  store i64 %d.size, ptr %d.size.to
  %d.step.from = getelementptr i64, ptr %w.strides, i64 %d.i
  %d.step = load i64, ptr %d.step.from
  %d.step.to = getelementptr i64, ptr %w.steps, i64 %d.i
  store i64 %d.step, ptr %d.step.to
  %d.next = add i64 %d.i, 1
  br label %d.head
w.done:"""
_LAYOUT = f"""
define ptr @layout(ptr %self, ptr %args, i64 %count) {{
{_table("Kind Int Float Complex None Nothing Incref Bytes")}
  %total = alloca i64, align 8
  %next = alloca ptr, align 8
  store i64 0, ptr %total
{_loop("c", "%count", _COUNTED)}
  %words = load i64, ptr %total
  %size = mul i64 %words, 8
  %made = call ptr %Bytes(ptr null, i64 %size)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %give, label %write
write:
  %content = getelementptr i8, ptr %made, i64 {bytes.__basicsize__ - 1}
  store ptr %content, ptr %next
{_loop("w", "%count", _WRITTEN)}
  br label %give
give:
  ret ptr %made
unknown:
  call void %Incref(ptr %Nothing)
  ret ptr %Nothing
}}
"""
# Flags of an array: in row-major order and aligned; and to be written to.
_PLAIN, _WRITABLE = 0x101, 0x501


def _alike(name: str, flags: int, good: str) -> str:
    """Lines that go on to `good` if an argument is an array like the first, else to `other`."""
    return f"""
{_field(f"{name}.dtype", name, 40)}
{_field(f"{name}.flags", name, 48, "i32")}
{_field(f"{name}.rank", name, 8, "i32")}
{_field(f"{name}.shape", name, 16)}
{_field(f"{name}.data", name, 0)}
  %{name}.bits = and i32 %{name}.flags, {flags}
  %{name}.plain = icmp eq i32 %{name}.bits, {flags}
  %{name}.same = icmp eq ptr %{name}.dtype, %x.dtype
  %{name}.deep = icmp eq i32 %{name}.rank, %x.rank
  %{name}.half = and i1 %{name}.plain, %{name}.same
  %{name}.good = and i1 %{name}.half, %{name}.deep
  br i1 %{name}.good, label %{name}.before, label %other
{name}.before:
  br label %{name}.head
{name}.head:
  %{name}.i = phi i32 [ 0, %{name}.before ], [ %{name}.next, %{name}.even ]
  %{name}.more = icmp slt i32 %{name}.i, %x.rank
  br i1 %{name}.more, label %{name}.body, label %{good}
{name}.body:
  %{name}.place = getelementptr i64, ptr %{name}.shape, i32 %{name}.i
  %{name}.length = load i64, ptr %{name}.place
  %{name}.x.place = getelementptr i64, ptr %x.shape, i32 %{name}.i
  %{name}.x.length = load i64, ptr %{name}.x.place
  %{name}.fits = icmp eq i64 %{name}.length, %{name}.x.length
  br i1 %{name}.fits, label %{name}.even, label %other
{name}.even:
  %{name}.next = add i32 %{name}.i, 1
  br label %{name}.head"""


def _elements(name: str, kind: str, operation: str, other: str = "") -> str:
    """Lines that compute all elements; with a number `other` in the place of the second array."""
    second = f"""
  %{name}.b.place = getelementptr {kind}, ptr %second.data, i64 %{name}.i
  %{name}.b = load {kind}, ptr %{name}.b.place"""
    body = f"""
  %{name}.a.place = getelementptr {kind}, ptr %x.data, i64 %{name}.i
  %{name}.a = load {kind}, ptr %{name}.a.place
{"" if other else second}
  %{name}.r = {operation} {kind} %{name}.a, {other or f"%{name}.b"}
  %{name}.r.place = getelementptr {kind}, ptr %out.data, i64 %{name}.i
  store {kind} %{name}.r, ptr %{name}.r.place"""
    return _loop(name, "%size", body) + "\n  ret ptr %out"


def _quick(name: str, operation: str) -> str:
    return f"""
define ptr @quick_{name}(ptr %self, ptr %args, i64 %count) {{
{_table("Ufunc Kind Float Single Double limit New Incref Call")}
  %two = icmp eq i64 %count, 2
  %three = icmp eq i64 %count, 3
  %counted = or i1 %two, %three
  br i1 %counted, label %first, label %other
first:
{_given("x", "0")}
  %x.known = icmp eq ptr %x.class, %Kind
  br i1 %x.known, label %x.look, label %other
x.look:
{_field("x.dtype", "x", 40)}
{_field("x.flags", "x", 48, "i32")}
{_field("x.rank", "x", 8, "i32")}
{_field("x.shape", "x", 16)}
{_field("x.data", "x", 0)}
  %x.bits = and i32 %x.flags, {_PLAIN}
  %x.plain = icmp eq i32 %x.bits, {_PLAIN}
  %single = icmp eq ptr %x.dtype, %Single
  %double = icmp eq ptr %x.dtype, %Double
  %floating = or i1 %single, %double
  %x.good = and i1 %x.plain, %floating
  br i1 %x.good, label %s.before, label %other
s.before:
  br label %s.head
s.head:
  %s.i = phi i32 [ 0, %s.before ], [ %s.next, %s.body ]
  %size = phi i64 [ 1, %s.before ], [ %product, %s.body ]
  %s.more = icmp slt i32 %s.i, %x.rank
  br i1 %s.more, label %s.body, label %s.after
s.body:
  %s.from = getelementptr i64, ptr %x.shape, i32 %s.i
  %length = load i64, ptr %s.from
  %product = mul i64 %size, %length
  %s.next = add i32 %s.i, 1
  br label %s.head
s.after:
  %small = icmp slt i64 %size, %limit
  br i1 %small, label %second, label %other
second:
{_given("y", "1")}
  %y.known = icmp eq ptr %y.class, %Kind
  br i1 %y.known, label %y.look, label %y.number
y.number:
  %y.float = icmp eq ptr %y.class, %Float
  %scalar = and i1 %y.float, %two
  br i1 %scalar, label %with.number, label %other
with.number:
{_field("wide", "y", 0, "double")}
  %narrow = fptrunc double %wide to float
  br label %fresh
y.look:
{_alike("y", _PLAIN, "y.alike")}
y.alike:
  br i1 %two, label %fresh, label %third
third:
{_given("o", "2")}
  %o.known = icmp eq ptr %o.class, %Kind
  br i1 %o.known, label %o.look, label %other
o.look:
{_alike("o", _WRITABLE, "o.alike")}
o.alike:
  %bytes = shl i64 %size, 3
  %o.at = ptrtoint ptr %o.data to i64
  %x.at = ptrtoint ptr %x.data to i64
  %y.at = ptrtoint ptr %y.data to i64
  %x.off = sub i64 %o.at, %x.at
  %y.off = sub i64 %o.at, %y.at
  %x.far = call i64 @llvm.abs.i64(i64 %x.off, i1 false)
  %y.far = call i64 @llvm.abs.i64(i64 %y.off, i1 false)
  %x.apart = icmp uge i64 %x.far, %bytes
  %y.apart = icmp uge i64 %y.far, %bytes
  %x.is = icmp eq i64 %x.off, 0
  %y.is = icmp eq i64 %y.off, 0
  %x.free = or i1 %x.apart, %x.is
  %y.free = or i1 %y.apart, %y.is
  %free = and i1 %x.free, %y.free
  br i1 %free, label %into, label %other
into:
  call void %Incref(ptr %o)
  br label %both
fresh:
  %value = phi double [ 0.0, %y.alike ], [ %wide, %with.number ]
  %value.single = phi float [ 0.0, %y.alike ], [ %narrow, %with.number ]
  %made = call ptr %New(ptr %x, i32 0, ptr null, i32 0)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %fail, label %both
fail:
  ret ptr null
both:
  %out = phi ptr [ %o, %into ], [ %made, %fresh ]
  %number = phi double [ 0.0, %into ], [ %value, %fresh ]
  %number.single = phi float [ 0.0, %into ], [ %value.single, %fresh ]
{_field("out.data", "out", 0)}
  br i1 %y.known, label %arrays, label %numbers
arrays:
{_field("second.data", "y", 0)}
  br i1 %single, label %arrays.f32, label %arrays.f64
numbers:
  br i1 %single, label %numbers.f32, label %numbers.f64
arrays.f32:
{_elements("af", "float", operation)}
arrays.f64:
{_elements("ad", "double", operation)}
numbers.f32:
{_elements("nf", "float", operation, "%number.single")}
numbers.f64:
{_elements("nd", "double", operation, "%number")}
other:
  %r = call ptr %Call(ptr %Ufunc, ptr %args, i64 %count, ptr null)
  ret ptr %r
}}
declare i64 @llvm.abs.i64(i64, i1)
"""


_TEXTS = {
    "launch": _LAUNCH,
    "many": _MANY,
    "guard": _GUARD,
    "layout": _LAYOUT,
    **{f"quick_{name}": _quick(name, operation) for name, operation in ARITHMETIC.items()},
}
