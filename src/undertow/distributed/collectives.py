"""Collective operations over flat arrays in memory, as steps; see Note [waits].

Peers are counted within the group. Every function gives a generator, which is run by `work`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from .messages import BODIES, CHUNK, DATA, FEW, HEADS, RESULTS, ROOM, SIZE, What, numbered
from .reductions import RedOpType, combine
from .wire import ANY
from .work import Pending, Steps

SMALL = 1 << 14  # bytes up to which everybody sends everything to everybody
DIRECT = 8  # processes up to which they do
WINDOW = 2  # chunks that are under way from each process


def raw(array: Any) -> Any:
    """The bytes of a contiguous array."""
    return array.view(np.uint8) if array.size else np.empty(0, np.uint8)


def pieces(array: Any, count: int) -> list[Any]:
    """A flat array in so many parts, of sizes that depend on nothing but its size."""
    share = -(-array.size // count)
    share += -share % 16  # whole cache lines
    places = [min(i * share, array.size) for i in range(count + 1)]
    return [array[a:b] for a, b in pairwise(places)]


def all_reduce(what: What, array: Any, op: RedOpType, count: int = 0) -> Steps:
    """Combine an array of each process in place, the same bits everywhere."""
    group = what.group
    if group.members == 1:
        combine([array], op, array, count or 1)
    elif array.nbytes > SMALL:
        parts = pieces(array, group.members)
        yield from reduce_parts(what, parts, op, parts[group.me], parts, count=count)
    elif group.members <= DIRECT:
        yield from _reduce_small(what, array, op, count)
    else:
        yield from _reduce_by_tree(what, array, op, count)


def _reduce_small(what: What, array: Any, op: RedOpType, count: int) -> Steps:
    group = what.group
    others = [p for p in range(group.members) if p != group.me]
    arrays = [array.copy() for _ in range(group.members)]
    mine = raw(arrays[group.me])
    yield from what.exchange(dict.fromkeys(others, mine), {p: raw(arrays[p]) for p in others})
    combine(arrays, op, array, count)


def _reduce_by_tree(what: What, array: Any, op: RedOpType, count: int) -> Steps:
    """Up and down a tree, with a number of steps that is the logarithm of that of processes."""
    size, me = what.group.members, what.group.me
    plain = RedOpType.SUM if op is RedOpType.AVG else op
    distance = 1
    while distance < size:
        if me % (2 * distance):
            yield from what.exchange({me - distance: raw(array)}, {})
            break
        if me + distance < size:
            other = array.copy()
            yield from what.exchange({}, {me + distance: raw(other)})
            combine([array, other], plain, array)
        distance *= 2
    if me == 0 and op is RedOpType.AVG:
        combine([array], op, array, count or size)
    yield from broadcast(what, array, 0)


def reduce_parts(
    what: What,
    parts: Sequence[Any],
    op: RedOpType,
    out: Any,
    results: Sequence[Any] | None = None,
    to: int | None = None,
    count: int = 0,
) -> Steps:
    """Combine part i of every process at process i, into `out`; then give the results out.

    They go to everybody or, with `to`, to one process, where `results` has memory for them. Chunks
    come, are combined and go out again while the next ones are under way.
    """
    group = what.group
    wire, size, me = group.wire, group.members, group.me
    others = [(me + i) % size for i in range(1, size)]  # so that not all send to the same
    mine = parts[me]
    yield from what.greet({p: parts[p].nbytes for p in others}, dict.fromkeys(others, mine.nbytes))
    sent, came = Pending(), Pending()
    if results is not None:
        for peer in others:
            # This may be memory that is being sent. What comes is made of what was sent from there.
            what.receive_chunks(peer, raw(results[peer]), came, RESULTS)
    for peer in others:
        what.send_chunks(peer, raw(parts[peer]), sent, DATA)
    step = CHUNK // mine.itemsize
    places = range(0, mine.size, step)
    room = min(CHUNK, mine.nbytes)
    scratch = group.scratch(WINDOW * room * (size - 1)).reshape(WINDOW, size - 1, room)
    tag = what.tags(DATA)
    under_way: list[Pending] = []

    def begin(chunk: int) -> None:
        length = mine[places[chunk] : places[chunk] + step].nbytes
        pending = Pending()
        for row, peer in enumerate(others):
            memory = scratch[chunk % WINDOW, row, :length]
            rank = group.ranks[peer]
            pending.add(wire.irecv(memory, rank, tag), rank)
        under_way.append(pending)

    for chunk in range(min(WINDOW, len(places))):
        begin(chunk)
    receivers = [p for p in others if p == to or (to is None and results is not None)]
    for chunk, place in enumerate(places):
        yield under_way[chunk]
        own = mine[place : place + step]
        arrays: list[Any] = [own] * size
        for row, peer in enumerate(others):
            arrays[peer] = scratch[chunk % WINDOW, row, : own.nbytes].view(own.dtype)
        total = out[place : place + step]
        if size > 2 and me % 2 == 0 and not np.shares_memory(own, total):
            arrays[me] = own.copy()  # rounds but the last write into what they combine
        combine(arrays, op, total, count)
        if chunk + WINDOW < len(places):
            begin(chunk + WINDOW)
        for peer in receivers:
            what.send_chunks(peer, raw(total), sent, RESULTS)
    yield came + sent


def broadcast(what: What, array: Any, root: int) -> Steps:
    """Copy an array of one process to all, along a tree, chunk by chunk."""
    group = what.group
    memory, size = raw(array), group.members
    place = (group.me - root) % size
    highest = 1 << place.bit_length()
    children = []
    while place + highest < size:
        children.append((place + highest + root) % size)
        highest *= 2
    parent = (place - (1 << place.bit_length() >> 1) + root) % size if place else None
    sent = Pending()
    if parent is not None:
        heads = Pending()
        buffer = what.expect(parent, heads)
        yield heads
        bodies = Pending()
        what.accept(parent, buffer, memory, bodies)
        for child in children:
            what.send_head(child, memory, sent)
        for number, request in enumerate(bodies.requests):
            one = Pending()
            one.add(request, bodies.ranks[number])
            yield one
            chunk = memory[number * CHUNK : (number + 1) * CHUNK]
            for child in children:
                what.send_chunks(child, chunk, sent, DATA)
    else:
        for child in children:
            what.send(child, memory, sent)
    yield sent


def reduce(what: What, array: Any, op: RedOpType, root: int) -> Steps:
    """Combine an array of each process at one of them; elsewhere it stays as it was."""
    group = what.group
    if group.members == 1:
        combine([array], op, array, 1)
        return
    parts = pieces(array, group.members)
    here = group.me == root
    out = parts[group.me] if here else np.empty_like(parts[group.me])
    yield from reduce_parts(what, parts, op, out, parts if here else None, root)


def all_gather(what: What, outputs: Sequence[Any], array: Any) -> Steps:
    """Copy an array of each process to all."""
    group = what.group
    np.copyto(outputs[group.me], array)
    others = [(group.me + i) % group.members for i in range(1, group.members)]
    yield from what.exchange(
        dict.fromkeys(others, raw(array)), {p: raw(outputs[p]) for p in others}
    )


def share(what: What, arrays: Sequence[Sequence[Any]]) -> Steps:
    """Copy `arrays[i]`, several of process i, to all, from where they lie to where they lie."""
    me, count = what.group.me, what.group.members
    others = [(me + i) % count for i in range(1, count)]
    sizes = [sum(a.nbytes for a in some) for some in arrays]
    yield from what.greet(dict.fromkeys(others, sizes[me]), {p: sizes[p] for p in others})
    moved = Pending()
    for peer in others:
        for array in arrays[peer]:
            what.receive_chunks(peer, raw(array), moved, DATA)
    for peer in others:
        for array in arrays[me]:
            what.send_chunks(peer, raw(array), moved, DATA)
    yield moved


def reduce_scatter(what: What, inputs: Sequence[Any], op: RedOpType, out: Any) -> Steps:
    """Combine array i of every process at process i."""
    group = what.group
    if group.members == 1:
        np.copyto(out, inputs[0])
        combine([out], op, out, 1)
        return
    yield from reduce_parts(what, inputs, op, out)


def all_to_all(what: What, outputs: Sequence[Any], inputs: Sequence[Any]) -> Steps:
    """Send array i to process i, and receive one from each."""
    me = what.group.me
    np.copyto(outputs[me], inputs[me])
    others = [(me + i) % what.group.members for i in range(1, what.group.members)]
    yield from what.exchange(
        {p: raw(inputs[p]) for p in others}, {p: raw(outputs[p]) for p in others}
    )


def gather(what: What, outputs: Sequence[Any] | None, array: Any, root: int) -> Steps:
    """Copy an array of each process to one."""
    group = what.group
    if outputs is None:
        yield from what.exchange({root: raw(array)}, {})
        return
    np.copyto(outputs[root], array)
    yield from what.exchange({}, {p: raw(outputs[p]) for p in range(group.members) if p != root})


def scatter(what: What, out: Any, arrays: Sequence[Any] | None, root: int) -> Steps:
    """Copy array i of one process to process i."""
    group = what.group
    if arrays is None:
        yield from what.exchange({}, {root: raw(out)})
        return
    np.copyto(out, arrays[root])
    yield from what.exchange({p: raw(arrays[p]) for p in range(group.members) if p != root}, {})


def send(what: What, array: Any, peer: int) -> Steps:
    """Send an array to one process."""
    memory, sent = raw(array), Pending()
    if not what.send_head(peer, memory, sent, HEADS):
        what.tag = what.number & 0xFFFF
        what.send_chunks(peer, memory, sent, BODIES)
    yield sent


def receive(what: What, array: Any, peer: int) -> Steps:
    """Receive an array of one process, or of any; the result is whose it is.

    Several may be under way with one tag. So the many bytes of a message have a tag of their own,
    the number of the message, which its header tells.
    """
    group, memory, heads = what.group, raw(array), Pending()
    buffer = np.empty(ROOM, np.uint8)
    rank = ANY if peer == ANY else group.ranks[peer]
    heads.add(group.wire.irecv(buffer, rank, what.tags(HEADS)), rank)
    yield heads
    what.number, what.root = numbered(buffer)
    what.check(what.root, buffer, memory.size)
    if memory.size <= FEW:
        memory[:] = buffer[SIZE : SIZE + memory.size]
    else:
        what.tag = what.number & 0xFFFF
        bodies = Pending()
        what.receive_chunks(what.root, memory, bodies, BODIES)
        yield bodies
    return group.ranks[what.root]
