"""What a run and a sweep say of themselves where there is no terminal: a line at the start, and one each minute."""

import contextlib
import io
import time

import pytest
from made_records import a_round

from fedpcs.studies.grid import make_cells, make_sweep_config
from fedpcs.studies.progress import SweepDisplay
from fedpcs.trial import progress
from fedpcs.trial.config import make_run_config
from fedpcs.trial.progress import Display

EPSILON = {"minimum": 0.5, "median": 1.0, "maximum": 1.5}
RECORD = a_round(0, accuracy=0.5, spent={"num_clients": 3, "rho": EPSILON, "epsilon": EPSILON})


@pytest.fixture
def err(monkeypatch):
    """Standard error of a pipe, with a minute that lasts a hundredth of a second."""
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.01)
    return io.StringIO()


def wait_for(words, err):
    late = time.monotonic() + 20.0
    while words not in err.getvalue():
        assert time.monotonic() < late, err.getvalue()
        time.sleep(0.005)


def test_a_piped_run_says_where_it_is_and_how_long_it_will_take(err):
    config = make_run_config({"rounds": 10, "seeds": [0, 1], "sampling": {"samplers": ["random"]}})
    with contextlib.redirect_stderr(err), Display(config) as display:
        display.begin("random, seed 0", 10, 2)
        assert err.getvalue().startswith("20 rounds in all")
        wait_for("random, seed 0: round 2 of 10\n", err)
        for _ in range(3):
            display.round_done(RECORD, 60.0)
        wait_for("random, seed 0: round 5 of 10, accuracy 50", err)
        wait_for("about 15 min left", err)  # 15 rounds, a minute each
    said = err.getvalue()
    time.sleep(0.05)
    assert err.getvalue() == said, "nothing is said after the end"


def test_a_piped_sweep_says_how_many_cells_are_done_and_where_it_is(err):
    cells = make_cells(make_sweep_config({"samplers": ["random"], "seeds": [0, 1], "set": {"rounds": 10}}))
    with contextlib.redirect_stderr(err), SweepDisplay(cells, {}) as display:
        display.moved(cells[:1], [(cells[1], 4)])
        wait_for("1/2 cells, …; random, seed 1, round 4 of 10\n", err)
        display.moved(cells, [])
        wait_for(" in all\n", err)
    assert "2/2 cells, " in err.getvalue()
