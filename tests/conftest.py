"""Settings for all tests."""

import os

# Two workers with two BLAS threads each wait for one another; the matrices of the tests are small.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
