"""Noise that no copy repeats: forks, copies and pickles of a source."""

from __future__ import annotations

import copy
import os
import pickle

import numpy as np
import pytest

from fedpcs.errors import InvalidInput
from fedpcs.privacy.budget import Rho
from fedpcs.privacy.events import CLIENT_LEVEL, Event, Family
from fedpcs.privacy.noise import ExactNoise, NoiseSource, SecureNoise


@pytest.mark.parametrize("source", [SecureNoise(), ExactNoise()], ids=["secure", "exact"])
def test_a_forked_process_draws_other_noise(source: NoiseSource) -> None:
    source.draw(1)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, source.draw(4).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = np.frombuffer(os.read(reader, 32), dtype=np.float64)
    os.close(reader)
    os.close(writer)
    assert not np.array_equal(theirs, source.draw(4))
    assert np.abs(theirs).max() > 0.0


@pytest.mark.parametrize("source", [SecureNoise(), ExactNoise()], ids=["secure", "exact"])
@pytest.mark.parametrize("duplicate", [copy.deepcopy, pickle.dumps])
def test_a_source_cannot_be_copied(source: NoiseSource, duplicate) -> None:
    with pytest.raises(InvalidInput, match="cannot be copied"):
        duplicate(source)


def test_a_report_promises_nothing_for_noise_that_is_no_guarantee() -> None:
    for name, is_replayable in (("fast", True), ("fast", False), ("mine", False)):
        event = Event(Rho.of(0.5), CLIENT_LEVEL, name, Family.GAUSSIAN, is_replayable)
        assert "no guarantee" in event.promise
        assert "holds" not in event.promise
