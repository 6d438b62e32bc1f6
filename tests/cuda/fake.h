/* What a translated kernel sees: its thread, its arguments, its group's memory; see libcuda.c. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#define MOST_SHARED 49152

struct Shadow { uint32_t written, read; uint16_t writer, reader; };  /* of one byte of shared memory */

struct Ctx {
  const uint8_t *param;
  uint32_t tid, ntid, ctaid[3], nctaid[3];
  uint8_t *shared;
  struct Shadow *shadow;
  uint32_t shared_size, first_epoch, *epoch;
  void (*wait)(struct Ctx *, int site);
  void (*fail)(const char *what, uint64_t where);
};
