"""Settings of libraries that are not here, and other small names, beside torch's."""

from __future__ import annotations

from typing import Any

import pytest

import undertow as ut

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.conformance


@pytest.mark.filterwarnings("ignore:TF32")
def test_flags_of_onednn_last_for_their_block() -> None:
    for lib in (ut, torch):
        mkldnn: Any = lib.backends.mkldnn
        names = ("enabled", "deterministic", "allow_tf32", "fp32_precision")
        before = [getattr(mkldnn, name) for name in names]
        with mkldnn.flags(enabled=False, deterministic=True):
            assert (mkldnn.enabled, mkldnn.deterministic) == (False, True)
        assert [getattr(mkldnn, name) for name in names] == before
        assert list(mkldnn.set_flags(_enabled=before[0])) == before
        for kind in (mkldnn.matmul, mkldnn.conv, mkldnn.rnn):
            assert kind.fp32_precision == "none"


def test_what_a_state_dict_puts_in_the_place_of_a_tensor() -> None:
    for lib in (ut, torch):
        held, given = lib.zeros(2), lib.ones(2)
        assert held.module_load(given, assign=True).data_ptr() == given.data_ptr()
        found = held.module_load(given)
        assert found.data_ptr() == held.data_ptr()
        assert held.tolist() == [1.0, 1.0]
        with pytest.raises(RuntimeError):
            lib.nn.Parameter(lib.zeros(2)).module_load(given)


KINDS: dict[str, Any] = {
    "Tensor": lambda lib: lib.Tensor,
    "int": lambda lib: int,
    "float": lambda lib: float,
    "bool": lambda lib: bool,
    "str": lambda lib: str,
    "complex": lambda lib: complex,
    "number": lambda lib: int | float | bool,
    "two numbers": lambda lib: int | float,
    "dtype": lambda lib: lib.dtype,
    "device": lambda lib: lib.device,
    "layout": lambda lib: lib.layout,
    "Parameter": lambda lib: lib.nn.Parameter,
    "Any": lambda lib: Any,
    "dict": lambda lib: dict,
}
FORMS: dict[str, Any] = {
    "itself": lambda t: t,
    "option": lambda t: t | None,
    "list": lambda t: list[t],
    "list of options": lambda t: list[t | None],
    "option of a list": lambda t: list[t] | None,
    "lists": lambda t: list[list[t]],
    "tuple": lambda t: tuple[t, t],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_annotations_of_operators(kind: str, form: str) -> None:
    """What an operator may take and return, and how its schema says it."""

    def schemas(lib: Any) -> list[str | None]:
        annotation = FORMS[form](KINDS[kind](lib))
        found: list[str | None] = []
        for takes, gives in ((annotation, lib.Tensor), (lib.Tensor, annotation)):

            def operator(x: Any) -> Any: ...

            operator.__annotations__ = {"x": takes, "return": gives}
            try:
                found.append(lib.library.infer_schema(operator, mutates_args=()))
            except ValueError:
                found.append(None)
        return found

    assert schemas(ut) == schemas(torch)
