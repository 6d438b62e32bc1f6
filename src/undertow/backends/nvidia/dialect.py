"""Kernels as CUDA C, compiled by NVRTC with `-fmad=false`: what is written is what is rounded.

Note [launch bounds]
Where nobody says how many groups a processor shall hold, ptxas takes few registers so that it holds
many, and spills a few bytes in some kernels. One group at least: then a kernel has the registers
that it needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ...kernel.ir import FLOATS, INTEGERS
from ..generated.dialect import Binding, Dialect, Shared, Table

# NVRTC has the functions of math.h without a header, but not its macros. Numbers of 16 bits are
# converted by the instructions themselves, so that no header is needed there either.
PRELUDE = """\
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fc00000)
template <class To, class From> __device__ __forceinline__ To same_bits(From x) {
  union { From from; To to; } both = {x};
  return both.to;
}
__device__ __forceinline__ float from_half(unsigned short x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
}
__device__ __forceinline__ unsigned short to_half(float x) {
  unsigned short y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
"""


class Cuda(Dialect):
    """CUDA C for NVRTC, without headers."""

    name = "cuda"

    TYPES: ClassVar[dict[str, str]] = {
        "bool": "bool",
        "i8": "signed char",
        "i16": "short",
        "i32": "int",
        "i64": "long long",
        "u8": "unsigned char",
        "u16": "unsigned short",
        "u32": "unsigned int",
        "u64": "unsigned long long",
        "f32": "float",
        "f64": "double",
    }

    def kernel(
        self,
        entry: str,
        bindings: Sequence[Binding],
        words: int,
        shared: Sequence[Shared],
        tables: Sequence[Table],
        group: int,
        body: Sequence[str],
    ) -> str:
        given = [
            f"{'' if b.written else 'const '}unsigned char* __restrict__ {b.name}" for b in bindings
        ]
        given.append("const __grid_constant__ Words words")
        lines = [
            f"struct Words {{ unsigned int at[{max(words, 1)}]; }};",
            *map(self.table, tables),
            f'extern "C" __global__ void __launch_bounds__({group}, 1)',  # see Note [launch bounds]
            f"{entry}({', '.join(given)}) {{",
            *[f"  __shared__ {self.TYPES[s.dtype]} {s.name}[{s.size}];" for s in shared],
            *body,
            "}",
        ]
        return PRELUDE + "\n".join(lines) + "\n"

    def thread(self) -> str:
        return "(int) threadIdx.x"

    def group(self) -> str:
        return "(int) (blockIdx.x + blockIdx.y * gridDim.x)"

    def barrier(self) -> str:
        return "__syncthreads();"

    def param(self, dtype: str, word: int) -> str:
        if dtype in ("i64", "u64", "f64"):
            high = f"(unsigned long long) {self.word(word + 1)} << 32"
            wide = f"((unsigned long long) {self.word(word)} | {high})"
            return wide if dtype == "u64" else self.bitcast("u64", dtype, wide)
        return super().param(dtype, word)

    def load(self, binding: Binding, dtype: str, index: str) -> str:
        at = f"{self.pointer(binding, dtype)}[{index}]"
        if dtype == "f16":
            return f"from_half({at})"
        if dtype == "bf16":
            return f"__uint_as_float((unsigned int) {at} << 16)"
        return super().load(binding, dtype, index)

    def store(self, binding: Binding, dtype: str, index: str, value: str) -> str:
        at = f"{self.pointer(binding, dtype)}[{index}]"
        if dtype == "f16":
            return f"{at} = to_half({value});"
        if dtype == "bf16":  # to the nearest, ties to even; NaN stays one
            bits = f"__float_as_uint({value})"
            near = f"(({bits} + 0x7FFFu + (({bits} >> 16) & 1u)) >> 16)"
            return f"{at} = (unsigned short) (isnan({value}) ? 0x7FC0u : {near});"
        return super().store(binding, dtype, index, value)

    def pointer(self, binding: Binding, dtype: str) -> str:
        held = {"bool": "u8", "f16": "u16", "bf16": "u16"}.get(dtype, dtype)
        const = "" if binding.written else "const "
        return f"(({const}{self.TYPES[held]}*) {binding.name})"

    def cast(self, source: str, target: str, text: str) -> str:
        if source in FLOATS and target in INTEGERS and target not in ("i32", "i64", "u64"):
            text = f"(long long) {text}"  # which wraps around; the instruction itself saturates
        return super().cast(source, target, text)

    def bitcast(self, source: str, target: str, text: str) -> str:
        return f"same_bits<{self.TYPES[target]}>(({self.TYPES[source]}) {text})"

    def table(self, table: Table) -> str:
        entries = ", ".join(self.constant(entry, table.dtype) for entry in table.entries)
        kind = self.TYPES[table.dtype]
        return f"__constant__ {kind} {table.name}[{len(table.entries)}] = {{{entries}}};"
