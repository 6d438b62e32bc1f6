"""`GraphModule`: a module whose `forward` is the code of a graph."""

from __future__ import annotations

import copy
import itertools
import linecache
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ... import nn
from ...core.tensor import Tensor
from ...nn.modules.module import Module
from ...nn.parameter import Parameter
from .codegen import PythonCode, _BoxedCodeGen, _custom_builtins, _PyTreeCodeGen
from .graph import Graph
from .naming import load_native, package

__all__ = ["GraphModule", "reduce_graph_module", "reduce_package_graph_module"]

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
_HOOKS = ("_replace_hooks", "_create_node_hooks", "_erase_node_hooks", "_deepcopy_hooks")


# Code ---------------------------------------------------------------------------------------------
_numbers = itertools.count()


def _keep(src: str, fields: dict[str, Any] | None) -> str:
    """The file that a source is said to stand in, where tracebacks and `inspect` find it."""
    key = f"<eval_with_key>.{next(_numbers)}"
    if fields:
        key += " from {co_filename}:{co_firstlineno} in {co_name}".format(**fields)
    linecache.cache[key] = len(src), None, src.splitlines(keepends=True), key
    return key


def _exec_with_source(
    src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None
) -> None:
    load_native()
    key = _keep(src, co_fields)
    exec(compile(src, key, "exec", dont_inherit=True), globals)


def _method_from_src(
    method_name: str, src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None
) -> Callable[..., Any]:
    space = dict(globals)
    _exec_with_source(src, space, co_fields)
    made: Callable[..., Any] = space.pop(method_name)
    return made


def _forward_from_src(
    src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None
) -> Callable[..., Any]:
    return _method_from_src("forward", src, globals, co_fields)


def _import_block(globals: dict[str, Any]) -> str:
    """The imports that code with these globals needs in a file of its own."""
    lines = set()
    for name, obj in globals.items():
        if name in _custom_builtins:
            lines.add(_custom_builtins[name].import_str)
        else:
            module, attribute = obj.__module__, getattr(obj, "__qualname__", name)
            if sys.modules.get(module) is None or not hasattr(sys.modules[module], attribute):
                attribute = getattr(obj, "__name__", None) or getattr(obj, "_name", name)
            lines.add(f"from {module} import {attribute} as {name}")
    return "\n".join(sorted(lines))


# Pickles ------------------------------------------------------------------------------------------
class _CodeOnlyModule(Module):
    """The fields of a module as a module, to be traced again."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


def reduce_graph_module(body: dict[str, Any], import_block: str) -> Module:
    """The module that was pickled: its code runs once more, and is traced."""
    source = body.get("_code") or body["code"]
    return _deserialize_graph_module(_forward_from_src(import_block + source, {}), body)


def reduce_package_graph_module(importer: Any, body: dict[str, Any], name: str) -> Module:
    """The same, out of a package."""
    return _deserialize_graph_module(importer.import_module(name).forward, body)


def _deserialize_graph_module(
    forward: Callable[..., Any], body: dict[str, Any], graph_module_cls: Any = None
) -> Module:
    from ._symbolic_trace import Tracer

    kind = body.get("_tracer_cls") or Tracer

    class KeepModules(kind):  # type: ignore[misc,valid-type]
        """A tracer that goes into no module: the first one did not either."""

        def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
            return True

    class CodeOnly(_CodeOnlyModule):
        """Has the function that is traced."""

    CodeOnly.forward = forward  # type: ignore[method-assign]
    source = CodeOnly(body)
    graph = KeepModules().trace(source, **(body.get("_tracer_extras") or {}))
    graph._tracer_cls = kind
    made = (graph_module_cls or GraphModule)(
        source, graph, body.get("_graphmodule_cls_name", "GraphModule")
    )
    for key, value in body.items():
        if key == "meta" or not hasattr(made, key):
            setattr(made, key, value)
    return made


# Attributes by path -------------------------------------------------------------------------------
def _assign_attr(from_obj: Any, to_module: Module, target: str) -> None:
    """Put something at a path below a module, with empty modules on the way."""
    *path, name = target.split(".")
    for step in path:
        below = getattr(to_module, step, None)
        if below is None:
            below = Module()
            setattr(to_module, step, below)
        to_module = below
    if isinstance(from_obj, Tensor) and not isinstance(from_obj, Parameter):
        to_module.register_buffer(name, from_obj)
    else:
        setattr(to_module, name, from_obj)


def _copy_attr(from_module: Module, to_module: Module, target: str) -> None:
    """Let one module have what another has at a path."""
    *path, name = target.split(".")
    for step in path:
        source, below = getattr(from_module, step), getattr(to_module, step, None)
        if source is below:  # a parent is there already, and all below it
            return
        if below is None:
            below = Module()
            setattr(to_module, step, below)
        from_module, to_module = source, below
    found = getattr(from_module, name)
    if isinstance(found, Tensor) and not isinstance(found, Parameter):
        to_module.register_buffer(name, found)
    else:
        setattr(to_module, name, found)


def _get_attr(model: Module, attr_name: str) -> Any:
    """What a module has at a path."""
    found: Any = model
    for step in attr_name.split("."):
        found = getattr(found, step)
    return found


def _del_attr(model: Module, attr_name: str) -> None:
    path, _, name = attr_name.rpartition(".")
    delattr(_get_attr(model, path) if path else model, name)


def _has_attr(model: Module, attr_name: str) -> bool:
    try:
        _get_attr(model, attr_name)
    except AttributeError:
        return False
    return True


# Calls --------------------------------------------------------------------------------------------
class _WrappedCall:
    """A call that shows the line of the generated code when that is where an error arose."""

    def __init__(self, cls: type, cls_call: Callable[..., Any] | None) -> None:
        self.cls = cls
        self.cls_call = cls_call

    @staticmethod
    def _generate_error_message(frame_summary: traceback.FrameSummary) -> str:
        number, line = frame_summary.lineno or 0, frame_summary.line or ""
        lines = linecache.getlines(frame_summary.filename)
        return "\n".join(
            [
                traceback.format_exc(),
                f"Call using an FX-traced Module, line {number} of the traced Module's generated "
                "forward function:",
                "".join(lines[max(number - 2, 0) : number]),
                "~" * len(line) + "~~~ <--- HERE",
                "\n".join(lines[number : number + 2]),
            ]
        )

    def __call__(self, obj: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            if self.cls_call is not None:
                return self.cls_call(obj, *args, **kwargs)
            base: Any = super(self.cls, obj)
            return base.__call__(*args, **kwargs)
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            if "eval_with_key" in last.filename:
                print(self._generate_error_message(last), file=sys.stderr)
                raise error.with_traceback(None) from None
            raise


class GraphModule(Module):
    """A module made of a graph, with the parameters and modules of `root` that the graph uses.

    After the graph was changed, `recompile()` makes `forward` follow it.

    >>> import undertow as ut
    >>> traced = ut.fx.symbolic_trace(ut.nn.Sequential(ut.nn.Flatten(), ut.nn.ReLU()))
    >>> print(traced.code.strip())
    def forward(self, input):
        input_1 = input
        _0 = getattr(self, "0")(input_1);  input_1 = None
        _1 = getattr(self, "1")(_0);  _0 = None
        return _1
    >>> traced(ut.tensor([[[1.0], [-1.0]]]))
    tensor([[1., 0.]])
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        # Each instance has a class of its own, since `forward` belongs to the class.
        for base in cls.__mro__:
            if base.__qualname__.rpartition(".")[2] != "GraphModuleImpl":
                cls = base
                break

        class GraphModuleImpl(cls):  # type: ignore[misc,valid-type]
            """One graph's class."""

        return super().__new__(GraphModuleImpl)

    def __init__(
        self, root: Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule"
    ) -> None:
        super().__init__()
        self.__class__.__name__ = class_name
        targets = [n.target for n in graph.nodes if n.op in ("get_attr", "call_module")]
        if isinstance(root, Module):
            self.training = getattr(root, "training", True)
            if isinstance(root, _CodeOnlyModule):
                for named in (root.named_children, root.named_buffers, root.named_parameters):
                    for name, _ in named():
                        _copy_attr(root, self, name)
            for target in targets:
                _copy_attr(root, self, target)
        elif isinstance(root, dict):
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module") and node.target not in root:
                    raise RuntimeError(
                        f"Node {node} referenced target {node.target} but that target was not "
                        "provided in ``root``!"
                    )
            for target in sorted(targets, key=lambda t: t.count(".")):
                _assign_attr(root[target], self, target)
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        self.graph = graph
        tracer = graph._tracer_cls
        self._tracer_cls = tracer if tracer and "<locals>" not in tracer.__qualname__ else None
        self._tracer_extras = graph._tracer_extras or {}
        self.meta: dict[str, Any] = {}
        for hooks in _HOOKS:
            setattr(self, hooks, [])

    __jit_unused_properties__ = ("graph", "_boxed_call")

    @property
    def graph(self) -> Graph:
        """The graph; assigning another one makes `forward` follow that."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self._graph = g
        g.owning_module = self
        self.recompile()

    @property
    def _boxed_call(self) -> bool:
        return isinstance(self._graph._codegen, _BoxedCodeGen)

    @property
    def code(self) -> str:
        """The source of `forward`."""
        if "_code" not in self.__dict__:
            raise RuntimeError("[GraphModule.code] has not been generated; call recompile()")
        return self._code

    def recompile(self) -> PythonCode:
        """Make `forward` what the graph says now."""
        codegen = self._graph._codegen
        if isinstance(codegen, _PyTreeCodeGen):
            self._in_spec = codegen.pytree_info.in_spec
            self._out_spec = codegen.pytree_info.out_spec
        made = self._graph.python_code(root_module="self")
        self._code: str = made.src
        self._lineno_map, self._prologue_start = made._lineno_map, made._prologue_start
        cls = type(self)
        cls.forward = _forward_from_src(made.src, made.globals, self._graph._co_fields)  # type: ignore[method-assign]
        if "_wrapped_call" not in vars(cls):
            own = cls.__call__ if "__call__" in vars(cls) else None
            cls._wrapped_call = _WrappedCall(cls, own)  # type: ignore[attr-defined]
        for child in self.children():
            if isinstance(child, GraphModule):
                child.recompile()

        def call_wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
            return self._wrapped_call(self, *args, **kwargs)

        cls.__call__ = call_wrapped  # type: ignore[method-assign]
        return made

    # Its modules ------------------------------------------------------------------------------
    def add_submodule(self, target: str, m: Module) -> bool:
        """Put a module at a path; whether that could be done."""
        *path, name = target.split(".")
        place: Module = self
        for step in path:
            below = getattr(place, step, None)
            if below is None:
                below = Module()
                setattr(place, step, below)
            if not isinstance(below, Module):
                return False
            place = below
        place.add_module(name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Take out the module at a path; whether there was one."""
        path, _, name = target.rpartition(".")
        try:
            place = self.get_submodule(path)
        except AttributeError:
            return False
        if not isinstance(getattr(place, name, None), Module):
            return False
        delattr(place, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Take out the modules that the graph neither calls nor reads."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                used.update(itertools.accumulate(node.target.split("."), "{}.{}".format))
                if node.op == "call_module":
                    try:
                        below = self.get_submodule(node.target)
                    except AttributeError:  # `lint` will tell
                        continue
                    used.update(f"{node.target}.{name}" for name, _ in below.named_modules())
        for name in [name for name, _ in self.named_modules() if name not in used]:
            self.delete_submodule(name)

    # Copies -----------------------------------------------------------------------------------
    def __reduce__(self) -> Any:
        fields = dict(self.__dict__)
        imports = _import_block(self.recompile().globals)
        del fields["_graph"]
        fields["_graphmodule_cls_name"] = type(self).__name__
        for hooks in _HOOKS:
            fields.pop(hooks, None)
        return reduce_graph_module, (fields, imports)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__reduce__()

    def _deepcopy_init(self) -> Callable[..., None]:
        return GraphModule.__init__

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        fields = copy.deepcopy(self.__dict__, memo)
        self._deepcopy_init()(made, _CodeOnlyModule(fields), fields["_graph"])
        made.__class__.__name__ = type(self).__name__
        for name in ("_hooks", *_HOOKS):
            if name in fields:
                made.__dict__[name] = fields[name]
        made.meta = copy.deepcopy(self.__dict__.get("meta", {}), memo)
        for name, value in made.meta.get(_USER_PRESERVED_ATTRIBUTES_KEY, {}).items():
            setattr(made, name, value)
        for hook in getattr(self, "_deepcopy_hooks", ()):
            hook(made)
        return made

    def __copy__(self) -> GraphModule:
        made = GraphModule(self, self.graph)
        made.meta = self.__dict__.get("meta", {})
        return made

    # As text ----------------------------------------------------------------------------------
    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        **options: Any,
    ) -> str:
        """The code with comments for people, below that of its modules; printed and returned."""
        more = {"include_stride": include_stride, "include_device": include_device}
        text = _readable(self, self._get_name(), more)
        if print_output:
            print(text)
        return text

    def __str__(self) -> str:
        reminder = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([super().__str__(), self._code, reminder])

    def to_folder(self, folder: str | Path, module_name: str = "FxModule") -> None:
        """Write the code and the state into a folder that can be imported."""
        folder = Path(folder)
        folder.mkdir(exist_ok=True)
        torch = package()
        torch.save(self.state_dict(), folder / "state_dict.pt")
        lines = [builtin.import_str for builtin in _custom_builtins.values()]
        lines += [f"from {torch.__name__}.nn import *", "", ""]
        lines += [f"class {module_name}(torch.nn.Module):", "    def __init__(self):"]
        lines.append("        super().__init__()")
        blobs = []
        for name, child in self.named_children():
            if type(child) in _WRITTEN:
                lines.append(f"        setattr(self, {name!r}, {child!r})")
            else:
                blobs.append(name)
                torch.save(child, folder / f"{name}.pt")
                path = str(folder / f"{name}.pt")
                lines.append(
                    f"        setattr(self, {name!r}, torch.load({path!r}, weights_only=False))"
                )
        for name, buffer in self._buffers.items():
            if buffer is not None:
                empty = f"torch.empty({list(buffer.shape)}, dtype={_dtype(buffer)})"
                lines.append(f"        self.register_buffer({name!r}, {empty})")
        for name, parameter in self._parameters.items():
            if parameter is not None:
                empty = f"torch.empty({list(parameter.shape)}, dtype={_dtype(parameter)})"
                lines.append(f"        setattr(self, {name!r}, torch.nn.Parameter({empty}))")
        lines.append(f"        self.load_state_dict(torch.load({str(folder / 'state_dict.pt')!r}))")
        lines.append(_indented(self.code))
        (folder / "module.py").write_text("\n".join(lines) + "\n")
        (folder / "__init__.py").write_text("from .module import *\n")
        if blobs:
            warnings.warn(
                "Was not able to save the following children modules as reprs -saved as pickled "
                f"files instead: {blobs}",
                stacklevel=2,
            )

    # Hooks ------------------------------------------------------------------------------------
    @contextmanager
    def _set_replace_hook(self, f: Callable[..., Any]) -> Iterator[None]:
        self._register_replace_node_hook(f)
        try:
            yield
        finally:
            self._unregister_replace_node_hook(f)

    def _hook(self, hooks: str, f: Callable[..., Any]) -> None:
        if not callable(f):
            raise AssertionError("[GraphModule] a hook must be callable")
        getattr(self, hooks).append(f)

    def _register_replace_node_hook(self, f: Callable[..., Any]) -> None:
        self._hook("_replace_hooks", f)

    def _unregister_replace_node_hook(self, f: Callable[..., Any]) -> None:
        self._replace_hooks.remove(f)

    def _register_create_node_hook(self, f: Callable[..., Any]) -> None:
        self._hook("_create_node_hooks", f)

    def _unregister_create_node_hook(self, f: Callable[..., Any]) -> None:
        self._create_node_hooks.remove(f)

    def _register_erase_node_hook(self, f: Callable[..., Any]) -> None:
        self._hook("_erase_node_hooks", f)

    def _unregister_erase_node_hook(self, f: Callable[..., Any]) -> None:
        self._erase_node_hooks.remove(f)

    def _register_deepcopy_hook(self, f: Callable[..., Any]) -> None:
        self._hook("_deepcopy_hooks", f)

    def _unregister_deepcopy_hook(self, f: Callable[..., Any]) -> None:
        self._deepcopy_hooks.remove(f)


# Layers whose repr makes them again.
_WRITTEN = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d) + (
    *(nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d),
)


def _dtype(t: Tensor) -> str:
    return f"torch.{str(t.dtype).rpartition('.')[2]}"


def _indented(text: str) -> str:
    """The lines but the first, four columns further."""
    first, *rest = text.split("\n")
    return "\n".join([first, *[f"    {line}" for line in rest]])


def _readable(module: Any, name: str, options: dict[str, Any]) -> str:
    made = module.graph.python_code(root_module="self", verbose=True, **options)
    text = _indented(f"class {name}(torch.nn.Module):\n" + made.src.lstrip("\n"))
    below = [""]
    for child_name, child in module.named_children():
        if isinstance(child, GraphModule):
            below.append(_readable(child, child_name, options))
    return text + _indented("\n".join(below))
