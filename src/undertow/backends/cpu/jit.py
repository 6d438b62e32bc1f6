"""LLVM IR to machine code in this process."""

from __future__ import annotations

import threading
from typing import Any

_lock = threading.Lock()
_engine: Any = None
_machine: Any = None


def target() -> Any:
    """LLVM's description of this machine; llvmlite is imported here, on first use."""
    global _machine, _engine
    if _machine is None:
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        _machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name(),
            features=llvm.get_host_cpu_features().flatten(),
            opt=3,
            jit=True,
        )
        _engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine)
    return _machine


def load(name: str, text: str) -> int:
    """The address of the function `name` in a module of LLVM IR, optimised and compiled."""
    import llvmlite.binding as llvm

    with _lock:
        machine = target()
        module = llvm.parse_assembly(text)
        module.verify()
        builder = llvm.create_pass_builder(
            machine, llvm.create_pipeline_tuning_options(speed_level=2)
        )
        builder.getModulePassManager().run(module, builder)
        _engine.add_object_file(llvm.ObjectFileRef.from_data(machine.emit_object(module)))
        _engine.finalize_object()
        return int(_engine.get_function_address(name))
