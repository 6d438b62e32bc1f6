/* A driver without a card: what undertow asks of libcuda, with checks that no card makes.

   Work waits in streams until somebody waits for it, the youngest stream first, so that an order that
   nobody asked for is not there. Memory lies against a page that cannot be touched, is 0xCB until it
   is written, and is gone when it is freed. Kernels are PTX, which ptx.py translates.
   FAKE_CUDA_ORDER (reverse, shuffle), FAKE_CUDA_MEMORY, FAKE_CUDA_DEVICES, FAKE_CUDA_DIR and
   FAKE_CUDA_TRANSLATOR tell the rest. */
#define _GNU_SOURCE
#include "fake.h"
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { OK, INVALID = 1, OOM = 2, NOT_INITIALIZED = 3, BAD_DEVICE = 101, BAD_IMAGE = 200, BAD_CONTEXT = 201,
       BAD_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600, ILLEGAL = 700, TOO_MUCH = 701, FAILED = 719 };
enum { PAGE = 4096, STACK = 512 << 10, MOST_THREADS = 1024 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int started, sticky, devices = 1;
static uint64_t total = 1ull << 30, used;
static int live, kernels_run;
static char message[256];
static __thread int context;

/* Memory ------------------------------------------------------------------------------------- */
struct Block { uint8_t *map, *start; size_t mapped, size; struct Block *next; };
static struct Block *blocks;

static struct Block *holding(uint64_t at, size_t n) {
  for (struct Block *b = blocks; b; b = b->next)
    if (at >= (uint64_t) b->start && at + n <= (uint64_t) b->start + b->size) return b;
  return 0;
}

/* Streams and events ------------------------------------------------------------------------- */
struct Module { void *library; void (*run)(struct Ctx *); uint32_t shared, waits, params; const char *entry; };
struct Event { int recorded, done; double at; struct Stream *by; };
struct Op { int kind; struct Module *f; uint32_t grid[3], group; uint8_t *param; size_t n;
            uint8_t *to; const uint8_t *from; struct Event *event; struct Op *next; };
struct Stream { struct Op *first, **last; struct Stream *next; };
static struct Stream zero = {0, &zero.first, 0}, *streams = &zero;
enum { LAUNCH, COPY, RECORD, WAIT };

/* Kernels ------------------------------------------------------------------------------------ */
static struct Ctx threads[MOST_THREADS];
static jmp_buf here[MOST_THREADS], scheduler;
static ucontext_t fibers[MOST_THREADS], back;
static int site[MOST_THREADS], begun[MOST_THREADS], running;
static uint8_t *stacks;
static uint8_t shared[MOST_SHARED];
static struct Shadow shadow[MOST_SHARED];
static uint32_t epoch = 1;
static sigjmp_buf escape;

static void fail(const char *what, uint64_t where) {
  snprintf(message, sizeof message, "%s at %#llx", what, (unsigned long long) where);
  siglongjmp(escape, 1);
}
static void on_fault(int s, siginfo_t *info, void *c) { fail("illegal address", (uint64_t) info->si_addr); }

static void wait_here(struct Ctx *c, int number) {
  site[c->tid] = number;
  if (!_setjmp(here[c->tid])) _longjmp(scheduler, 1);
}
static struct Module *module_of;
static void fiber(void) {
  int me = running;
  module_of->run(threads + me);
  site[me] = -1;
  _longjmp(scheduler, 1);
}

static void order(int *to, int n) {
  const char *how = getenv("FAKE_CUDA_ORDER");
  for (int i = 0; i < n; i++) to[i] = how && *how == 'r' ? n - 1 - i : i;
  if (how && *how == 's')
    for (int i = n - 1; i > 0; i--) { int j = rand() % (i + 1), t = to[i]; to[i] = to[j]; to[j] = t; }
}

static void run_group(struct Module *f, int n) {
  int turns[MOST_THREADS];
  order(turns, n);
  memset(shared, 0xCB, f->shared);
  epoch++;
  for (int i = 0; i < n; i++) threads[i].first_epoch = epoch, site[i] = 0, begun[i] = 0;
  if (!f->waits) {
    for (int i = 0; i < n; i++) f->run(threads + turns[i]);
    return;
  }
  module_of = f;
  for (;;) {
    for (volatile int i = 0; i < n; i++) {
      running = turns[i];
      if (_setjmp(scheduler)) continue;
      if (begun[running]) _longjmp(here[running], 1);
      begun[running] = 1;
      getcontext(fibers + running);
      fibers[running].uc_stack.ss_sp = stacks + (size_t) running * STACK;
      fibers[running].uc_stack.ss_size = STACK;
      makecontext(fibers + running, fiber, 0);
      setcontext(fibers + running);
    }
    for (int i = 1; i < n; i++)
      if (site[i] != site[0]) fail("threads of a group wait at different barriers", site[i]);
    if (site[0] < 0) return;
    epoch++;
  }
}

static int run(struct Op *op) {
  struct sigaction new = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER}, segv, bus;
  if (!stacks) stacks = mmap(0, (size_t) STACK * MOST_THREADS, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  sigaction(SIGSEGV, &new, &segv), sigaction(SIGBUS, &new, &bus);
  int *volatile turns = malloc(sizeof(int) * op->grid[0] * op->grid[1]);
  int code = OK;
  if (sigsetjmp(escape, 1)) code = ILLEGAL;
  else {
    volatile int groups = op->grid[0] * op->grid[1];
    for (uint32_t t = 0; t < op->group; t++)
      threads[t] = (struct Ctx) {.param = op->param, .tid = t, .ntid = op->group, .shared = shared,
        .shadow = shadow, .shared_size = op->f->shared, .epoch = &epoch, .wait = wait_here, .fail = fail,
        .nctaid = {op->grid[0], op->grid[1], 1}};
    order(turns, groups);
    for (volatile int g = 0; g < groups; g++) {
      for (uint32_t t = 0; t < op->group; t++)
        threads[t].ctaid[0] = turns[g] % op->grid[0], threads[t].ctaid[1] = turns[g] / op->grid[0];
      run_group(op->f, op->group);
    }
    kernels_run++;
  }
  if (code) {
    size_t n = strlen(message);
    snprintf(message + n, sizeof message - n, " in %s", op->f->entry);
    fprintf(stderr, "fake cuda: %s\n", message);
  }
  free(turns);
  sigaction(SIGSEGV, &segv, 0), sigaction(SIGBUS, &bus, 0);
  return code;
}

static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e3 + t.tv_nsec * 1e-6; }

static void drain(struct Stream *s, struct Event *until) {
  while (s->first && !(until && until->done)) {
    struct Op *op = s->first;
    if (op->kind == WAIT && op->event->recorded && !op->event->done) drain(op->event->by, op->event);
    if (!(s->first = op->next)) s->last = &s->first;
    if (!sticky) {
      if (op->kind == LAUNCH) sticky = run(op);
      if (op->kind == COPY) memcpy(op->to, op->from, op->n);
    }
    if (op->kind == RECORD) op->event->done = 1, op->event->at = now();
    free(op->param), free(op);
  }
}
static void drain_all(void) { for (struct Stream *s = streams; s; s = s->next) drain(s, 0); }

static struct Op *add(struct Stream *s, int kind) {
  if (!s) s = &zero;
  struct Op *op = calloc(1, sizeof *op);
  op->kind = kind, *s->last = op, s->last = &op->next;
  return op;
}

/* The functions ------------------------------------------------------------------------------ */
#define ENTER(need) \
  if (started != getpid()) return NOT_INITIALIZED; \
  if (need && !context) return BAD_CONTEXT; \
  pthread_mutex_lock(&lock); int code = sticky;
#define LEAVE pthread_mutex_unlock(&lock); return code;
typedef struct Stream *S;

int cuInit(unsigned flags) {
  if (started && started != getpid()) return NOT_INITIALIZED;
  started = getpid();
  if (getenv("FAKE_CUDA_MEMORY")) total = strtoull(getenv("FAKE_CUDA_MEMORY"), 0, 10);
  if (getenv("FAKE_CUDA_DEVICES")) devices = atoi(getenv("FAKE_CUDA_DEVICES"));
  return devices ? OK : 100;
}
int cuDriverGetVersion(int *v) { *v = 13040; return OK; }
int cuDeviceGetCount(int *n) { *n = devices; return started == getpid() ? OK : NOT_INITIALIZED; }
int cuDeviceGet(int *d, int i) { *d = i; return i < devices ? OK : BAD_DEVICE; }
int cuDeviceGetName(char *name, int n, int d) { snprintf(name, n, "Fake card %d", d); return OK; }
int cuDeviceGetAttribute(int *v, int what, int d) {
  *v = what == 8 ? MOST_SHARED : what == 75 ? 7 : what == 76 ? 5 : what == 16 ? 4 : what == 13 ? 1000000 :
       what == 36 ? 5000000 : what == 37 ? 64 : what == 87 ? 32 : 0;
  return OK;
}
int cuDeviceTotalMem_v2(size_t *n, int d) { *n = total; return OK; }
int cuDevicePrimaryCtxRetain(void **c, int d) { *c = (void *) (uint64_t) (d + 1); return OK; }
int cuCtxSetCurrent(void *c) { if (started != getpid()) return NOT_INITIALIZED; context = (int) (uint64_t) c; return OK; }
int cuCtxSynchronize(void) { ENTER(1) drain_all(); code = sticky; LEAVE }
int cuGetErrorName(int code, const char **name) {
  *name = code == OOM ? "CUDA_ERROR_OUT_OF_MEMORY" : code == ILLEGAL ? "CUDA_ERROR_ILLEGAL_ADDRESS" :
          code == NOT_INITIALIZED ? "CUDA_ERROR_NOT_INITIALIZED" : code == BAD_CONTEXT ? "CUDA_ERROR_INVALID_CONTEXT" :
          code == INVALID ? "CUDA_ERROR_INVALID_VALUE" : code == TOO_MUCH ? "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES" :
          code == BAD_IMAGE ? "CUDA_ERROR_INVALID_IMAGE" : "CUDA_ERROR_UNKNOWN";
  return OK;
}
int cuMemGetInfo_v2(size_t *available, size_t *all) { *available = total - used; *all = total; return OK; }
int cuMemAlloc_v2(void **to, size_t n) {
  ENTER(1)
  if (!code && (!n || used + n > total)) code = n ? OOM : INVALID;
  if (!code) {
    struct Block *b = calloc(1, sizeof *b);
    size_t body = (n + PAGE - 1) / PAGE * PAGE;
    b->mapped = body + 2 * PAGE, b->size = n;
    b->map = mmap(0, b->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(b->map, PAGE, PROT_NONE), mprotect(b->map + PAGE + body, PAGE, PROT_NONE);
    b->start = b->map + PAGE + (body - n) / 16 * 16;  /* against the page behind it */
    memset(b->map + PAGE, 0xCB, body);
    b->next = blocks, blocks = b, used += n, live++;
    *to = b->start;
  }
  LEAVE
}
int cuMemFree_v2(void *at) {
  ENTER(1)
  drain_all();
  code = sticky;
  struct Block **p = &blocks;
  while (*p && (*p)->start != at) p = &(*p)->next;
  if (!*p) code = INVALID;
  else {
    struct Block *b = *p;
    *p = b->next, used -= b->size, live--;
    mprotect(b->map, b->mapped, PROT_NONE);  /* its addresses are never used again */
    madvise(b->map, b->mapped, MADV_DONTNEED);
    free(b);
  }
  LEAVE
}
int cuMemcpyHtoDAsync_v2(uint8_t *to, const uint8_t *from, size_t n, S s) {
  ENTER(1)
  if (!code && !holding((uint64_t) to, n)) code = INVALID;
  if (!code) {  /* of pageable memory: taken at once, written in the stream's order */
    struct Op *op = add(s, COPY);
    op->param = malloc(n + 1), memcpy(op->param, from, n);
    op->to = to, op->from = op->param, op->n = n;
  }
  LEAVE
}
int cuMemcpyDtoHAsync_v2(uint8_t *to, const uint8_t *from, size_t n, S s) {
  ENTER(1)
  if (!code && !holding((uint64_t) from, n)) code = INVALID;
  if (!code) { struct Op *op = add(s, COPY); op->to = to, op->from = from, op->n = n; }
  LEAVE
}
int cuStreamCreateWithPriority(S *s, unsigned flags, int priority) {
  ENTER(1)
  *s = calloc(1, sizeof **s), (*s)->last = &(*s)->first, (*s)->next = streams, streams = *s;
  LEAVE
}
int cuStreamDestroy_v2(S s) {
  ENTER(1)
  drain(s, 0);
  struct Stream **p = &streams;
  while (*p != s) p = &(*p)->next;
  *p = s->next, free(s);
  LEAVE
}
int cuStreamSynchronize(S s) { ENTER(1) drain(s ? s : &zero, 0); code = sticky; LEAVE }
int cuStreamQuery(S s) { ENTER(1) if (!code && (s ? s : &zero)->first) code = NOT_READY; LEAVE }
int cuStreamWaitEvent(S s, struct Event *e, unsigned f) { ENTER(1) if (e->recorded && !e->done) add(s, WAIT)->event = e; LEAVE }
int cuEventCreate(struct Event **e, unsigned flags) { ENTER(1) *e = calloc(1, sizeof **e); LEAVE }
int cuEventDestroy_v2(struct Event *e) { ENTER(1) drain_all(); free(e); LEAVE }
int cuEventRecord(struct Event *e, S s) { ENTER(1) e->recorded = 1, e->done = 0, e->by = s ? s : &zero; add(s, RECORD)->event = e; LEAVE }
int cuEventQuery(struct Event *e) { ENTER(1) if (!code && e->recorded && !e->done) code = NOT_READY; LEAVE }
int cuEventSynchronize(struct Event *e) { ENTER(1) if (e->recorded && !e->done) drain(e->by, e); code = sticky; LEAVE }
int cuEventElapsedTime_v2(float *ms, struct Event *a, struct Event *b) {
  ENTER(1)
  if (!code) code = !a->recorded || !b->recorded ? BAD_HANDLE : !a->done || !b->done ? NOT_READY : OK;
  if (!code) *ms = b->at - a->at;
  LEAVE
}
int cuModuleLoadData(struct Module **to, const char *ptx) {
  ENTER(1)
  uint64_t h = 14695981039346656037ull;
  for (const char *p = ptx; *p; p++) h = (h ^ (uint8_t) *p) * 1099511628211ull;
  char file[512], target[512], command[2048];
  const char *folder = getenv("FAKE_CUDA_DIR");
  snprintf(file, sizeof file, "%s/%016llx.%d.ptx", folder, (unsigned long long) h, getpid());
  snprintf(target, sizeof target, "%s/%016llx.so", folder, (unsigned long long) h);
  if (access(target, R_OK)) {
    FILE *f = fopen(file, "w");
    fputs(ptx, f), fclose(f);
    snprintf(command, sizeof command, "%s %s %s", getenv("FAKE_CUDA_TRANSLATOR"), file, target);
    if (system(command)) code = BAD_IMAGE;
  }
  void *library = code ? 0 : dlopen(target, RTLD_NOW | RTLD_LOCAL);
  if (!library) code = BAD_IMAGE;
  else {
    struct Module *m = *to = calloc(1, sizeof *m);
    m->library = library, m->run = dlsym(library, "fake_run");
    m->shared = *(uint32_t *) dlsym(library, "fake_shared"), m->waits = *(uint32_t *) dlsym(library, "fake_waits");
    m->params = *(uint32_t *) dlsym(library, "fake_params"), m->entry = *(char **) dlsym(library, "fake_entry");
    if (m->shared > MOST_SHARED) code = BAD_IMAGE;
  }
  LEAVE
}
int cuModuleGetFunction(struct Module **f, struct Module *m, const char *name) { *f = m; return strcmp(name, m->entry) ? NOT_FOUND : OK; }
struct Config { unsigned grid[3], block[3], dynamic; S stream; void *attributes; unsigned count; };
int cuLaunchKernelEx(struct Config *how, struct Module *f, void **args, void **extra) {
  ENTER(1)
  unsigned *g = how->grid, *b = how->block;
  size_t n = *(size_t *) extra[3];
  if (!code && (!g[0] || !g[1] || g[2] != 1 || g[1] > 65535 || b[1] != 1 || b[2] != 1 || args || how->dynamic || how->count ||
                n < f->params)) code = INVALID;
  if (!code && b[0] > MOST_THREADS) code = TOO_MUCH;
  if (!code) {
    struct Op *op = add(how->stream, LAUNCH);
    op->f = f, op->grid[0] = g[0], op->grid[1] = g[1], op->grid[2] = g[2], op->group = b[0];
    op->param = malloc(n + 1), memcpy(op->param, extra[1], n);
  }
  LEAVE
}

/* For tests ---------------------------------------------------------------------------------- */
int fake_live(void) { return live; }
int fake_kernels_run(void) { return kernels_run; }
const char *fake_message(void) { return message; }
void fake_forgive(void) { sticky = 0; message[0] = 0; }
