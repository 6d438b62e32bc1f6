"""Whether processes call each other: they do not."""


def _is_current_rpc_agent_set() -> bool:
    """Whether this process takes calls: no."""
    return False
