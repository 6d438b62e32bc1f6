"""Collective operations and messages, with torch's names and arguments."""

from __future__ import annotations

import functools
import pickle
import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from ..core.tensor import Tensor, wrap
from ..errors import ArgumentError, DTypeError, ShapeError
from . import collectives
from .groups import NotMember, ProcessGroup, resolved
from .memory import Staged
from .reductions import RedOpType, ReduceOp, checked
from .wire import ANY
from .work import Future, Work, seconds

__all__ = [
    "P2POp",
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "gather",
    "gather_object",
    "irecv",
    "isend",
    "monitored_barrier",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
]


_Function = TypeVar("_Function", bound=Callable[..., Any])


def _of_members(function: _Function) -> _Function:
    """A function that a process which is not in the group may call: it warns, and does nothing."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except NotMember as error:
            warnings.warn(f"{error}; nothing is done", UserWarning, stacklevel=2)
            return -1 if function.__name__ in ("recv", "recv_object_list") else None

    return call  # type: ignore[return-value]


def _begin(
    kind: str,
    group: ProcessGroup,
    staged: Staged,
    steps: Callable[..., Any],
    async_op: bool,
    result: Any = None,
    **details: Any,
) -> Any:
    return group.begin(
        kind,
        lambda what: staged.then(steps(what), result),
        async_op,
        dtype=staged.dtype or "uint8",
        shape=staged.shape,
        name=staged.name,
        **details,
    )


def _member(name: str, group: ProcessGroup, rank: int | None, within: int | None, word: str) -> int:
    """The place in the group of a rank of the world, or of the group itself."""
    if within is not None:
        if rank is not None:
            raise ArgumentError(f"[{name}] give {word} or group_{word}, not both")
        if not 0 <= within < group.members:
            raise ArgumentError(f"[{name}] group_{word} {within} is not below {group.members}")
        return within
    if rank is None:
        raise ArgumentError(f"[{name}] needs {word}, the rank of a process")
    if rank not in group.ranks:
        raise ArgumentError(f"[{name}] {word} {rank} is not in the group of {list(group.ranks)}")
    return group.ranks.index(rank)


def _same_sizes(name: str, tensors: Sequence[Tensor], count: int, like: Tensor | None) -> None:
    if len(tensors) != count:
        raise ArgumentError(
            f"[{name}] expects {count} tensors, one per process, got {len(tensors)}"
        )
    if like is not None:
        for i, t in enumerate(tensors):
            if t.numel() != like.numel():
                raise ShapeError(
                    f"[{name}] tensor {i} of shape {tuple(t.shape)} does not fit one of "
                    f"{tuple(like.shape)}"
                )


# Tensors of all --------------------------------------------------------------------------------
@_of_members
def all_reduce(
    tensor: Tensor,
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    *,
    label: str = "",
    count: int = 0,
) -> Any:
    """Combine a tensor of each process, in place and everywhere the same to the bit.

    The order of a sum is one tree over the ranks, whatever the size. `label` names the tensor in
    errors; `count` is what an average divides by, if that is not the number of processes.

    >>> import undertow as ut
    >>> ut.distributed.init_process_group(rank=0, world_size=1)
    >>> x = ut.ones(2)
    >>> ut.distributed.all_reduce(x)
    >>> x
    tensor([1., 1.])
    >>> ut.distributed.destroy_process_group()
    """
    own = resolved("all_reduce", group)
    staged = Staged("all_reduce")
    array = staged.write(tensor)
    way = checked("all_reduce", op, array.dtype)
    return _begin(
        "all_reduce",
        own,
        staged,
        lambda what: collectives.all_reduce(what, array, way, count),
        async_op,
        [tensor],
        op=int(way),
        label=label,
    )


@_of_members
def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Any:
    """Combine a tensor of each process at one of them; elsewhere it stays as it was."""
    own = resolved("reduce", group)
    root = _member("reduce", own, dst, group_dst, "dst")
    staged = Staged("reduce")
    array = staged.write(tensor) if own.me == root else staged.read(tensor)
    way = checked("reduce", op, array.dtype)
    return _begin(
        "reduce",
        own,
        staged,
        lambda what: collectives.reduce(what, array, way, root),
        async_op,
        [tensor],
        op=int(way),
        root=root,
    )


@_of_members
def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
    *,
    label: str = "",
) -> Any:
    """Copy a tensor of one process to all."""
    own = resolved("broadcast", group)
    root = _member("broadcast", own, src, group_src, "src")
    staged = Staged("broadcast")
    array = staged.read(tensor) if own.me == root else staged.write(tensor)
    return _begin(
        "broadcast",
        own,
        staged,
        lambda what: collectives.broadcast(what, array, root),
        async_op,
        [tensor],
        root=root,
        label=label,
    )


@_of_members
def all_gather(
    tensor_list: list[Tensor],
    tensor: Tensor,
    group: Any = None,
    async_op: bool = False,
    *,
    label: str = "",
) -> Any:
    """Copy a tensor of each process into a list, at all of them."""
    own = resolved("all_gather", group)
    _same_sizes("all_gather", tensor_list, own.members, None)
    staged = Staged("all_gather")
    array = staged.read(tensor)
    outputs = [staged.write(t) for t in tensor_list]
    if outputs[own.me].size != array.size:
        raise ShapeError(
            f"[all_gather] tensor {own.me} of the list has {outputs[own.me].size} elements, and "
            f"the tensor {array.size}"
        )
    steps = lambda what: collectives.all_gather(what, outputs, array)
    return _begin("all_gather", own, staged, steps, async_op, tensor_list, label=label)


@_of_members
def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Any:
    """Copy a tensor of each process into one, at all of them: side by side along dimension 0."""
    own = resolved("all_gather_into_tensor", group)
    staged = Staged("all_gather_into_tensor")
    array, output = staged.read(input_tensor), staged.write(output_tensor)
    if output.size != array.size * own.members:
        raise ShapeError(
            f"[all_gather_into_tensor] output of shape {tuple(output_tensor.shape)} does not hold "
            f"{own.members} times an input of shape {tuple(input_tensor.shape)}"
        )
    outputs = list(output.reshape(own.members, -1))
    steps = lambda what: collectives.all_gather(what, outputs, array)
    return _begin("all_gather", own, staged, steps, async_op, output_tensor)


def share(tensors: Sequence[Sequence[Tensor]], group: ProcessGroup, label: str = "") -> None:
    """Copy `tensors[i]`, several of process i, to all, which have memory for them."""
    staged = Staged("share", mixed=True)
    arrays = [
        [staged.read(t) if owner == group.me else staged.write(t) for t in some]
        for owner, some in enumerate(tensors)
    ]
    steps = lambda what: collectives.share(what, arrays)
    _begin("all_gather", group, staged, steps, False, label=label)


all_gather_single = _all_gather_base = all_gather_into_tensor


@_of_members
def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    *,
    label: str = "",
) -> Any:
    """Combine tensor i of every process at process i."""
    own = resolved("reduce_scatter", group)
    _same_sizes("reduce_scatter", input_list, own.members, None)
    staged = Staged("reduce_scatter")
    out, inputs = staged.write(output), [staged.read(t) for t in input_list]
    if inputs[own.me].size != out.size:
        raise ShapeError(
            f"[reduce_scatter] input {own.me} of shape {tuple(input_list[own.me].shape)} does not "
            f"fit the output of shape {tuple(output.shape)}"
        )
    way = checked("reduce_scatter", op, out.dtype)
    steps = lambda what: collectives.reduce_scatter(what, inputs, way, out)
    details = {"op": int(way), "label": label}
    return _begin("reduce_scatter", own, staged, steps, async_op, [output], **details)


@_of_members
def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Any:
    """Combine a tensor of each process, of which each gets a part along dimension 0."""
    own = resolved("reduce_scatter_tensor", group)
    staged = Staged("reduce_scatter_tensor")
    out, whole = staged.write(output), staged.read(input)
    if whole.size != out.size * own.members:
        raise ShapeError(
            f"[reduce_scatter_tensor] input of shape {tuple(input.shape)} is not {own.members} "
            f"times an output of shape {tuple(output.shape)}"
        )
    inputs = list(whole.reshape(own.members, -1))
    way = checked("reduce_scatter_tensor", op, out.dtype)
    steps = lambda what: collectives.reduce_scatter(what, inputs, way, out)
    return _begin("reduce_scatter", own, staged, steps, async_op, output, op=int(way))


reduce_scatter_single = _reduce_scatter_base = reduce_scatter_tensor


@_of_members
def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: Any = None,
    async_op: bool = False,
) -> Any:
    """Send tensor i to process i, and receive one from each."""
    own = resolved("all_to_all", group)
    _same_sizes("all_to_all", output_tensor_list, own.members, None)
    _same_sizes("all_to_all", input_tensor_list, own.members, None)
    staged = Staged("all_to_all")
    inputs = [staged.read(t) for t in input_tensor_list]
    outputs = [staged.write(t) for t in output_tensor_list]
    if inputs[own.me].size != outputs[own.me].size:
        raise ShapeError(f"[all_to_all] input and output {own.me} do not fit each other")
    steps = lambda what: collectives.all_to_all(what, outputs, inputs)
    return _begin("all_to_all", own, staged, steps, async_op, output_tensor_list)


@_of_members
def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Any:
    """Send parts of a tensor along dimension 0 to all processes, and receive parts from them."""
    own = resolved("all_to_all_single", group)
    staged = Staged("all_to_all_single")
    whole, out = staged.read(input), staged.write(output)
    inputs = _split("input", whole, input, input_split_sizes, own.members)
    outputs = _split("output", out, output, output_split_sizes, own.members)
    if inputs[own.me].size != outputs[own.me].size:
        raise ShapeError(f"[all_to_all_single] part {own.me} of input and output differ in size")
    steps = lambda what: collectives.all_to_all(what, outputs, inputs)
    return _begin("all_to_all", own, staged, steps, async_op, output)


def _split(
    word: str, array: Any, tensor: Tensor, sizes: Sequence[int] | None, count: int
) -> list[Any]:
    rows = tensor.shape[0] if tensor.ndim else 1
    if not sizes:
        if rows % count:
            raise ShapeError(
                f"[all_to_all_single] {word} has {rows} rows, which {count} processes cannot share "
                f"equally; give {word}_split_sizes"
            )
        sizes = [rows // count] * count
    if len(sizes) != count or sum(sizes) != rows:
        raise ShapeError(
            f"[all_to_all_single] {word}_split_sizes {list(sizes)} are not {count} numbers that "
            f"add up to {rows}"
        )
    width = array.size // rows if rows else 0
    places = np.cumsum([0, *sizes]) * width
    return [array[a:b] for a, b in pairwise(places)]


@_of_members
def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Any:
    """Copy a tensor of each process into a list, at one of them."""
    own = resolved("gather", group)
    dst = 0 if dst is None and group_dst is None else dst
    root = _member("gather", own, dst, group_dst, "dst")
    staged = Staged("gather")
    array = staged.read(tensor)
    outputs = None
    if own.me == root:
        if not gather_list:
            raise ArgumentError("[gather] the process that gathers needs a gather_list")
        _same_sizes("gather", gather_list, own.members, tensor)
        outputs = [staged.write(t) for t in gather_list]
    elif gather_list:
        raise ArgumentError("[gather] only the process that gathers has a gather_list")
    steps = lambda what: collectives.gather(what, outputs, array, root)
    return _begin("gather", own, staged, steps, async_op, gather_list, root=root)


@_of_members
def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Any:
    """Copy tensor i of one process to process i."""
    own = resolved("scatter", group)
    src = 0 if src is None and group_src is None else src
    root = _member("scatter", own, src, group_src, "src")
    staged = Staged("scatter")
    out = staged.write(tensor)
    arrays = None
    if own.me == root:
        if not scatter_list:
            raise ArgumentError("[scatter] the process that scatters needs a scatter_list")
        _same_sizes("scatter", scatter_list, own.members, tensor)
        arrays = [staged.read(t) for t in scatter_list]
    elif scatter_list:
        raise ArgumentError("[scatter] only the process that scatters has a scatter_list")
    steps = lambda what: collectives.scatter(what, out, arrays, root)
    return _begin("scatter", own, staged, steps, async_op, [tensor], root=root)


@_of_members
def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Any:
    """Wait for the others."""
    own = resolved("barrier", group)
    nothing = np.empty(0, np.uint8)
    steps = lambda what: collectives.all_reduce(what, nothing, RedOpType.SUM)
    return _begin("barrier", own, Staged("barrier"), steps, async_op)


@_of_members
def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """Wait for the others; an error names those that did not come."""
    own = resolved("monitored_barrier", group)
    before = own.timeout
    own.timeout = seconds(timeout) or before
    try:
        barrier(own)
    finally:
        own.timeout = before


@_of_members
def all_reduce_coalesced(
    tensors: Sequence[Tensor], op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Any:
    """`all_reduce` of several tensors."""
    own = resolved("all_reduce_coalesced", group)
    works = [all_reduce(t, op, own, True) for t in tensors]
    return _all_of(works, list(tensors), async_op)


@_of_members
def all_gather_coalesced(
    output_tensor_lists: list[list[Tensor]],
    input_tensor_list: list[Tensor],
    group: Any = None,
    async_op: bool = False,
) -> Any:
    """`all_gather` of several tensors: row i of the lists is process i's."""
    own = resolved("all_gather_coalesced", group)
    works = [
        all_gather([row[i] for row in output_tensor_lists], t, own, True)
        for i, t in enumerate(input_tensor_list)
    ]
    return _all_of(works, output_tensor_lists, async_op)


class _All:
    """Several operations as one."""

    def __init__(self, works: list[Work], result: Any) -> None:
        self._works, self._result = works, result

    def wait(self, timeout: Any = None) -> bool:
        """Wait until all are over."""
        for work in self._works:
            work.wait(timeout)
        return True

    def is_completed(self) -> bool:
        """Whether all are over."""
        return all(w.is_completed() for w in self._works)

    def result(self) -> Any:
        """The tensors that were filled."""
        self.wait()
        return self._result

    def get_future(self) -> Future:
        """The result as a future."""
        made = Future(self._works[-1])
        return made.then(lambda _: self.result())


def _all_of(works: list[Work], result: Any, async_op: bool) -> Any:
    made = _All(works, result)
    if async_op:
        return made
    made.wait()
    return None


# Messages between two --------------------------------------------------------------------------
@_of_members
def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Any:
    """Begin to send a tensor to a process, which must stay as it is until that is over."""
    return _send("isend", tensor, dst, group, tag, group_dst, True)


@_of_members
def send(
    tensor: Tensor,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Send a tensor to a process."""
    _send("send", tensor, dst, group, tag, group_dst, False)


def _send(
    name: str, tensor: Tensor, dst: Any, group: Any, tag: int, group_dst: Any, later: bool
) -> Any:
    own = resolved(name, group)
    peer = _member(name, own, dst, group_dst, "dst")
    if peer == own.me:
        raise ArgumentError(f"[{name}] a process cannot send to itself, got rank {dst}")
    _check_tag(name, tag)
    staged = Staged(name)
    array = staged.read(tensor)
    number = own.next_send()

    def steps(what: Any) -> Any:
        what.number = number
        return collectives.send(what, array, peer)

    return _begin("send", own, staged, steps, later, [tensor], root=own.me, tag=tag)


@_of_members
def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Any:
    """Begin to receive a tensor from a process, or from any."""
    return _receive("irecv", tensor, src, group, tag, group_src, True)


@_of_members
def recv(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Receive a tensor from a process, or from any; the rank that it came from."""
    return int(_receive("recv", tensor, src, group, tag, group_src, True).result())


def _receive(
    name: str, tensor: Tensor, src: Any, group: Any, tag: int, group_src: Any, later: bool
) -> Any:
    own = resolved(name, group)
    anyone = src is None and group_src is None
    peer = ANY if anyone else _member(name, own, src, group_src, "src")
    if peer == own.me:
        raise ArgumentError(f"[{name}] a process cannot receive from itself, got rank {src}")
    _check_tag(name, tag)
    staged = Staged(name)
    array = staged.write(tensor)
    steps = lambda what: collectives.receive(what, array, peer)
    return _begin("send", own, staged, steps, later, tag=tag)


def _check_tag(name: str, tag: int) -> None:
    if not 0 <= tag < 1 << 16:
        raise ArgumentError(f"[{name}] tags are numbers below 65536, got {tag}")


class P2POp:
    """A message for `batch_isend_irecv`."""

    def __init__(
        self,
        op: Any,
        tensor: Tensor,
        peer: int | None = None,
        group: Any = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ArgumentError("[P2POp] op is distributed.isend or distributed.irecv")
        self.op, self.tensor, self.peer, self.group, self.tag = op, tensor, peer, group, tag
        self.group_peer = group_peer


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Any]:
    """Begin several messages; wait for each of what is returned."""
    if not p2p_op_list or not all(isinstance(p, P2POp) for p in p2p_op_list):
        raise DTypeError("[batch_isend_irecv] expects a list of P2POp, not empty")
    begun = [p.op(p.tensor, p.peer, p.group, p.tag, p.group_peer) for p in p2p_op_list]
    return [work for work in begun if work is not None]


# Objects ---------------------------------------------------------------------------------------
def _pickled(obj: Any) -> Tensor:
    return wrap(np.frombuffer(pickle.dumps(obj), np.uint8).copy())


def _unpickled(data: Tensor) -> Any:
    return pickle.loads(data._array.tobytes())


def _room(size: Any) -> Tensor:
    return wrap(np.empty(int(size), np.uint8))


def _sizes(values: Sequence[int]) -> Tensor:
    return wrap(np.array(values, np.int64))


@_of_members
def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Put an object of each process into a list, at all of them. They are pickled."""
    own = resolved("all_gather_object", group)
    data = _pickled(obj)
    sizes = [_sizes([0]) for _ in range(own.members)]
    all_gather(sizes, _sizes([data.numel()]), own)
    found = [_room(s.item()) for s in sizes]
    all_gather(found, data, own)
    object_list[:] = [_unpickled(t) for t in found]


@_of_members
def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> None:
    """Put an object of each process into a list, at one of them."""
    own = resolved("gather_object", group)
    dst = 0 if dst is None and group_dst is None else dst
    root = _member("gather_object", own, dst, group_dst, "dst")
    found: list[Any] = [None] * own.members
    all_gather_object(found, obj, own)
    if own.me == root:
        if object_gather_list is None:
            raise ArgumentError("[gather_object] the process that gathers needs a list")
        object_gather_list[:] = found


@_of_members
def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Replace the objects in a list by those of one process."""
    own = resolved("broadcast_object_list", group)
    src = 0 if src is None and group_src is None else src
    root = _member("broadcast_object_list", own, src, group_src, "src")
    here = own.me == root
    data = [_pickled(obj) if here else None for obj in object_list]
    sizes = _sizes([0 if d is None else d.numel() for d in data])
    broadcast(sizes, group=own, group_src=root)
    for i, (one, size) in enumerate(zip(data, sizes.tolist(), strict=True)):
        bytes_ = _room(size) if one is None else one
        broadcast(bytes_, group=own, group_src=root)
        if not here:
            object_list[i] = _unpickled(bytes_)


@_of_members
def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """Put object i of one process into the list of process i, at its beginning."""
    own = resolved("scatter_object_list", group)
    src = 0 if src is None and group_src is None else src
    root = _member("scatter_object_list", own, src, group_src, "src")
    if not scatter_object_output_list:
        raise ArgumentError("[scatter_object_list] the list for the result has no place")
    size, datas = _sizes([0]), None
    if own.me == root:
        if not scatter_object_input_list or len(scatter_object_input_list) != own.members:
            raise ArgumentError(f"[scatter_object_list] expects {own.members} objects to scatter")
        datas = [_pickled(obj) for obj in scatter_object_input_list]
    sizes = None if datas is None else [_sizes([d.numel()]) for d in datas]
    scatter(size, sizes, group=own, group_src=root)
    staged = Staged("scatter_object_list")
    result = _room(size.item())
    out = staged.write(result)
    arrays = None if datas is None else [staged.read(d) for d in datas]
    steps = lambda what: collectives.scatter(what, out, arrays, root)
    _begin("scatter", own, staged, steps, False, root=root)
    scatter_object_output_list[0] = _unpickled(result)


@_of_members
def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: Any = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Send objects to a process."""
    own = resolved("send_object_list", group)
    datas = [_pickled(obj) for obj in object_list]
    send(_sizes([d.numel() for d in datas]), dst, own, 0, group_dst)
    for data in datas:
        send(data, dst, own, 0, group_dst)


@_of_members
def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Replace the objects in a list by those that a process sends; its rank."""
    own = resolved("recv_object_list", group)
    sizes = _sizes([0] * len(object_list))
    source = recv(sizes, src, own, 0, group_src)
    for i, size in enumerate(sizes.tolist()):
        data = _room(size)
        recv(data, source, own)
        object_list[i] = _unpickled(data)
    return source
