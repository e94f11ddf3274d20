"""What a client says of its size goes so far and no further, on the server and on the client."""

import numpy as np
import pytest
from toy_clients import SIZES, answer, linear, side_of, task, toy_data

from fedpcs.deploy.roster import size_cap
from fedpcs.errors import InvalidInput
from fedpcs.game.population import MOST_SAMPLES
from fedpcs.learning.client import ClientPlan
from fedpcs.learning.client_data import made_data
from fedpcs.learning.noise_plan import noise_power


@pytest.mark.parametrize("lie", [10**3, 2 * 10**9, 2**32, 10**12])
@pytest.mark.parametrize("honest", [[500], [500, 700], [40, 500, 9000]])
def test_fewer_liars_than_honest_clients_never_set_the_cap(honest, lie):
    sizes = [*honest, *[lie] * (len(honest) - 1)]
    assert size_cap(sizes) <= 100 * max(honest)
    assert size_cap(sizes) >= 100 * min(honest)


def test_a_client_trains_on_its_first_records_if_no_more_are_allowed():
    """As a client that has no others: same update, same number of records."""
    allowed, model = 5, linear()
    plan = ClientPlan(mode="record", batch_size=2)
    capped = answer(side_of(plan, model), model, task(0, budget=0.5, max_samples=allowed))
    small = made_data(lambda client: tuple(part[:allowed] for part in toy_data().records(client)), [5] * 4, None, 3)
    alone = answer(side_of(plan, model, small), model, task(0, budget=0.5))
    assert capped.num_samples == alone.num_samples == allowed
    assert capped.values.tobytes() == alone.values.tobytes()
    assert answer(side_of(plan, model), model, task(0, budget=0.5, max_samples=10**12)).num_samples == SIZES[0]


@pytest.mark.parametrize("bad", [0, -1, True, 2.5, "5"])
def test_a_server_cannot_ask_for_no_records(bad):
    model = linear()
    with pytest.raises(InvalidInput, match="max_samples"):
        answer(side_of(ClientPlan(), model), model, task(0, max_samples=bad))


@pytest.mark.parametrize("mode", ["paper", "client", "record"])
@pytest.mark.parametrize("batch_size", [None, 32])
def test_the_noise_of_huge_sizes_is_planned_without_overflow(mode, batch_size):
    """Squares of 2³² and more are no whole numbers a computer holds."""
    plan = ClientPlan(mode=mode, batch_size=batch_size)
    sizes = np.array([2**31, 2**32, 2**33, MOST_SAMPLES])
    found = noise_power(plan, np.full(4, 0.5), sizes, 100)
    expected = np.array([noise_power(plan, np.full(1, 0.5), np.array([float(n)]), 100)[0] for n in sizes])
    assert np.isfinite(found).all()
    assert (found > 0.0).all()
    np.testing.assert_allclose(found, expected)
