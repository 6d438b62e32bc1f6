#include "fake.h"
#define I static inline __attribute__((always_inline))
I float f_(uint32_t x) { float y; memcpy(&y, &x, 4); return y; }
I double d_(uint64_t x) { double y; memcpy(&y, &x, 8); return y; }
I uint32_t fb(float x) { uint32_t y; memcpy(&y, &x, 4); return y; }
I uint64_t db(double x) { uint64_t y; memcpy(&y, &x, 8); return y; }
I uint8_t *GL(struct Ctx *c, uint64_t at, uint32_t n) {
  if (at % n) c->fail("misaligned address of global memory", at);
  return (uint8_t *) at;
}
/* Two threads at one byte without a barrier between, one of them writing, is a race. */
static uint8_t *SH(struct Ctx *c, uint32_t at, uint32_t n, int write) {
  if ((uint64_t) at + n > c->shared_size) c->fail("shared memory out of bounds", at);
  if (at % n) c->fail("misaligned address of shared memory", at);
  for (uint32_t i = at; i < at + n; i++) {
    struct Shadow *s = c->shadow + i;
    uint32_t now = *c->epoch;
    if (s->written == now && s->writer != c->tid) c->fail("race in shared memory", at);
    if (write) {
      if (s->read == now && s->reader != c->tid) c->fail("race in shared memory", at);
      s->written = now, s->writer = c->tid;
    } else {
      if (s->written < c->first_epoch) c->fail("uninitialised shared memory", at);
      s->reader = s->read == now && s->reader != c->tid ? 0xFFFF : c->tid;
      s->read = now;
    }
  }
  return c->shared + at;
}
#define DIV(T, M) I T div_##T(T x, T y) { return y == 0 ? (T) -1 : y == (T) -1 && M ? (T) (0 - (uint64_t) x) : x / y; } \
  I T rem_##T(T x, T y) { return y == 0 ? x : y == (T) -1 && M ? 0 : x % y; }
DIV(int16_t, 1) DIV(int32_t, 1) DIV(int64_t, 1) DIV(uint16_t, 0) DIV(uint32_t, 0) DIV(uint64_t, 0)
#define EXTREME(T, F) \
  I T min_##T(T x, T y) { return x != x ? y : y != y ? x : x == y ? (signbit(x) ? x : y) : x < y ? x : y; } \
  I T max_##T(T x, T y) { return x != x ? y : y != y ? x : x == y ? (signbit(x) ? y : x) : x > y ? x : y; }
EXTREME(float, f) EXTREME(double, )
/* Floats to integers saturate; NaN is 0, and in 64 bits the smallest. */
#define TO(T, LOW, HIGH, ABOVE, NOT) I T to_##T(double x) { return x != x ? NOT : x <= (double) LOW ? LOW : x >= ABOVE ? HIGH : (T) x; }
TO(int8_t, INT8_MIN, INT8_MAX, 128., 0) TO(int16_t, INT16_MIN, INT16_MAX, 32768., 0)
TO(int32_t, INT32_MIN, INT32_MAX, 2147483648., 0) TO(int64_t, INT64_MIN, INT64_MAX, 9223372036854775808., INT64_MIN)
TO(uint8_t, 0, UINT8_MAX, 256., 0) TO(uint16_t, 0, UINT16_MAX, 65536., 0)
TO(uint32_t, 0, UINT32_MAX, 4294967296., 0) TO(uint64_t, 0, UINT64_MAX, 18446744073709551616., 0x8000000000000000u)
I float half_(uint16_t x) { _Float16 y; memcpy(&y, &x, 2); return (float) y; }
I uint16_t hb(float x) { _Float16 y = (_Float16) x; uint16_t z; memcpy(&z, &y, 2); return z; }
I uint32_t prmt(uint32_t a, uint32_t b, uint32_t how) {
  uint64_t all = (uint64_t) b << 32 | a; uint32_t y = 0;
  for (int i = 0; i < 4; i++) {
    uint32_t pick = how >> 4 * i & 15, byte = all >> 8 * (pick & 7) & 255;
    if (pick & 8) byte = byte & 128 ? 255 : 0;
    y |= byte << 8 * i;
  }
  return y;
}
I uint32_t lop3(uint32_t a, uint32_t b, uint32_t c, int table) {
  uint32_t y = 0;
  for (int i = 0; i < 8; i++) if (table >> i & 1) y |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
  return y;
}
