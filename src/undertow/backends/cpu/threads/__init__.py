"""The pool of native threads that run the blocks of a kernel."""
