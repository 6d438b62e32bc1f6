"""Functions of WGSL that kernels call: exact floats, halves in words, and 64-bit integers.

ZERO is a word of the parameters that is 0, of which no compiler knows; see Note [fast math].
An i64 or u64 is `vec2<u32>`, the lower word first.
"""

from __future__ import annotations

import re
from functools import cache

_TEXT = """
fn exact(v: f32) -> f32 { return bitcast<f32>(bitcast<u32>(v) | ZERO); }
fn is_nan(v: f32) -> bool { return (bitcast<u32>(v) & 0x7fffffffu) > 0x7f800000u; }
fn ordered(a: f32, b: f32) -> bool {
  return max(bitcast<u32>(a) & 0x7fffffffu, bitcast<u32>(b) & 0x7fffffffu) <= 0x7f800000u;
}
fn rank(v: f32) -> i32 {
  let b = bitcast<i32>(v);
  return b ^ ((b >> 31u) & 0x7fffffff);
}
fn fmax_(a: f32, b: f32) -> f32 {
  let best = select(b, a, rank(a) > rank(b));
  return select(select(best, b, is_nan(b)), a, is_nan(a));
}
fn fmin_(a: f32, b: f32) -> f32 {
  let best = select(b, a, rank(a) < rank(b));
  return select(select(best, b, is_nan(b)), a, is_nan(a));
}
fn neg_(v: f32) -> f32 { return bitcast<f32>(bitcast<u32>(v) ^ 0x80000000u); }
fn abs_(v: f32) -> f32 { return bitcast<f32>(bitcast<u32>(v) & 0x7fffffffu); }
fn copysign_(a: f32, b: f32) -> f32 {
  return bitcast<f32>((bitcast<u32>(a) & 0x7fffffffu) | (bitcast<u32>(b) & 0x80000000u));
}
fn fused(a: f32, b: f32, c: f32) -> f32 {
  let a_large = (bitcast<u32>(a) & 0x7fffffffu) > 0x76800000u;
  let b_large = (bitcast<u32>(b) & 0x7fffffffu) > 0x76800000u;
  if (a_large || b_large) {
    let down = 9.5367431640625e-07f;
    let x = exact(a * select(1.0f, down, a_large));
    let y = exact(b * select(1.0f, down, b_large && !a_large));
    return exact(fused_small(x, y, exact(c * down)) * 1048576.0f);
  }
  return fused_small(a, b, c);
}
fn fused_small(a: f32, b: f32, c: f32) -> f32 {
  let product = exact(a * b);
  let aw = exact(a * 4097.0f);
  let ah = exact(aw - exact(aw - a));
  let al = exact(a - ah);
  let bw = exact(b * 4097.0f);
  let bh = exact(bw - exact(bw - b));
  let bl = exact(b - bh);
  var low = exact(exact(ah * bh) - product);
  low = exact(exact(low + exact(ah * bl)) + exact(al * bh));
  low = exact(low + exact(al * bl));
  let total = exact(product + c);
  let part = exact(total - product);
  let rest = exact(exact(product - exact(total - part)) + exact(c - part));
  let found = exact(total + exact(rest + low));
  return select(total, found, (bitcast<u32>(found) & 0x7f800000u) != 0x7f800000u);
}
fn scale(a: f32, b: f32) -> f32 {
  let whole = clamp(i32_of(b), -254, 254);
  let half = whole >> 1u;
  let first = exact(a * bitcast<f32>(u32(half + 127) << 23u));
  return exact(first * bitcast<f32>(u32(whole - half + 127) << 23u));
}
fn i32_of(v: f32) -> i32 {
  let fits = (bitcast<u32>(v) & 0x7fffffffu) < 0x4f000000u;
  return select(-2147483647 - 1, i32(select(0.0f, v, fits)), fits);
}
fn i64_of(v: f32) -> vec2<u32> {
  let bits = bitcast<u32>(v);
  let e = i32((bits >> 23u) & 255u) - 150;
  let m = vec2<u32>((bits & 0x7fffffu) | 0x800000u, 0u);
  if (e < -23) { return vec2<u32>(0u, 0u); }
  if (e > 39) { return vec2<u32>(0u, 0x80000000u); }
  var found = m;
  if (e < 0) {
    found = vec2<u32>(m.x >> u32(-e), 0u);
  } else {
    found = shl64(m, vec2<u32>(u32(e), 0u));
  }
  if ((bits & 0x80000000u) != 0u) { found = neg64(found); }
  return found;
}
fn u64_to_f32(v: vec2<u32>) -> f32 {
  if (v.y == 0u) { return u32_to_f32(v.x); }
  let lead = countLeadingZeros(v.y);
  let shifted = shl64(v, vec2<u32>(lead, 0u));
  let top = shifted.y | select(0u, 1u, shifted.x != 0u);
  return exact(u32_to_f32(top) * bitcast<f32>((159u - lead) << 23u));
}
fn u32_to_f32(v: u32) -> f32 {
  let high = exact(f32(v >> 16u) * 65536.0f);
  return exact(high + f32(v & 0xffffu));
}
fn i32_to_f32(v: i32) -> f32 {
  let size = u32_to_f32(bitcast<u32>(abs(v)));
  return select(size, neg_(size), v < 0);
}
fn i64_to_f32(v: vec2<u32>) -> f32 {
  if ((v.y & 0x80000000u) != 0u) { return neg_(u64_to_f32(neg64(v))); }
  return u64_to_f32(v);
}
fn wide(v: i32) -> vec2<u32> { return vec2<u32>(bitcast<u32>(v), bitcast<u32>(v >> 31u)); }
fn add64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let low = a.x + b.x;
  return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}
fn sub64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return vec2<u32>(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x));
}
fn neg64(a: vec2<u32>) -> vec2<u32> { return sub64(vec2<u32>(0u, 0u), a); }
fn abs64(a: vec2<u32>) -> vec2<u32> { return select(a, neg64(a), (a.y & 0x80000000u) != 0u); }
fn mul32(a: u32, b: u32) -> vec2<u32> {
  let al = a & 0xffffu;
  let ah = a >> 16u;
  let bl = b & 0xffffu;
  let bh = b >> 16u;
  let low = al * bl;
  let mid = ah * bl + (low >> 16u);
  let other = al * bh + (mid & 0xffffu);
  return vec2<u32>((other << 16u) | (low & 0xffffu), ah * bh + (mid >> 16u) + (other >> 16u));
}
fn mul64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let low = mul32(a.x, b.x);
  return vec2<u32>(low.x, low.y + a.x * b.y + a.y * b.x);
}
fn eq64(a: vec2<u32>, b: vec2<u32>) -> bool { return a.x == b.x && a.y == b.y; }
fn ult64(a: vec2<u32>, b: vec2<u32>) -> bool {
  return a.y < b.y || (a.y == b.y && a.x < b.x);
}
fn lt64(a: vec2<u32>, b: vec2<u32>) -> bool {
  return bitcast<i32>(a.y) < bitcast<i32>(b.y) || (a.y == b.y && a.x < b.x);
}
fn shl64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let n = b.x;
  if (b.y != 0u || n >= 64u) { return vec2<u32>(0u, 0u); }
  if (n >= 32u) { return vec2<u32>(0u, a.x << (n - 32u)); }
  if (n == 0u) { return a; }
  return vec2<u32>(a.x << n, (a.y << n) | (a.x >> (32u - n)));
}
fn ushr64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let n = b.x;
  if (b.y != 0u || n >= 64u) { return vec2<u32>(0u, 0u); }
  if (n >= 32u) { return vec2<u32>(a.y >> (n - 32u), 0u); }
  if (n == 0u) { return a; }
  return vec2<u32>((a.x >> n) | (a.y << (32u - n)), a.y >> n);
}
fn shr64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let n = b.x;
  let sign = bitcast<u32>(bitcast<i32>(a.y) >> 31u);
  if (b.y != 0u || n >= 64u) { return vec2<u32>(sign, sign); }
  if (n >= 32u) { return vec2<u32>(bitcast<u32>(bitcast<i32>(a.y) >> (n - 32u)), sign); }
  if (n == 0u) { return a; }
  return vec2<u32>((a.x >> n) | (a.y << (32u - n)), bitcast<u32>(bitcast<i32>(a.y) >> n));
}
fn udivrem64(a: vec2<u32>, b: vec2<u32>) -> vec4<u32> {
  if (b.x == 0u && b.y == 0u) { return vec4<u32>(0u, 0u, 0u, 0u); }
  if (a.y == 0u && b.y == 0u) { return vec4<u32>(a.x / b.x, 0u, a.x % b.x, 0u); }
  var quotient = vec2<u32>(0u, 0u);
  var rest = vec2<u32>(0u, 0u);
  for (var i = 63i; i >= 0; i -= 1) {
    let carry = (rest.y & 0x80000000u) != 0u;
    let bit = select(a.x >> (u32(i) & 31u), a.y >> (u32(i) & 31u), i >= 32) & 1u;
    rest = vec2<u32>((rest.x << 1u) | bit, (rest.y << 1u) | (rest.x >> 31u));
    quotient = vec2<u32>(quotient.x << 1u, (quotient.y << 1u) | (quotient.x >> 31u));
    if (carry || !ult64(rest, b)) {
      rest = sub64(rest, b);
      quotient.x = quotient.x | 1u;
    }
  }
  return vec4<u32>(quotient, rest);
}
fn udiv64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return udivrem64(a, b).xy; }
fn urem64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return udivrem64(a, b).zw; }
fn div64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let found = udivrem64(abs64(a), abs64(b)).xy;
  return select(found, neg64(found), ((a.y ^ b.y) & 0x80000000u) != 0u);
}
fn rem64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let found = udivrem64(abs64(a), abs64(b)).zw;
  return select(found, neg64(found), (a.y & 0x80000000u) != 0u);
}
fn shl32(a: u32, n: u32) -> u32 { return select(0u, a << (n & 31u), n < 32u); }
fn ushr32(a: u32, n: u32) -> u32 { return select(0u, a >> (n & 31u), n < 32u); }
fn shr32(a: i32, n: u32) -> i32 { return a >> min(n, 31u); }
fn from_f16(h: u32) -> f32 {
  let sign = (h & 0x8000u) << 16u;
  let e = (h >> 10u) & 31u;
  let m = h & 0x3ffu;
  let small = bitcast<u32>(exact(f32(m) * 5.9604644775390625e-08f));
  let normal = ((e + 112u) << 23u) | (m << 13u);
  let large = 0x7f800000u | (m << 13u);
  return bitcast<f32>(sign | select(select(normal, large, e == 31u), small, e == 0u));
}
fn to_f16(v: f32) -> u32 {
  let bits = bitcast<u32>(v);
  let sign = (bits >> 16u) & 0x8000u;
  let x = bits & 0x7fffffffu;
  if (x > 0x7f800000u) { return sign | 0x7e00u; }
  if (x >= 0x477ff000u) { return sign | 0x7c00u; }
  if (x < 0x38800000u) {
    return sign | u32(round(exact(bitcast<f32>(x) * 16777216.0f)));
  }
  return sign | ((x + 0xfffu + ((x >> 13u) & 1u) - 0x38000000u) >> 13u);
}
fn from_bf16(h: u32) -> f32 { return bitcast<f32>(h << 16u); }
fn to_bf16(v: f32) -> u32 {
  let bits = bitcast<u32>(v);
  let near = (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
  return select(near, 0x7fc0u, (bits & 0x7fffffffu) > 0x7f800000u);
}
"""
FUNCTIONS = {
    re.match(r"fn (\w+)", text).group(1): text  # type: ignore[union-attr]
    for text in re.split(r"\n(?=fn )", _TEXT.strip())
}
_NAMES = re.compile(rf"\b({'|'.join(FUNCTIONS)})\(")


@cache
def _needs(name: str) -> tuple[str, ...]:
    """The functions that a function calls, and itself, in the order of their definitions."""
    found = {name}
    for other in _NAMES.findall(FUNCTIONS[name].split("{", 1)[1]):
        found |= set(_needs(other))
    return tuple(f for f in FUNCTIONS if f in found)


def functions(body: str) -> str:
    """The text of all functions that a kernel's text calls."""
    found = {needed for name in set(_NAMES.findall(body)) for needed in _needs(name)}
    return "\n".join(FUNCTIONS[name] for name in FUNCTIONS if name in found)
