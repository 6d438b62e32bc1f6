"""Tables of vectors that are looked up by index."""

from __future__ import annotations

from typing import Any

from ...core.modes import no_grad
from ...core.tensor import Tensor
from ...errors import ArgumentError
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .linear import new_parameter
from .module import Module


class _Table(Module):
    """What both share: the table, and a row of it that stays zero."""

    weight: Parameter
    padding_idx: int | None

    def _make(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None,
        weight: Tensor | None,
        device: Any,
        dtype: Any,
        learned: bool = True,
    ) -> None:
        name = type(self).__name__
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ArgumentError(
                f"[{name}] padding_idx must be within num_embeddings, got {padding_idx} and "
                f"{num_embeddings}"
            )
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        if weight is None:
            self.weight = new_parameter(num_embeddings, embedding_dim, device=device, dtype=dtype)
            self.weight.requires_grad_(learned)
            self.reset_parameters()
        elif weight.shape != (num_embeddings, embedding_dim):
            raise ArgumentError(
                f"[{name}] shape of weight does not match num_embeddings and embedding_dim, got "
                f"{weight.shape} and ({num_embeddings}, {embedding_dim})"
            )
        else:
            self.weight = Parameter(weight, learned)

    def reset_parameters(self) -> None:
        """Normal values, and zeros in the row `padding_idx`."""
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self) -> None:
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)


def _rows_and_columns(op: str, embeddings: Tensor) -> tuple[int, int]:
    if embeddings.ndim != 2:
        raise ArgumentError(
            f"[{op}] embeddings parameter is expected to be 2-dimensional, got shape "
            f"{embeddings.shape}"
        )
    return embeddings.shape[0], embeddings.shape[1]


class Embedding(_Table):
    """The rows of a learned table at the indices that are given.

    The row `padding_idx` is zero and gets no gradient; rows longer than `max_norm` are shortened
    when they are looked up. With `sparse` the table's gradient is a sparse tensor, for SGD, Adagrad
    or SparseAdam.

    >>> import undertow as ut
    >>> ut.nn.Embedding(10, 3)(ut.tensor([[1, 2], [4, 5]])).shape
    (2, 2, 3)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        self._make(num_embeddings, embedding_dim, padding_idx, _weight, device, dtype, not _freeze)

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        if self.padding_idx is not None:
            parts.append(f"padding_idx={self.padding_idx}")
        if self.max_norm is not None:
            parts.append(f"max_norm={self.max_norm}")
        if self.norm_type != 2:
            parts.append(f"norm_type={self.norm_type}")
        if self.scale_grad_by_freq:
            parts.append(f"scale_grad_by_freq={self.scale_grad_by_freq}")
        if self.sparse:
            parts.append("sparse=True")
        return ", ".join(parts)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """A table of one's own, which learns only without `freeze`.

        >>> import undertow as ut
        >>> ut.nn.Embedding.from_pretrained(ut.eye(2))(ut.tensor([1]))
        tensor([[0., 1.]])
        """
        rows, columns = _rows_and_columns("Embedding.from_pretrained", embeddings)
        return cls(
            rows,
            columns,
            padding_idx=padding_idx,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            sparse=sparse,
            _weight=embeddings,
            _freeze=freeze,
        )


class EmbeddingBag(_Table):
    """The sum, mean or maximum of the rows in each bag of indices.

    Bags are the rows of a matrix of indices, or begin at the `offsets` into a list of them.

    >>> import undertow as ut
    >>> bag = ut.nn.EmbeddingBag.from_pretrained(ut.eye(2), mode="sum")
    >>> bag(ut.tensor([0, 1, 1]), ut.tensor([0, 1]))
    tensor([[1., 0.],
            [0., 2.]])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset
        self._make(num_embeddings, embedding_dim, padding_idx, _weight, device, dtype)

    def forward(
        self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        if self.max_norm is not None:
            parts.append(f"max_norm={self.max_norm}")
        if self.norm_type != 2:
            parts.append(f"norm_type={self.norm_type}")
        if self.scale_grad_by_freq:
            parts.append(f"scale_grad_by_freq={self.scale_grad_by_freq}")
        parts.append(f"mode={self.mode!r}")
        if self.padding_idx is not None:
            parts.append(f"padding_idx={self.padding_idx}")
        return ", ".join(parts)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """A table of one's own, which learns only without `freeze`."""
        rows, columns = _rows_and_columns("EmbeddingBag.from_pretrained", embeddings)
        made = cls(
            rows,
            columns,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            mode,
            sparse,
            embeddings,
            include_last_offset,
            padding_idx,
        )
        made.weight.requires_grad_(not freeze)
        return made
