"""Settings for all tests."""

import os
import signal
import threading
from pathlib import Path

# Two workers with two BLAS threads each wait for one another; the matrices of the tests are small.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


# Whoever runs the tests in the background may have them ignore these; tests that send them, and the processes they start, must not.
if threading.current_thread() is threading.main_thread():
    for name, handler in (("SIGINT", signal.default_int_handler), ("SIGHUP", signal.SIG_DFL)):
        if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) == signal.SIG_IGN:
            signal.signal(getattr(signal, name), handler)

LATER = ("planning", "report", "paper", "", "kernels", "models", "spanrl")
"""Folders whose tests come last, in this order: the quick ones in the end, so that both workers have something left to share."""


def pytest_collection_modifyitems(items):
    """Let two workers compile different kernels: each takes half of the tests, and the second half begins with what needs no learner."""
    place = {name: i + 1 for i, name in enumerate(LATER)}
    top = Path(__file__).parents[1]

    def folder(item):
        _, *within, _ = item.path.relative_to(top).parts
        return place.get(within[0] if within else "", 0)

    items.sort(key=folder)
