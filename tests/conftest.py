"""How many processes tests are dealt to, and how many threads each has."""

import os

# Small arrays are slower on two threads than on one, and there is a process for every core. Before torch is imported;
# processes that tests start inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_xdist_auto_num_workers() -> int:
    """One more than cores: many tests wait for processes that they have started."""
    return (os.cpu_count() or 1) + 1
