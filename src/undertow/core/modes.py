"""What is switched on in the current context: gradients, inference, anomaly detection, hooks.

The state is one immutable object in a `ContextVar`, so it is per thread and per async task, and a
worker that runs in a copy of its caller's context sees what the caller saw.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class State:
    """The switches. `plain` is True when only `grad` differs from the default."""

    __slots__ = ("anomaly", "check_nan", "grad", "inference", "pack", "plain", "unpack")

    def __init__(
        self,
        grad: bool = True,
        inference: bool = False,
        anomaly: bool = False,
        check_nan: bool = True,
        pack: Callable[[Any], Any] | None = None,
        unpack: Callable[[Any], Any] | None = None,
    ) -> None:
        self.grad = grad
        self.inference = inference
        self.anomaly = anomaly
        self.check_nan = check_nan
        self.pack = pack
        self.unpack = unpack
        self.plain = not inference and not anomaly and pack is None

    def but(self, **changes: Any) -> State:
        """This state with some switches changed."""
        kept = {name: getattr(self, name) for name in self.__slots__ if name != "plain"}
        return State(**{**kept, **changes})


_state: ContextVar[State] = ContextVar("undertow_state", default=State())
current = _state.get
enter = _state.set
leave = _state.reset

# The states of no_grad and enable_grad inside the default one, so that entering builds nothing.
_default = _state.get()
_default_no_grad = State(grad=False)


def with_grad(state: State, grad: bool) -> State:
    """`state` with recording on or off."""
    if state.grad is grad:
        return state
    if state is _default:
        return _default_no_grad
    if state is _default_no_grad:
        return _default
    return state.but(grad=grad)


class Switch:
    """A context manager and decorator that changes switches; reusable and reentrant."""

    __slots__ = ("_changes", "_tokens")

    def __init__(self, **changes: Any) -> None:
        self._changes = changes
        self._tokens: list[Token[State]] = []

    def __enter__(self) -> None:
        self._tokens.append(enter(self._next(current())))

    def _next(self, state: State) -> State:
        return state.but(**self._changes)

    def __exit__(self, *exc: object) -> None:
        leave(self._tokens.pop())

    def __call__(self, function: F) -> F:
        import functools
        import inspect

        if inspect.isgeneratorfunction(function):
            raise TypeError(
                f"[{type(self).__name__}] cannot decorate the generator {function.__name__}: "
                "its body runs outside the call; use `with` inside it"
            )

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            token = enter(self._next(current()))
            try:
                return function(*args, **kwargs)
            finally:
                leave(token)

        return wrapped  # type: ignore[return-value]


class _GradSwitch(Switch):
    __slots__ = ("_grad",)

    def __init__(self, grad: bool) -> None:
        super().__init__(grad=grad)
        self._grad = grad

    def _next(self, state: State) -> State:
        return with_grad(state, self._grad and not state.inference)


class no_grad(_GradSwitch):
    """Record nothing: results do not require gradients.

    >>> import undertow as ut
    >>> x = ut.ones(2, requires_grad=True)
    >>> with ut.no_grad():
    ...     (x * 2).requires_grad
    False
    """

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(False)


class enable_grad(_GradSwitch):
    """Record again inside `no_grad` (inside `inference_mode` nothing is ever recorded)."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(True)


class set_grad_enabled(_GradSwitch):
    """Switch recording on or off at once; as a context manager, until its end.

    >>> import undertow as ut
    >>> with ut.set_grad_enabled(False):
    ...     ut.is_grad_enabled()
    False
    """

    __slots__ = ("_token",)

    def __init__(self, mode: bool) -> None:
        super().__init__(bool(mode))
        self._token: Token[State] | None = enter(self._next(current()))

    def __enter__(self) -> None:
        if self._token is not None:  # already switched by __init__
            self._tokens.append(self._token)
            self._token = None
        else:
            super().__enter__()

    def __call__(self, function: F) -> F:
        if self._token is not None:  # as a decorator it switches only during calls
            leave(self._token)
            self._token = None
        return super().__call__(function)


class inference_mode(Switch):
    """Like `no_grad`, and results can never enter a graph later.

    >>> import undertow as ut
    >>> with ut.inference_mode():
    ...     y = ut.ones(2) * 2
    >>> y.is_inference()
    True
    """

    __slots__ = ()

    def __init__(self, mode: bool = True) -> None:
        super().__init__(inference=bool(mode), **({"grad": False} if mode else {"grad": True}))


def is_grad_enabled() -> bool:
    """Whether operations are being recorded for gradients in this context."""
    return current().grad


def is_inference_mode_enabled() -> bool:
    """Whether `inference_mode` is on in this context."""
    return current().inference
