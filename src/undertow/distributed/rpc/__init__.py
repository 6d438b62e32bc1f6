"""`torch.distributed.rpc`: processes do not call each other here; the names refuse."""


def is_available() -> bool:
    """Whether processes can call each other: no.

    >>> import undertow as ut
    >>> ut.distributed.rpc.is_available()
    False
    """
    return False
