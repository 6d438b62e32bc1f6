"""The machine code of the thread pool, as LLVM IR: the worker's loop and `run`.

Memory. All threads of a pool share one block, the core, whose fields stand on lines of their own
(`FIELDS`). A kernel is given a handle: the address of `run`, the number of threads T, the core, and
how long to spin. A handle never changes once it is made, so a kernel may read T, reserve scratch
for T threads and call `run` while another thread sets another number.

Note [gate]
A job is published by one 64-bit word, the gate: the job's sequence number (upper half), the seats
that are still free, and the number of workers that took one (16 bits each).
  - open:  the caller writes the job's fields, then the gate: next number, s free seats, 0 joined.
  - join:  a worker exchanges (number, s, j) by (number, s-1, j+1) if s > 0. Then it belongs to the
           job, may read its fields, and is thread j+1. The exchange is of the whole word, so it
           can only succeed in the job whose seats it counted, however long the worker was away.
  - close: when the caller finds no block left it clears the seats and learns j in the same step.
           Nobody can join from then on, and it waits until j workers have left.
So the caller never waits for a worker that has not woken up yet: on a busy machine it does all the
blocks alone. Blocks are taken from a counter, in ranges that shrink with what is left.

Note [no lost wake-ups]
Both waits are of the form "announce, look, sleep if nothing has changed", and the other side does
"change, look for announcements, wake". Announcement and change are sequentially consistent, and
the look before sleeping is the futex call's own, which compares the word with the value last seen
and goes to sleep in one atomic step. In the one order of these four, either the change comes before
the look, then the compare fails and the call returns at once; or it comes after, then so does the
other side's look, which finds the announcement and wakes.
  - worker: announces in `sleepers`, compares the gate's sequence number with the last it has seen.
  - caller: announces in `waiting`, compares `left`, the number of workers that have left.
Spurious returns do no harm, since each waiter looks again. A sequence number comes again after
2^32 jobs; a worker that slept through exactly so many misses one job, which needs nobody.

Note [processors]
A worker that wakes up is often put on the caller's own processor, though another one is idle; this
was seen in virtual machines. There it waits while the caller does all the work, and there the
system leaves it, perhaps because it runs too little to be worth moving. So
workers are kept off the caller's processor, by their affinity, which is changed whenever the caller
is found on another: that one is taken away, and the last one given back. It is done by the caller
that has the pool, so nobody else does it at the time; a worker only notes its name.
What a user has set comes first. Whoever confines a process, by `taskset` or thread by thread, means
its workers, too. So one is only moved if it may run just where the caller may, apart from what was
taken from it: else somebody has put it, or the caller, where it is, and it stays. It never gets a
processor that the caller may not use. Where the caller's is the only one, the system refuses. With
many workers one of them at the wrong place hardly matters, so only some names are kept.

Note [floating-point mode]
Rounding and flushing of subnormal numbers belong to a thread. Some libraries change them in the
thread that loads them, so a worker takes over the caller's mode with the job: a result must not
depend on who computed it.
"""

from __future__ import annotations

from string import Template

# Byte offsets in the core. 128 bytes apart: processors fetch lines of 64 bytes in pairs.
FIELDS = {
    "gate": 0,  # i64, see Note [gate]
    "next": 128,  # i64: the first block that nobody has taken
    "left": 256,  # i32: workers that have left the job
    "waiting": 260,  # i32: the caller may be asleep
    "sleepers": 384,  # i32: workers that may be asleep
    "workers": 388,  # i32: workers that have started
    "busy": 512,  # i32: the pool is taken by a job, or closed for good
    "stop": 516,  # i32
    "body": 640,  # the job: ptr, ptr, i64, and the divisor that makes ranges
    "ctx": 648,
    "count": 656,
    "share": 664,
    "spin": 672,  # i64: rounds of the waiting loops before they sleep
    "wanted": 680,  # i32: workers that the last job had use for
    "mode": 684,  # i32: the caller's floating-point mode
    "home": 688,  # i32: the processor that workers stay away from, plus 1
    "named": 692,  # i32: workers that have noted their names
    "settled": 696,  # i32: how many of them the last caller to look knew
    "system": 768,  # ptr: `syscall`, or a function that sleeps
    "yield": 776,  # ptr: `sched_yield` or its like
    "where": 784,  # ptr: `sched_getcpu`, where there is a futex
    "run": 792,  # addresses of the code, for Python
    "worker": 800,
    "take": 808,
    "halt": 816,
    "idle": 824,
    "names": 896,  # i32 each: the system's names of the first workers, see Note [processors]
    "taken": 1024,  # i32 each: the processor that was taken from each of these, plus 1
}
KNOWN = 32  # workers whose names are kept
SIZE = 1152
MOST = 0x7FFF  # threads that the gate can count

CALLS = ("futex", "set_places", "get_places", "name")
# The numbers of futex, sched_setaffinity, sched_getaffinity, gettid where a pointer has 64 bits.
FUTEX = {
    "x86_64": (202, 203, 204, 186),
    "ppc64le": (221, 222, 223, 207),
    "aarch64": (98, 122, 123, 178),
    "riscv64": (98, 122, 123, 178),
    "loongarch64": (98, 122, 123, 178),
}

_COMMON = r"""
define void @$entry(ptr %core) {
  %a = getelementptr i8, ptr %core, i64 $run
  store ptr @run, ptr %a
  %b = getelementptr i8, ptr %core, i64 $worker
  store ptr @worker, ptr %b
  %c = getelementptr i8, ptr %core, i64 $take
  store ptr @take, ptr %c
  %d = getelementptr i8, ptr %core, i64 $halt
  store ptr @halt, ptr %d
  %e = getelementptr i8, ptr %core, i64 $idle
  store ptr @idle, ptr %e
  ret void
}

; Take ranges of blocks until there is none left.
define internal void @work(ptr %core, i64 %thread) {
entry:
  %body.p = getelementptr i8, ptr %core, i64 $body
  %body = load ptr, ptr %body.p
  %ctx.p = getelementptr i8, ptr %core, i64 $ctx
  %ctx = load ptr, ptr %ctx.p
  %count.p = getelementptr i8, ptr %core, i64 $count
  %count = load i64, ptr %count.p
  %share.p = getelementptr i8, ptr %core, i64 $share
  %share = load i64, ptr %share.p
  %next = getelementptr i8, ptr %core, i64 $next
  br label %look
look:
  %first = load atomic i64, ptr %next monotonic, align 8
  br label %choose
choose:
  %begin = phi i64 [ %first, %look ], [ %newer, %grab ]
  %rest = sub i64 %count, %begin
  %some = icmp sgt i64 %rest, 0
  br i1 %some, label %grab, label %done
grab:
  %part = udiv i64 %rest, %share
  %length = call i64 @llvm.umax.i64(i64 %part, i64 1)
  %end = add i64 %begin, %length
  %pair = cmpxchg ptr %next, i64 %begin, i64 %end monotonic monotonic, align 8
  %newer = extractvalue { i64, i1 } %pair, 0
  %mine = extractvalue { i64, i1 } %pair, 1
  br i1 %mine, label %do, label %choose
do:
  call void %body(ptr %ctx, i64 %begin, i64 %end, i64 %thread)
  br label %look
done:
  ret void
}

define void @run(ptr %handle, ptr %body, ptr %ctx, i64 %count) {
entry:
  %threads.p = getelementptr i8, ptr %handle, i64 8
  %threads = load i64, ptr %threads.p
  %core.p = getelementptr i8, ptr %handle, i64 16
  %core = load ptr, ptr %core.p
  %spin.p = getelementptr i8, ptr %handle, i64 24
  %spin = load i64, ptr %spin.p
  %helpers = sub i64 %threads, 1
  %others = sub i64 %count, 1
  %seats = call i64 @llvm.smin.i64(i64 %helpers, i64 %others)
  %several = icmp sgt i64 %seats, 0
  br i1 %several, label %ask, label %alone
ask:
  %busy = getelementptr i8, ptr %core, i64 $busy
  %taken = load atomic i32, ptr %busy monotonic, align 4
  %free = icmp eq i32 %taken, 0
  br i1 %free, label %seize, label %alone
seize:
  %got = cmpxchg ptr %busy, i32 0, i32 1 acquire monotonic, align 4
  %mine = extractvalue { i32, i1 } %got, 1
  br i1 %mine, label %open, label %alone
alone:
  call void %body(ptr %ctx, i64 0, i64 %count, i64 0)
  ret void
open:
  %body.p = getelementptr i8, ptr %core, i64 $body
  store ptr %body, ptr %body.p
  %ctx.p = getelementptr i8, ptr %core, i64 $ctx
  store ptr %ctx, ptr %ctx.p
  %count.p = getelementptr i8, ptr %core, i64 $count
  store i64 %count, ptr %count.p
  %share.p = getelementptr i8, ptr %core, i64 $share
  %share = mul i64 %threads, $ranges
  store i64 %share, ptr %share.p
  %rounds = getelementptr i8, ptr %core, i64 $spin
  store atomic i64 %spin, ptr %rounds monotonic, align 8
  %wanted = getelementptr i8, ptr %core, i64 $wanted
  %helpers.32 = trunc i64 %helpers to i32
  store atomic i32 %helpers.32, ptr %wanted monotonic, align 4
  %mode = getelementptr i8, ptr %core, i64 $mode
  call void @read_mode(ptr %mode)
  call void @settle(ptr %core, i64 %spin)
  %next = getelementptr i8, ptr %core, i64 $next
  store atomic i64 0, ptr %next monotonic, align 8
  %left = getelementptr i8, ptr %core, i64 $left
  store atomic i32 0, ptr %left monotonic, align 4
  %gate = getelementptr i8, ptr %core, i64 $gate
  %old = load atomic i64, ptr %gate monotonic, align 8
  %number = lshr i64 %old, 32
  %number.new = add i64 %number, 1
  %number.high = shl i64 %number.new, 32
  %seats.high = shl i64 %seats, 16
  %opened = or i64 %number.high, %seats.high
  %was = atomicrmw xchg ptr %gate, i64 %opened seq_cst, align 8
  ; Those who are awake will see it; wake as many more as it has seats for.
  %sleepers.p = getelementptr i8, ptr %core, i64 $sleepers
  %sleepers = load atomic i32, ptr %sleepers.p seq_cst, align 4
  %anybody = icmp sgt i32 %sleepers, 0
  br i1 %anybody, label %call, label %own
call:
  %workers.p = getelementptr i8, ptr %core, i64 $workers
  %workers = load atomic i32, ptr %workers.p monotonic, align 4
  %awake = sub i32 %workers, %sleepers
  %seats.32 = trunc i64 %seats to i32
  %missing = sub i32 %seats.32, %awake
  %few = icmp sgt i32 %missing, 0
  br i1 %few, label %rouse, label %own
rouse:
  %bell = getelementptr i8, ptr %gate, i64 $upper
  call void @wake(ptr %core, ptr %bell, i32 %missing)
  br label %own
own:
  call void @work(ptr %core, i64 0)
  %before = atomicrmw and ptr %gate, i64 $closed acq_rel, align 8
  %joined.16 = trunc i64 %before to i16
  %joined = zext i16 %joined.16 to i32
  br label %wait
wait:
  %round = phi i64 [ 0, %own ], [ %round.next, %pause ]
  %gone = load atomic i32, ptr %left acquire, align 4
  %all = icmp eq i32 %gone, %joined
  br i1 %all, label %release, label %patience
patience:
  %round.next = add i64 %round, 1
  %more = icmp slt i64 %round, %spin
  br i1 %more, label %pause, label %tired
pause:
  call void @spin(ptr %core, i64 %round)
  br label %wait
tired:
  %waiting = getelementptr i8, ptr %core, i64 $waiting
  store atomic i32 1, ptr %waiting seq_cst, align 4
  br label %again
again:
  %naps = phi i32 [ 0, %tired ], [ %naps.next, %nap ]
  %gone.now = load atomic i32, ptr %left seq_cst, align 4
  %all.now = icmp eq i32 %gone.now, %joined
  br i1 %all.now, label %rested, label %nap
nap:
  call void @sleep(ptr %core, ptr %left, i32 %gone.now, i32 %naps)
  %naps.next = add i32 %naps, 1
  br label %again
rested:
  store atomic i32 0, ptr %waiting monotonic, align 4
  br label %release
release:
  store atomic i32 0, ptr %busy release, align 4
  ret void
}

; A worker's life: until `stop`, wait for a new number at the gate, then join if there is a seat.
define void @worker(ptr %core) {
entry:
  %gate = getelementptr i8, ptr %core, i64 $gate
  %bell = getelementptr i8, ptr %gate, i64 $upper
  %stop = getelementptr i8, ptr %core, i64 $stop
  %left = getelementptr i8, ptr %core, i64 $left
  %waiting = getelementptr i8, ptr %core, i64 $waiting
  %sleepers = getelementptr i8, ptr %core, i64 $sleepers
  %workers = getelementptr i8, ptr %core, i64 $workers
  %rounds.p = getelementptr i8, ptr %core, i64 $spin
  %wanted.p = getelementptr i8, ptr %core, i64 $wanted
  %mode = getelementptr i8, ptr %core, i64 $mode
  %w = atomicrmw add ptr %workers, i32 1 monotonic, align 4
  call void @introduce(ptr %core, i32 %w)
  %never = load atomic i64, ptr %gate acquire, align 8
  %never.high = lshr i64 %never, 32
  %never.32 = trunc i64 %never.high to i32
  %unseen = sub i32 %never.32, 1
  br label %wait
wait:
  %seen = phi i32 [ %unseen, %entry ], [ %number, %settle ], [ %seen, %pause ], [ %seen, %woken ]
  %budget = phi i64 [ 0, %entry ], [ %fresh, %settle ], [ %budget.next, %pause ], [ 0, %woken ]
  %naps = phi i32 [ 0, %entry ], [ 0, %settle ], [ 0, %pause ], [ %naps.next, %woken ]
  %state = load atomic i64, ptr %gate acquire, align 8
  %number.high = lshr i64 %state, 32
  %number = trunc i64 %number.high to i32
  %same = icmp eq i32 %number, %seen
  br i1 %same, label %idle, label %news
idle:
  %more = icmp sgt i64 %budget, 0
  br i1 %more, label %pause, label %doze
pause:
  %budget.next = sub i64 %budget, 1
  call void @spin(ptr %core, i64 %budget)
  br label %wait
doze:
  %s = atomicrmw add ptr %sleepers, i32 1 seq_cst, align 4
  call void @sleep(ptr %core, ptr %bell, i32 %seen, i32 %naps)
  %naps.next = add i32 %naps, 1
  %t = atomicrmw sub ptr %sleepers, i32 1 seq_cst, align 4
  br label %woken
woken:
  br label %wait
news:
  %halting = load atomic i32, ptr %stop acquire, align 4
  %halt = icmp ne i32 %halting, 0
  br i1 %halt, label %exit, label %join
join:
  %now = phi i64 [ %state, %news ], [ %newer, %try ]
  %seats.high = lshr i64 %now, 16
  %seats = trunc i64 %seats.high to i16
  %seat = icmp ne i16 %seats, 0
  br i1 %seat, label %try, label %settle
try:
  %less = sub i64 %now, $one_seat
  %joined = add i64 %less, 1
  %pair = cmpxchg ptr %gate, i64 %now, i64 %joined acq_rel acquire, align 8
  %newer = extractvalue { i64, i1 } %pair, 0
  %in = extractvalue { i64, i1 } %pair, 1
  br i1 %in, label %help, label %join
help:
  call void @write_mode(ptr %mode)
  %thread.16 = trunc i64 %joined to i16
  %thread = zext i16 %thread.16 to i64
  call void @work(ptr %core, i64 %thread)
  %l = atomicrmw add ptr %left, i32 1 seq_cst, align 4
  %asleep = load atomic i32, ptr %waiting seq_cst, align 4
  %caller = icmp ne i32 %asleep, 0
  br i1 %caller, label %tell, label %settle
tell:
  call void @wake(ptr %core, ptr %left, i32 1)
  br label %settle
settle:
  ; Spin for the next job, unless more are awake than the last one had use for.
  %rounds = load atomic i64, ptr %rounds.p monotonic, align 8
  %wanted = load atomic i32, ptr %wanted.p monotonic, align 4
  %all = load atomic i32, ptr %workers monotonic, align 4
  %sleeping = load atomic i32, ptr %sleepers monotonic, align 4
  %awake = sub i32 %all, %sleeping
  %surplus = icmp sgt i32 %awake, %wanted
  %fresh = select i1 %surplus, i64 0, i64 %rounds
  br label %wait
exit:
  ret void
}

; One round of a waiting loop: let the processor rest, and now and then another thread run.
define internal void @spin(ptr %core, i64 %round) alwaysinline {
  call void @pause()
  %phase = and i64 %round, $phases
  %now = icmp eq i64 %phase, $phases
  br i1 %now, label %give, label %done
give:
  %yield.p = getelementptr i8, ptr %core, i64 $yield
  %yield = load ptr, ptr %yield.p
  %r = call i32 %yield()
  br label %done
done:
  ret void
}

; Take the pool for good, unless a job has it: 1 if it worked.
define i32 @take(ptr %core) {
  %busy = getelementptr i8, ptr %core, i64 $busy
  %got = cmpxchg ptr %busy, i32 0, i32 1 acquire monotonic, align 4
  %mine = extractvalue { i32, i1 } %got, 1
  %answer = zext i1 %mine to i32
  ret i32 %answer
}

; Tell all workers to return; only after `take`, so no job is open.
define void @halt(ptr %core) {
  %stop = getelementptr i8, ptr %core, i64 $stop
  store atomic i32 1, ptr %stop release, align 4
  %gate = getelementptr i8, ptr %core, i64 $gate
  %old = atomicrmw add ptr %gate, i64 4294967296 seq_cst, align 8
  %bell = getelementptr i8, ptr %gate, i64 $upper
  call void @wake(ptr %core, ptr %bell, i32 2147483647)
  ret void
}

; The waiting loop as such, to measure how long one round takes.
define void @idle(ptr %core, i64 %rounds) {
entry:
  br label %loop
loop:
  %round = phi i64 [ 0, %entry ], [ %round.next, %pause ]
  %state = load atomic i64, ptr %core acquire, align 8
  %more = icmp slt i64 %round, %rounds
  br i1 %more, label %pause, label %done
pause:
  %round.next = add i64 %round, 1
  call void @spin(ptr %core, i64 %round)
  br label %loop
done:
  ret void
}

declare i64 @llvm.umax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
"""

_FUTEX = r"""
; Keep the workers off the caller's processor; see Note [processors].
define internal void @settle(ptr %core, i64 %spin) {
entry:
  %crowded = icmp eq i64 %spin, 0
  br i1 %crowded, label %done, label %look
look:
  %where.p = getelementptr i8, ptr %core, i64 $where
  %where = load ptr, ptr %where.p
  %here = call i32 %where()
  %new = add i32 %here, 1
  %home.p = getelementptr i8, ptr %core, i64 $home
  %home = load i32, ptr %home.p
  %named.p = getelementptr i8, ptr %core, i64 $named
  %named = load atomic i32, ptr %named.p acquire, align 4
  %settled.p = getelementptr i8, ptr %core, i64 $settled
  %settled = load i32, ptr %settled.p
  %stays = icmp eq i32 %new, %home
  %nobody = icmp eq i32 %named, %settled
  %same = and i1 %stays, %nobody
  br i1 %same, label %done, label %move
move:
  store i32 %new, ptr %home.p
  store i32 %named, ptr %settled.p
  call void @leave(ptr %core, i32 %here)
  br label %done
done:
  ret void
}

; Note the name of a new worker, which calls this.
define internal void @introduce(ptr %core, i32 %number) {
entry:
  %known = icmp ult i32 %number, $known
  br i1 %known, label %note, label %done
note:
  %system.p = getelementptr i8, ptr %core, i64 $system
  %system = load ptr, ptr %system.p
  %name.64 = call i64 (i64, ...) %system(i64 $name)
  %name = trunc i64 %name.64 to i32
  %at = zext i32 %number to i64
  %names = getelementptr i8, ptr %core, i64 $names
  %place = getelementptr i32, ptr %names, i64 %at
  store atomic i32 %name, ptr %place monotonic, align 4
  %named = getelementptr i8, ptr %core, i64 $named
  %n = atomicrmw add ptr %named, i32 1 release, align 4
  br label %done
done:
  ret void
}

; Take the processor `here`, the caller's, from the workers, and give back the one taken before.
define internal void @leave(ptr %core, i32 %here) noinline {
entry:
  %mine = alloca [$places x i8], align 8
  %theirs = alloca [$places x i8], align 8
  %names = getelementptr i8, ptr %core, i64 $names
  %takens = getelementptr i8, ptr %core, i64 $taken
  %system.p = getelementptr i8, ptr %core, i64 $system
  %system = load ptr, ptr %system.p
  %bytes = call i64 (i64, ...) %system(i64 $get_places, i64 0, i64 $places, ptr %mine)
  %answer = icmp sgt i64 %bytes, 0
  br i1 %answer, label %ask, label %done
ask:
  %new = zext i32 %here to i64
  %most = shl i64 %bytes, 3
  %sane = icmp ult i64 %new, %most
  br i1 %sane, label %loop, label %done
loop:
  %i = phi i64 [ 0, %ask ], [ %i.next, %next ]
  %more = icmp ult i64 %i, $known
  br i1 %more, label %who, label %done
who:
  %place = getelementptr i32, ptr %names, i64 %i
  %name = load atomic i32, ptr %place monotonic, align 4
  %somebody = icmp ne i32 %name, 0
  br i1 %somebody, label %one, label %next
one:
  %name.64 = zext i32 %name to i64
  %length = call i64 (i64, ...) %system(i64 $get_places, i64 %name.64, i64 $places, ptr %theirs)
  %alike = icmp eq i64 %length, %bytes
  br i1 %alike, label %before, label %next
before:
  %taken.p = getelementptr i32, ptr %takens, i64 %i
  %taken = load i32, ptr %taken.p
  %some = icmp ne i32 %taken, 0
  br i1 %some, label %give, label %compare
give:
  %old.32 = sub i32 %taken, 1
  %old = zext i32 %old.32 to i64
  %old.at = lshr i64 %old, 3
  %old.p = getelementptr i8, ptr %theirs, i64 %old.at
  %own.p = getelementptr i8, ptr %mine, i64 %old.at
  %old.8 = trunc i64 %old to i8
  %old.low = and i8 %old.8, 7
  %old.bit = shl i8 1, %old.low
  %old.own = load i8, ptr %own.p
  %back = and i8 %old.own, %old.bit
  %old.all = load i8, ptr %old.p
  %wider = or i8 %old.all, %back
  store i8 %wider, ptr %old.p
  br label %compare
compare:
  %k = phi i64 [ 0, %before ], [ 0, %give ], [ %k.next, %equal ]
  %rest = icmp ult i64 %k, %bytes
  br i1 %rest, label %byte, label %take
byte:
  %mine.p = getelementptr i8, ptr %mine, i64 %k
  %theirs.p = getelementptr i8, ptr %theirs, i64 %k
  %mine.8 = load i8, ptr %mine.p
  %theirs.8 = load i8, ptr %theirs.p
  %fits = icmp eq i8 %mine.8, %theirs.8
  br i1 %fits, label %equal, label %next
equal:
  %k.next = add i64 %k, 1
  br label %compare
take:
  %new.at = lshr i64 %new, 3
  %new.p = getelementptr i8, ptr %theirs, i64 %new.at
  %new.8 = trunc i64 %new to i8
  %new.low = and i8 %new.8, 7
  %new.bit = shl i8 1, %new.low
  %new.others = xor i8 %new.bit, -1
  %new.all = load i8, ptr %new.p
  %less = and i8 %new.all, %new.others
  store i8 %less, ptr %new.p
  %r = call i64 (i64, ...) %system(i64 $set_places, i64 %name.64, i64 %bytes, ptr %theirs)
  %done.it = icmp eq i64 %r, 0
  br i1 %done.it, label %note, label %next
note:
  %new.plus = add i32 %here, 1
  store i32 %new.plus, ptr %taken.p
  br label %next
next:
  %i.next = add i64 %i, 1
  br label %loop
done:
  ret void
}

define internal void @sleep(ptr %core, ptr %word, i32 %seen, i32 %naps) noinline {
  %system.p = getelementptr i8, ptr %core, i64 $system
  %system = load ptr, ptr %system.p
  %value = zext i32 %seen to i64
  %r = call i64 (i64, ...) %system(i64 $futex, ptr %word, i64 128, i64 %value, ptr null)
  ret void
}

define internal void @wake(ptr %core, ptr %word, i32 %number) noinline {
  %system.p = getelementptr i8, ptr %core, i64 $system
  %system = load ptr, ptr %system.p
  %value = zext i32 %number to i64
  %r = call i64 (i64, ...) %system(i64 $futex, ptr %word, i64 129, i64 %value)
  ret void
}
"""

# Without a futex: short sleeps that double up to a millisecond or two, and nobody to wake.
_NAPS = r"""
define internal void @settle(ptr %core, i64 %spin) {
  ret void
}

define internal void @introduce(ptr %core, i32 %number) {
  ret void
}

define internal void @sleep(ptr %core, ptr %word, i32 %seen, i32 %naps) noinline {
  %system.p = getelementptr i8, ptr %core, i64 $system
  %system = load ptr, ptr %system.p
  %power = call i32 @llvm.umin.i32(i32 %naps, i32 5)
  %time = shl i32 50, %power
  %units = udiv i32 %time, $microseconds
  %r = call i32 %system(i32 %units)
  ret void
}

define internal void @wake(ptr %core, ptr %word, i32 %number) {
  ret void
}

declare i32 @llvm.umin.i32(i32, i32)
"""

_X86 = r"""
define internal void @pause() alwaysinline {
  call void @llvm.x86.sse2.pause()
  ret void
}

define internal void @read_mode(ptr %mode) alwaysinline {
  call void @llvm.x86.sse.stmxcsr(ptr %mode)
  ret void
}

define internal void @write_mode(ptr %mode) alwaysinline {
  call void @llvm.x86.sse.ldmxcsr(ptr %mode)
  ret void
}

declare void @llvm.x86.sse2.pause()
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
"""

_ARM = r"""
define internal void @pause() alwaysinline {
  call void asm sideeffect "isb", "~{memory}"()
  ret void
}

define internal void @read_mode(ptr %mode) alwaysinline {
  %value = call i64 @llvm.aarch64.get.fpcr()
  %low = trunc i64 %value to i32
  store i32 %low, ptr %mode
  ret void
}

define internal void @write_mode(ptr %mode) alwaysinline {
  %low = load i32, ptr %mode
  %value = zext i32 %low to i64
  call void @llvm.aarch64.set.fpcr(i64 %value)
  ret void
}

declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)
"""

_OTHER = r"""
define internal void @pause() alwaysinline {
  call void asm sideeffect "", "~{memory}"()
  ret void
}

define internal void @read_mode(ptr %mode) alwaysinline {
  ret void
}

define internal void @write_mode(ptr %mode) alwaysinline {
  ret void
}
"""


def text(
    entry: str, machine: str, futex: tuple[int, ...] | None, *, little: bool, microseconds: int
) -> str:
    """The module; `entry(core)` writes the functions' addresses into the core.

    Args:
        entry: The name of the one exported function.
        machine: The processor family, as `platform.machine()` names it.
        futex: The numbers of `FUTEX`, or None to sleep for short times instead.
        little: Whether the low half of a word comes first in memory.
        microseconds: The unit of the function that sleeps.
    """
    family = {"x86_64": _X86, "amd64": _X86, "aarch64": _ARM, "arm64": _ARM}
    parts = _COMMON + (_NAPS if futex is None else _FUTEX) + family.get(machine.lower(), _OTHER)
    values = {
        **FIELDS,
        "entry": entry,
        **dict(zip(CALLS, futex or (0,) * len(CALLS), strict=True)),
        "known": KNOWN,
        "places": 1024,  # bytes, a bit for each processor
        "upper": 4 if little else 0,
        "microseconds": microseconds,
        "phases": 511,  # of 512 rounds, some 25 microseconds, one lets another thread run
        "ranges": 4,  # a thread takes this part of its share of what is left
        "one_seat": 1 << 16,
        "closed": -1 & ~(0xFFFF << 16),
    }
    return Template(parts).substitute(values)
