"""Which vector instructions torch's generated C++ would use: there is none."""


class VecISA:
    """Vector instructions."""

    def __bool__(self) -> bool:
        return False


class InvalidVecISA(VecISA):
    """None of them."""


invalid_vec_isa = InvalidVecISA()


def pick_vec_isa() -> VecISA:
    """The best instructions for C++ that torch generates: none is generated.

    >>> bool(pick_vec_isa())
    False
    """
    return invalid_vec_isa


def valid_vec_isa_list() -> list[VecISA]:
    """All of them."""
    return []
