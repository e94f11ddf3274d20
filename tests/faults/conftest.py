"""One server of `fedpcs` processes for all fault tests of a session: it takes longer to start than a run."""

import pytest
from killed_runs import serving


@pytest.fixture(scope="session")
def commands(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("commands")) as found:
        yield found
