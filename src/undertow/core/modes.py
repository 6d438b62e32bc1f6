"""What is switched on in the current context: gradients, inference, anomaly detection, hooks.

The state is one immutable object in a `ContextVar`, so it is per thread and per async task, and a
worker that runs in a copy of its caller's context sees what the caller saw.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, Token
from functools import partial
from typing import Any, TypeVar, overload

F = TypeVar("F", bound=Callable[..., Any])


class State:
    """The switches. `plain` is True when only `grad` differs from the default.

    `origin` is the node whose rule is running, known in anomaly mode only; `refuse` is the message
    with which saved-tensor hooks are disabled. `around(op, inputs, params)` runs an op in the place
    of the door, and `writing(tensor)` is called before a tensor is changed in place. `threads`
    tells whether a backward pass may use more than one. `autocast` is the Autocast of the context,
    or None; the fast path may ignore it, since no elementwise function of its is listed. `asks` and
    `function_modes` tell who answers public functions, see Note [overriding], `dispatches` and
    `dispatch_modes` who answers operators. `recording` tells that a call is recorded form by form
    (core/recording), so that no form may be left out.
    """

    __slots__ = (
        "anomaly",
        "around",
        "asks",
        "autocast",
        "check_nan",
        "dispatch_modes",
        "dispatches",
        "function_modes",
        "grad",
        "inference",
        "origin",
        "pack",
        "plain",
        "recording",
        "refuse",
        "threads",
        "unpack",
        "writing",
    )

    def __init__(
        self,
        grad: bool = True,
        inference: bool = False,
        anomaly: bool = False,
        check_nan: bool = True,
        pack: Callable[[Any], Any] | None = None,
        unpack: Callable[[Any], Any] | None = None,
        origin: Any = None,
        refuse: str | None = None,
        around: Callable[..., Any] | None = None,
        writing: Callable[[Any], None] | None = None,
        threads: bool = True,
        autocast: Any = None,
        asks: int = 0,
        function_modes: tuple[Any, ...] = (),
        dispatches: bool = True,
        dispatch_modes: tuple[Any, ...] = (),
        recording: bool = False,
    ) -> None:
        self.grad = grad
        self.inference = inference
        self.anomaly = anomaly
        self.check_nan = check_nan
        self.pack = pack
        self.unpack = unpack
        self.origin = origin
        self.refuse = refuse
        self.around = around
        self.writing = writing
        self.threads = threads
        self.autocast = autocast
        self.asks = asks
        self.function_modes = function_modes
        self.dispatches = dispatches
        self.dispatch_modes = dispatch_modes
        self.recording = recording
        self.plain = (
            not inference and not anomaly and pack is None and around is None and not recording
        )

    def but(self, **changes: Any) -> State:
        """This state with some switches changed; the default ones are the same object again."""
        wanted = {name: getattr(self, name) for name in _SWITCHES} | changes
        for known in (_default, _default_no_grad):
            for name in _SWITCHES:
                if wanted[name] is not getattr(known, name):
                    break
            else:
                return known
        return State(**wanted)


_SWITCHES = tuple(name for name in State.__slots__ if name != "plain")
_state: ContextVar[State] = ContextVar("undertow_state", default=State())  # noqa: B039 (it is never changed)
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
    """A context manager and decorator that changes switches; reusable, reentrant, shareable."""

    __slots__ = ("__weakref__", "_changes", "_tokens")

    def __init__(self, **changes: Any) -> None:
        self._changes = changes
        self._tokens: list[Token[State]] = []

    def __enter__(self) -> None:
        before = current()
        changed = self._next(before)
        try:
            self._tokens.append(enter(changed))
        except BaseException:  # of a signal handler: `with` would not call __exit__
            enter(before)
            raise

    def _next(self, state: State) -> State:
        return state.but(**self._changes)

    def __exit__(self, *exc: object) -> None:
        # `set_grad_enabled(False)` inside stays, as in torch, unless this is a mode of recording.
        try:
            grad = current().grad
        finally:  # also if a signal handler raises meanwhile
            self._leave()
        state = current()
        if state.grad is not grad and "grad" not in self._changes:
            enter(with_grad(state, grad))

    def _leave(self, *exc: object) -> None:
        # At once, before a signal handler can come between. The last token is ours unless another
        # thread or task has entered the same object since; a token knows its context and refuses to
        # be used in another.
        token = self._tokens[-1]
        try:
            leave(token)
        except ValueError:
            self._search()
        else:
            self._tokens.remove(token)

    def _search(self) -> None:
        for token in reversed(self._tokens):
            try:
                leave(token)
            except ValueError:
                continue
            self._tokens.remove(token)
            return

    def __call__(self, function: F) -> F:
        return decorate(lambda: enter(self._next(current())), function)


def decorate(begin: Callable[[], Token[State]], function: F) -> F:
    """`function` with the switches of `begin` set while its body runs, and only then.

    A generator's body runs between `yield`s, a coroutine's while it is awaited.
    """
    import functools
    import inspect

    if not callable(function):
        raise TypeError(f"a grad mode decorates functions, got {type(function).__name__}")
    if isinstance(function, type):
        import warnings

        warnings.warn(
            f"Decorating classes is deprecated: {function.__name__} becomes a function that makes "
            "its objects; decorate the methods that need it",
            FutureWarning,
            stacklevel=3,
        )
    if inspect.isasyncgenfunction(function):

        @functools.wraps(function)
        async def wrapped_async_generator(*args: Any, **kwargs: Any) -> Any:
            body = function(*args, **kwargs)
            step = body.__anext__()
            while True:
                try:
                    sent = yield await _Guarded(begin, step)
                except StopAsyncIteration:
                    return
                except GeneratorExit:
                    await _Guarded(begin, body.aclose())
                    raise
                except BaseException as error:
                    step = body.athrow(error)
                else:
                    step = body.asend(sent)

        return wrapped_async_generator  # type: ignore[return-value]
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def wrapped_coroutine(*args: Any, **kwargs: Any) -> Any:
            return await _Guarded(begin, function(*args, **kwargs))

        return wrapped_coroutine  # type: ignore[return-value]
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def wrapped_generator(*args: Any, **kwargs: Any) -> Any:
            return _resume(begin, function(*args, **kwargs))

        return wrapped_generator  # type: ignore[return-value]

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        before = current()
        try:
            begin()
            return function(*args, **kwargs)
        finally:
            enter(before)  # not by the token, which an interrupt might have kept from us

    return wrapped  # type: ignore[return-value]


def _resume(begin: Callable[[], Token[State]], body: Any) -> Any:
    """A generator that runs `body` with the switches set, and its consumer without."""
    step: Callable[[], Any] = partial(next, body)
    while True:
        token = begin()
        try:
            value = step()
        except StopIteration as end:
            return end.value
        finally:
            leave(token)
        try:
            sent = yield value
        except GeneratorExit:
            token = begin()
            try:
                body.close()
            finally:
                leave(token)
            raise
        except BaseException as error:
            step = partial(body.throw, error)
        else:
            step = partial(body.send, sent)


class _Guarded:
    """An awaitable that runs another's steps with the switches set."""

    __slots__ = ("_begin", "_body")

    def __init__(self, begin: Callable[[], Token[State]], body: Any) -> None:
        self._begin = begin
        self._body = body

    def __await__(self) -> Any:
        return _resume(self._begin, self._body.__await__())


class _GradSwitch(Switch):
    __slots__ = ("_grad",)

    def __init__(self, grad: bool) -> None:
        super().__init__(grad=grad)
        self._grad = grad

    def _next(self, state: State) -> State:
        return with_grad(state, self._grad and not state.inference)

    __exit__ = Switch._leave


class no_grad(_GradSwitch):
    """Record nothing: results do not require gradients.

    >>> import undertow as ut
    >>> x = ut.ones(2, requires_grad=True)
    >>> with ut.no_grad():
    ...     (x * 2).requires_grad
    False

    As a decorator of functions, generators and coroutines it needs no parentheses.
    """

    __slots__ = ()

    @overload
    def __new__(cls, function: None = None) -> no_grad: ...
    @overload
    def __new__(cls, function: F) -> F: ...  # type: ignore[misc]
    def __new__(cls, function: Any = None) -> Any:
        return super().__new__(cls) if function is None else cls()(function)

    def __init__(self, function: Any = None) -> None:
        super().__init__(False)


class enable_grad(_GradSwitch):
    """Record again inside `no_grad` (inside `inference_mode` nothing is ever recorded).

    >>> import undertow as ut
    >>> x = ut.tensor(3.0, requires_grad=True)
    >>> with ut.no_grad():
    ...     a = x * 2
    ...     with ut.enable_grad():
    ...         b = x * 2
    >>> a.requires_grad, b.requires_grad
    (False, True)
    """

    __slots__ = ()

    @overload
    def __new__(cls, function: None = None) -> enable_grad: ...
    @overload
    def __new__(cls, function: F) -> F: ...  # type: ignore[misc]
    def __new__(cls, function: Any = None) -> Any:
        return super().__new__(cls) if function is None else cls()(function)

    def __init__(self, function: Any = None) -> None:
        super().__init__(True)


class Setting(Switch):
    """A switch that acts at once, too: called like a function it stays, with `with` it ends."""

    __slots__ = ("_token",)

    def __init__(self, **changes: Any) -> None:
        super().__init__(**changes)
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


class set_grad_enabled(Setting):
    """Switch recording on or off at once; as a context manager, until its end.

    >>> import undertow as ut
    >>> with ut.set_grad_enabled(False):
    ...     ut.is_grad_enabled()
    False
    """

    __slots__ = ()

    def __init__(self, mode: bool) -> None:
        super().__init__(grad=bool(mode))

    def _next(self, state: State) -> State:
        return with_grad(state, self._changes["grad"] and not state.inference)


class inference_mode(Switch):
    """Like `no_grad`, and results can never enter a graph later.

    >>> import undertow as ut
    >>> with ut.inference_mode():
    ...     y = ut.ones(2) * 2
    >>> y.is_inference()
    True
    """

    __slots__ = ()

    @overload
    def __new__(cls, mode: bool = True) -> inference_mode: ...
    @overload
    def __new__(cls, mode: F) -> F: ...  # type: ignore[misc]
    def __new__(cls, mode: Any = True) -> Any:
        return cls()(mode) if callable(mode) else super().__new__(cls)

    def __init__(self, mode: Any = True) -> None:
        super().__init__(inference=bool(mode), **({"grad": False} if mode else {"grad": True}))


class set_multithreading_enabled(Setting):
    """Whether backward passes may use several threads: set at once, or until the end of a block.

    How many they use is said by `workers=` or `set_workers`; results are the same bit for bit.

    >>> import undertow as ut
    >>> with ut.autograd.set_multithreading_enabled(False):
    ...     ut.autograd.is_multithreading_enabled()
    False
    """

    __slots__ = ()

    def __init__(self, mode: bool) -> None:
        super().__init__(threads=bool(mode))


def is_multithreading_enabled() -> bool:
    """Whether backward passes may use several threads in this context.

    >>> import undertow as ut
    >>> with ut.autograd.set_multithreading_enabled(False):
    ...     ut.autograd.is_multithreading_enabled()
    False
    """
    return current().threads


def is_grad_enabled() -> bool:
    """Whether operations are being recorded for gradients in this context.

    >>> import undertow as ut
    >>> with ut.no_grad():
    ...     ut.is_grad_enabled()
    False
    >>> ut.is_grad_enabled()
    True
    """
    return current().grad


def is_inference_mode_enabled() -> bool:
    """Whether `inference_mode` is on in this context.

    >>> import undertow as ut
    >>> with ut.inference_mode():
    ...     ut.is_inference_mode_enabled()
    True
    """
    return current().inference
