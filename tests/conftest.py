"""Settings for all tests."""

import os
import signal
import threading

# Two workers with two BLAS threads each wait for one another; the matrices of the tests are small.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


# Whoever runs the tests in the background may have them ignore these; tests that send them, and the processes they start, must not.
if threading.current_thread() is threading.main_thread():
    for name, handler in (("SIGINT", signal.default_int_handler), ("SIGHUP", signal.SIG_DFL)):
        if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) == signal.SIG_IGN:
            signal.signal(getattr(signal, name), handler)
