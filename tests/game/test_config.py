"""A game from TOML: the whole contract of keys, and one clear line for every mistake."""

import pytest

from fedpcs.errors import InvalidInput
from fedpcs.game.assemble import game_of_file
from fedpcs.game.config import load_game_file


def load(tmp_path, text):
    file = tmp_path / "game.toml"
    file.write_text(text)
    config = load_game_file(file)
    return config, game_of_file(config, tmp_path)


def test_no_file_is_the_default_game():
    game = game_of_file(load_game_file(None))
    assert (game.num_clients, game.last_round, game.cohort_size[0]) == (100, 30, 20)
    assert game.population.initial_budget.mean() == pytest.approx(6.3763, abs=1e-4)


def test_every_key_is_read(tmp_path):
    config, game = load(
        tmp_path,
        """
        num_clients = 12
        last_round = 4
        sampling_ratio = 0.5
        budget_bounds = [0.5, 50]
        accuracy_priority = 0.3
        accuracy_scale = 500
        reward = [1, 2.5, 3, 4, 5]
        reward_max = 40
        response = "costate"
        selection = "budget-blind"
        tolerance = 1e-4
        budget_cap = [30, 29, 28, 27, 26]
        [population]
        seed = 3
        """,
    )
    assert (game.num_clients, game.last_round, game.cohort_size.tolist()) == (12, 4, [6.0] * 5)
    assert game.budget_bounds == (0.5, 50.0)
    assert (game.accuracy_priority, game.accuracy_scale, game.reward_max) == (0.3, 500.0, 40.0)
    assert (config.response, game.selection, config.tolerance) == ("costate", "budget-blind", 1e-4)
    assert config.budget_cap == [30, 29, 28, 27, 26]
    assert game.reward_path(config.reward).tolist() == [1.0, 2.5, 3.0, 4.0, 5.0]


def test_lists_are_the_population(tmp_path):
    text = (
        "cohort_size = 1\n[population]\nprivacy_aversion = [0.2, 0.4]\ninitial_budget = [1, 2.5]\nnum_samples = [5, 6]"
    )
    _, game = load(tmp_path, text)
    assert game.population.initial_budget.tolist() == [1.0, 2.5]
    assert game.population.num_samples.tolist() == [5.0, 6.0]


def test_a_csv_beside_the_game_is_found(tmp_path):
    (tmp_path / "people.csv").write_text("initial_budget,privacy_aversion\n1.5,0.2\n\n2.5,0.4\n")
    _, game = load(tmp_path, "cohort_size = 2\n[population]\nfile = 'people.csv'")
    assert game.population.initial_budget.tolist() == [1.5, 2.5]
    assert game.population.privacy_aversion.tolist() == [0.2, 0.4]


def test_weights_make_a_histogram(tmp_path):
    (tmp_path / "types.csv").write_text("privacy_aversion,initial_budget,weight\n0.2,1.5,3\n0.4,2.5,1\n")
    _, game = load(tmp_path, "num_clients = 1000\n[population]\nfile = 'types.csv'")
    assert game.num_clients == 1000
    assert game.population.client_count.tolist() == [750.0, 250.0]


def test_bins_make_the_density(tmp_path):
    _, game = load(tmp_path, "num_clients = 1000000\n[population]\nbins = [8, 4]")
    assert game.population.num_types == 32


MISTAKES = {
    "rewrd = 3": "unknown key 'rewrd'. Did you mean 'reward'? Keys there: accuracy_priority",
    "[population]\nsed = 3": "unknown key 'population.sed'. Did you mean 'population.seed'? Keys there: bins",
    "last_round = 2.5": "last_round must be a whole number, got 2.5",
    "last_round = '3'": "last_round must be a whole number, got '3'",
    "last_round = 0": "last_round must be greater than or equal to 1, got 0",
    "last_round = true": "last_round must be a whole number, got True",
    "num_clients = -5": "num_clients must be greater than or equal to 1, got -5",
    "cohort_size = 101": "cohort_size must be a whole number in [1, 100], got 101",
    "sampling_ratio = 1.5": "sampling_ratio must be less than or equal to 1, got 1.5",
    "sampling_ratio = nan": "sampling_ratio must be a finite number, got nan",
    "cohort_size = 3\nsampling_ratio = 0.1": "takes cohort_size or sampling_ratio, got both",
    "budget_bounds = [12, 0.01]": "budget_bounds must be two numbers above 0 that rise, got [12, 0.01]",
    "budget_bounds = [1]": "budget_bounds must be a list with at least 2 in it",
    "budget_bounds = [nan, 2]": "budget_bounds.0 must be a finite number, got nan",
    "accuracy_priority = 2": "accuracy_priority must be less than 1, got 2",
    "accuracy_scale = -1": "accuracy_scale must be greater than 0, got -1",
    "response = 'best'": "response must be 'exact', 'costate', 'paper' or 'paper-backward', got 'best'",
    "selection = 1": "selection must be 'budget-aware' or 'budget-blind', got 1",
    "reward = 'auto'": "'commitment' or 'per-round', got 'auto'",
    "x": "cannot be read as TOML",
    "accuracy_scale = 1" + "0" * 400: "accuracy_scale must be a number or a whole number below 1e308",
    "accuracy_scale = 1e308": "accuracy_scale must be less than or equal to 1000000000000",
    "last_round = 1000000000000": "last_round must be less than or equal to 100000",
    '[population]\nfile = "a\\u0000b.csv"': "is not a UTF-8 text file",
    "[population]\nfile = 'none.csv'": "none.csv cannot be read: No such file",
    "[population]\nseed = 1\nbins = [2, 2]": "population takes one source, got seed and bins",
    "[population]\nprivacy_aversion = [0.5]": "needs both privacy_aversion and initial_budget",
    "[population]\nprivacy_aversion = [0.5, nan]\ninitial_budget = [1, 2]": "privacy_aversion.1 must be a finite",
    "[population]\nprivacy_aversion = [0.5]\ninitial_budget = [1, 2]": "initial_budget must have 1 entries, got 2",
    "[population]\nprivacy_aversion = [0.5]\ninitial_budget = [13]": "initial_budget[0] must be a number in [0.01, 12]",
    "num_clients = 3\n[population]\nprivacy_aversion = [0.5]\ninitial_budget = [1]": "must equal the 1 clients listed",
    "[population]\nprivacy_aversion = [0.5]\ninitial_budget = [1]\nweight = [2]": "num_clients must be given",
    "[population]\nweight = [2]": "num_samples and weight go with the lists",
    "[population]\nbins = [3]": "population.bins must be a list with at least 2 in it",
    "[population]\nbins = [0, 3]": "population.bins.0 must be greater than or equal to 1, got 0",
}


@pytest.mark.parametrize(("text", "words"), MISTAKES.items())
def test_each_mistake_gets_one_clear_line(tmp_path, text, words):
    with pytest.raises(InvalidInput) as caught:
        load(tmp_path, text)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


CSV_MISTAKES = {
    "privacy_aversion,initial_budget\n0.5,1\n0.5,abc\n": "line 3: initial_budget must be a number, got 'abc'",
    "privacy_aversion,initial_budget\n0.5,nan\n": "line 2: initial_budget must be",
    "privacy_aversion,initial_budget\n1.5,1\n": "line 2: privacy_aversion must be less than or equal to 0.999",
    "privacy_aversion,initial_budget\n0.5\n": "line 2 must have 2 values like the header, got 1",
    "privacy_aversion,initial_budget\n": "no clients below the header",
    "aversion,initial_budget\n0.5,1\n": "line 1 must name the columns",
    "privacy_aversion,initial_budget,initial_budget\n0.5,1,2\n": "line 1 must name the columns",
    "privacy_aversion,initial_budget\n0.5," + "1" * 200_000: "is not CSV",
    "": "line 1 must name the columns",
}


@pytest.mark.parametrize(("text", "words"), CSV_MISTAKES.items())
def test_a_bad_row_is_named_by_its_line(tmp_path, text, words):
    (tmp_path / "people.csv").write_text(text)
    with pytest.raises(InvalidInput) as caught:
        load(tmp_path, "[population]\nfile = 'people.csv'")
    assert words in str(caught.value)


def test_a_binary_csv_is_refused(tmp_path):
    (tmp_path / "people.csv").write_bytes(bytes(range(128, 256)))
    with pytest.raises(InvalidInput, match="not a UTF-8 text file"):
        load(tmp_path, "[population]\nfile = 'people.csv'")


def test_a_missing_game_file_is_named(tmp_path):
    with pytest.raises(InvalidInput, match="no such file"):
        load_game_file(tmp_path / "absent.toml")


def test_a_folder_is_not_a_game(tmp_path):
    with pytest.raises(InvalidInput, match=r"is a folder\. Give the path of a game"):
        load_game_file(tmp_path)
