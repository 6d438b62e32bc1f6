"""A program of several processes: collectives in random order, against NumPy."""

import sys

import numpy as np

import undertow as ut
import undertow.distributed as dist
from undertow.distributed import collectives, messages

if int(sys.argv[1]) % 2:  # many chunks
    messages.CHUNK = collectives.CHUNK = 1 << 14

dist.init_process_group("gloo")
me, n = dist.get_rank(), dist.get_world_size()
rng = np.random.default_rng(int(sys.argv[1]))  # the same everywhere
OPS = {"SUM": np.add, "PRODUCT": np.multiply, "MIN": np.minimum, "MAX": np.maximum}


def tree(arrays, function):
    arrays = list(arrays)
    while len(arrays) > 1:
        pairs = [arrays[i : i + 2] for i in range(0, len(arrays), 2)]
        arrays = [function(*p) if len(p) == 2 else p[0] for p in pairs]
    return arrays[0]


def same(x, wanted, what):
    got = x.numpy() if hasattr(x, "numpy") else x
    assert got.dtype == wanted.dtype, what
    assert got.tobytes() == wanted.tobytes(), (what, me, got, wanted)


def all_same(tensors, wanted, what):
    assert len(tensors) == len(wanted)
    for pair in zip(tensors, wanted, strict=True):
        same(*pair, what)


def layout(a):
    # one in four tensors is not contiguous
    t = ut.from_numpy(a.copy())
    if a.ndim == 2 and strided:
        return ut.from_numpy(np.asfortranarray(a))
    return t


evens = dist.new_group(list(range(0, n, 2)))
sub = dist.new_group([n - 1, 0]) if n > 1 else None
pending = []
for step in range(int(sys.argv[2])):
    group, ranks = [
        (None, list(range(n))),
        (evens, list(range(0, n, 2))),
        (sub, sorted({0, n - 1})),
    ][rng.choice(3, p=[0.7, 0.2, 0.1])]
    kind = rng.choice(
        [
            "all_reduce",
            "broadcast",
            "reduce",
            "all_gather",
            "into",
            "reduce_scatter",
            "rs_tensor",
            "all_to_all",
            "a2a_single",
            "gather",
            "scatter",
            "barrier",
            "object",
            "message",
            "objects",
        ]
    )
    dtype = rng.choice(["float32", "float64", "int64", "float16"])
    size = int(rng.choice([0, 1, 7, 1000, 4097, 30000, 200001]))
    shape = (size,) if rng.random() < 0.6 else (size // 3, 3)
    strided = rng.random() < 0.25
    later = bool(rng.random() < 0.3)
    root = int(rng.choice(ranks))
    seeds = rng.integers(1 << 30, size=n)
    op = str(rng.choice(list(OPS)))
    data = {
        r: (np.random.default_rng(seeds[r]).standard_normal((len(ranks), *shape)) * 3).astype(dtype)
        for r in ranks
    }
    if me not in ranks:
        continue
    at, count = ranks.index(me), len(ranks)
    x = layout(data[me][0])
    what = (step, str(kind), str(dtype), shape, op, later, ranks, root)
    work, check = None, lambda: None
    red = getattr(dist.ReduceOp, op)
    firsts = [data[r][0] for r in ranks]
    with np.errstate(all="ignore"):
        if kind == "all_reduce":
            wanted = tree(firsts, OPS[op])
            work = dist.all_reduce(x, red, group, later)
            check = lambda x=x, w=wanted, what=what: same(x, w, what)
        elif kind == "broadcast":
            work = dist.broadcast(x, root, group, later)
            check = lambda x=x, w=data[root][0], what=what: same(x, w, what)
        elif kind == "reduce":
            wanted = tree(firsts, OPS[op]) if me == root else data[me][0]
            work = dist.reduce(x, root, red, group, later)
            check = lambda x=x, w=wanted, what=what: same(x, w, what)
        elif kind == "all_gather":
            outs = [layout(np.zeros_like(f)) for f in firsts]
            work = dist.all_gather(outs, x, group, later)
            check = lambda o=outs, f=firsts, what=what: all_same(o, f, what)
        elif kind == "into":
            out = ut.from_numpy(np.zeros((count, *shape), dtype))
            work = dist.all_gather_into_tensor(out, x, group, later)
            wanted = np.stack(firsts)
            check = lambda o=out, w=wanted, what=what: same(o, w, what)
        elif kind == "reduce_scatter":
            ins = [layout(d) for d in data[me]]
            work = dist.reduce_scatter(x, ins, red, group, later)
            wanted = tree([data[r][at] for r in ranks], OPS[op])
            check = lambda x=x, w=wanted, what=what: same(x, w, what)
        elif kind == "rs_tensor":
            whole = ut.from_numpy(data[me].copy())
            work = dist.reduce_scatter_tensor(x, whole, red, group, later)
            wanted = tree([data[r][at] for r in ranks], OPS[op])
            before = data[me]
            check = lambda x=x, w=wanted, i=whole, b=before, what=what: (
                same(x, w, what),
                same(i, b, what),
            )
        elif kind == "all_to_all":
            outs = [layout(np.zeros_like(f)) for f in firsts]
            work = dist.all_to_all(outs, [layout(d) for d in data[me]], group, later)
            wanted = [data[r][at] for r in ranks]
            check = lambda o=outs, f=wanted, what=what: all_same(o, f, what)
        elif kind == "a2a_single":
            splits = {
                r: np.random.default_rng(seeds[r]).multinomial(20, [1 / count] * count)
                for r in ranks
            }
            rows = {r: np.arange(20 * 3).reshape(20, 3).astype(dtype) + r for r in ranks}
            parts = {r: np.split(rows[r], np.cumsum(splits[r])[:-1]) for r in ranks}
            wanted = np.concatenate([parts[r][at] for r in ranks])
            out = ut.from_numpy(np.zeros_like(wanted))
            work = dist.all_to_all_single(
                out,
                ut.from_numpy(rows[me].copy()),
                [len(parts[r][at]) for r in ranks],
                splits[me].tolist(),
                group,
                later,
            )
            check = lambda o=out, w=wanted, what=what: same(o, w, what)
        elif kind == "gather":
            outs = [layout(np.zeros_like(f)) for f in firsts] if me == root else None
            work = dist.gather(x, outs, root, group, later)
            if me == root:
                check = lambda o=outs, f=firsts, what=what: all_same(o, f, what)
        elif kind == "scatter":
            work = dist.scatter(
                x, [layout(d) for d in data[root]] if me == root else None, root, group, later
            )
            check = lambda x=x, w=data[root][at], what=what: same(x, w, what)
        elif kind == "barrier":
            work = dist.barrier(group, later)
        elif kind == "object":
            found = [None] * count
            dist.all_gather_object(found, ("r" * (me * 3000), seeds[me]), group)
            assert found == [("r" * (r * 3000), seeds[r]) for r in ranks]
        elif kind == "objects":
            given = ["a" * 5000, {"b": root}] if me == root else [None, None]
            dist.broadcast_object_list(given, root, group)
            assert given == ["a" * 5000, {"b": root}]
        elif kind == "message" and count > 1:
            # around the ring, two messages each way, with two tags and big and small mixed
            there, back = ranks[(at + 1) % count], ranks[(at - 1) % count]
            got = [ut.from_numpy(np.zeros_like(data[back][i % count])) for i in range(3)]
            sends = [
                dist.isend(layout(data[me][i % count]), there, group, tag=i % 2) for i in range(3)
            ]
            works = [dist.irecv(g, back, group, tag=i % 2) for i, g in enumerate(got)]
            for w in (*works[::-1], *sends):
                assert w.wait()
            for i, g in enumerate(got):
                same(g, data[back][i % count], what)
    if work is not None:
        assert later
        pending.append((work, check))
    else:
        for w, c in pending:
            assert w.wait()
            assert w.is_success()
            c()
        pending = []
        check()
for w, c in pending:
    w.wait()
    c()
print("fine", me, flush=True)
