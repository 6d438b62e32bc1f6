"""How a device runs a kernel form, knowing no op and no gradient."""
