"""What a study's page promises: the numbers of its files, no claim beyond its seeds, and a page that stands alone.

Runs here are made up: their files are written by hand, and nothing is trained.
"""

from __future__ import annotations

import base64
import json
import re
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_records import a_manifest, a_result, a_round
from matplotlib.figure import Figure
from pages import Reader
from pages import read as read_page
from scipy import stats
from sealed_logs import read_log, write_log

from fedpcs.report import study_page
from fedpcs.report.figures import study as figures
from fedpcs.report.figures.study import accuracy, budgets, draws, epsilon, figure_modules, loss, noise, rewards
from fedpcs.report.page import NothingToDraw
from fedpcs.report.study import write_study
from fedpcs.report.study_page import headline
from fedpcs.report.tables import study_tables
from fedpcs.studies.comparison import MEASURES
from fedpcs.studies.promise import promise
from fedpcs.studies.results import Group, compared
from fedpcs.studies.study import read_study
from fedpcs.trial.config import RunConfig, as_toml, load_run_config
from fedpcs.trial.identity import alone
from fedpcs.trial.run_store import RunStore

ACCURACY = {"fedpcs": [0.80, 0.82, 0.84], "random": [0.79, 0.83, 0.81]}
NUM_DRAWN = len(figure_modules()) - 1  # runs that are made up have no ledgers


def configuration(*changes: str) -> RunConfig:
    small = ["seeds=[0, 1, 2]", "rounds=5", "data.num_clients=8", "sampling.sampling_ratio=0.25"]
    return load_run_config(None, [*small, *changes])


def spread(rng: np.random.Generator, scale: float) -> dict[str, float]:
    low, middle, high = np.sort(rng.uniform(0.1, 1.0, 3)) * scale
    return {"minimum": low, "median": middle, "maximum": high}


def lines(config: RunConfig, accuracy: float, rng: np.random.Generator, num_rounds: int) -> list[dict[str, Any]]:
    size = max(1, round(float(config.sampling.sampling_ratio) * config.data.num_clients))
    is_private = config.privacy.mode != "none"
    none = {"minimum": 0.0, "median": 0.0, "maximum": 0.0}
    found = []
    for index in range(num_rounds):
        cohort = np.sort(rng.choice(config.data.num_clients, size, replace=False)).tolist()
        progress = (index + 1) / config.rounds
        is_due = (index + 1) % config.evaluate_every == 0 or index + 1 == config.rounds
        made = a_round(
            index,
            attempt=1 if index == 1 else 0,
            cohort=cohort,
            heard=cohort,
            failures={"crash": 2} if index == 2 else {},
            refusals={"norm": 1} if index == 3 else {},
            realised_mean_budget=0.05 + 0.01 * index,
            cohort_budget=(0.06 + 0.01 * index) * size,
            update_norm=spread(rng, 5.0),
            noise_norm=spread(rng, 4.0) if is_private else none,
            accuracy=accuracy * progress**0.3 if is_due else None,
            loss=2.0 - accuracy * progress if is_due else None,
            spent={
                "rho": spread(rng, 0.2 * progress) if is_private else none,
                "epsilon": spread(rng, 3.0 * progress) if is_private else none,
                "num_clients": min(size * (index + 1), config.data.num_clients) if is_private else 0,
            },
        ).model_dump()
        made["draw"] |= {"evenness": 0.5 + 0.4 * progress, "largest_weight": 0.1 + 0.01 * index}
        found.append(made)
    return found


def result(config: RunConfig, sampler: str, seed: int, accuracy: float, rounds: list[dict[str, Any]]) -> dict[str, Any]:
    is_played = config.privacy.mode != "none" or sampler == "fedpcs"
    return a_result(
        sampler=sampler,
        seed=seed,
        accuracy=accuracy,
        loss=2.0 - accuracy,
        rounds=len(rounds),
        spent=rounds[-1]["spent"],
        paid=1000.0 + 100.0 * seed,
        game={
            "standing": "converged" if is_played else "not-played",
            "behaviour": config.game.behaviour,
            "exploitability": 0.0004 if is_played else None,
            "reward": [3.0 * index for index in range(config.rounds)],
            "mean_budget": [0.05 + 0.01 * index for index in range(config.rounds)],
        },
        num_test=1000,
        num_left=seed,
        label_counts=[[1 + (client + label) % 3 for label in range(4)] for client in range(config.data.num_clients)],
    ).model_dump()


@dataclass
class MadeUp:
    """A run's folder, and what was written to it."""

    store: RunStore
    trials: dict[tuple[str, int], dict[str, Any]]


def write_run(
    folder: Path,
    config: RunConfig,
    accuracy: dict[str, list[float]],
    *,
    stopped: dict[tuple[str, int], int] | None = None,
    manifest: dict[str, Any] | None = None,
    changes: dict[str, Any] | None = None,
) -> MadeUp:
    """Write a run; `stopped` says after how many rounds a trial stands still, `changes` goes into every result."""
    store, trials = RunStore(folder), {}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(as_toml(config), encoding="utf-8")
    data = {"name": "digits", "checksum": "c0ffee", "num_test": 1000, "evaluated_on": "test records"}
    about = a_manifest(config, **{"data": data, "libraries": {"fedpcs": "9.8.7"}, **(manifest or {})})
    (folder / "manifest.json").write_text(about.model_dump_json())
    for name, values in accuracy.items():
        for index, (seed, value) in enumerate(zip(config.seeds, values, strict=True)):
            num_rounds = (stopped or {}).get((name, seed), config.rounds)
            if num_rounds == 0:
                continue
            rounds = lines(config, value, np.random.default_rng([index, len(name)]), num_rounds)
            trial = store.trial(name, seed)
            alone_config = alone(config, name, seed)
            changed = {"data": data, "libraries": {"fedpcs": "9.8.7"}, **(manifest or {})}
            trial.begin(alone_config, a_manifest(alone_config, **changed))
            write_log(trial.log, rounds)
            if num_rounds == config.rounds:
                trials[name, seed] = {**result(config, name, seed, value, rounds), **(changes or {})}
                (trial.folder / "result.json").write_text(json.dumps(trials[name, seed]))
    return MadeUp(store, trials)


@pytest.fixture
def made(tmp_path: Path) -> MadeUp:
    return write_run(tmp_path / "run", configuration(), ACCURACY)


def group_of(made: MadeUp) -> Group:
    (found,) = read_study(made.store.folder).groups
    return found


def write_report(made: MadeUp) -> Path:
    return write_study(made.store.folder).report


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of the usual run, figures and all."""
    usual = write_run(tmp_path_factory.mktemp("usual"), configuration(), ACCURACY)
    return write_report(usual).read_text(encoding="utf-8")


@pytest.fixture
def without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave figures out, which take nearly all the time."""
    monkeypatch.setattr(study_page, "drawings_of", lambda *_: ())


def read(made: MadeUp) -> Reader:
    return read_page(write_report(made).read_text(encoding="utf-8"))


def cells(made: MadeUp) -> dict[str, dict[str, str]]:
    """Return every cell by its column's heading and its sampler."""
    return {
        heading: {row[0]: row[k] for row in table.rows}
        for table in study_tables([group_of(made)])
        for k, heading in enumerate(table.headings)
        if "against" not in table.headings and heading != "sampler"
    }


def plain(words: str) -> str:
    return words.replace("\N{NO-BREAK SPACE}", " ")


def drawings(made: MadeUp) -> dict[str, Figure | str]:
    """Return every figure by its topic, or why there is none."""
    found: dict[str, Figure | str] = {}
    for module in figure_modules():
        try:
            found[module.TOPIC] = module.draw(group_of(made))
        except NothingToDraw as reason:
            found[module.TOPIC] = str(reason)
    return found


def num_drawn(figures: dict[str, Figure | str]) -> int:
    return sum(isinstance(one, Figure) for one in figures.values())


def num_pictures(reader: Reader) -> int:
    return sum(name == "src" for _, name, _ in reader.attributes)


# The page


@pytest.mark.slow
def test_equal_runs_give_equal_bytes(made, page):
    assert write_report(made).read_bytes() == page.encode()


def test_every_figure_is_on_the_page(page):
    reader = Reader(page)
    assert reader.open == []
    assert num_pictures(reader) == NUM_DRAWN
    assert "could not be drawn" not in reader.text


def test_nothing_is_fetched_and_no_script_runs(page):
    reader = Reader(page)
    assert not {"script", "link", "iframe", "object", "embed", "base"} & set(reader.tags)
    assert not re.search(r"https?://|@import|url\(", page)
    for _, name, value in reader.attributes:
        assert not name.startswith("on")
        if name in ("src", "href", "srcset"):
            assert value.startswith("data:image/svg+xml;base64,")
            drawing = base64.b64decode(value.partition(",")[2]).decode()
            links = re.findall(r'href="([^"]*)"', drawing)
            assert all(link.startswith(("#", "data:image/png")) for link in links)
            assert "<script" not in drawing


def test_hostile_words_are_shown_and_not_obeyed(tmp_path, monkeypatch):
    hostile = '"><script>alert(1)<img src=x onerror=alert(1)>$x_{$:Own'
    mathematics = "$x_{$:Own"
    manifest = {
        "notes": [hostile],
        "libraries": {"torch": hostile},
        "forced": [{"at": "today", "differences": [hostile]}],
    }
    config = configuration("seeds=[0]", f"sampling.samplers={json.dumps(['fedpcs', hostile, mathematics])}")
    made = write_run(
        tmp_path,
        config,
        {"fedpcs": [0.5], hostile: [0.6], mathematics: [0.4]},
        manifest=manifest,
        changes={"disclosure": hostile},
    )
    monkeypatch.setattr(figures, "figure_modules", lambda: [accuracy, budgets, draws])
    reader = read(made)
    assert "script" not in reader.tags
    assert num_pictures(reader) == 3
    assert not any(name.startswith("on") for _, name, _ in reader.attributes)
    assert reader.text.count(hostile) >= 6


def test_every_key_of_the_configuration_and_manifest_is_there(page):
    text = Reader(page).text
    for name, value in configuration().model_dump(mode="json").items():
        assert name in text
        for key in value if isinstance(value, dict) else ():
            assert key in text
    for word in ("limit_epsilon", "not set", "9.8.7", "data.checksum", "c0ffee", "fedpcs run config.toml"):
        assert word in text


@pytest.mark.usefixtures("without_figures")
def test_a_forced_resume_and_a_note_are_said_at_the_top(tmp_path):
    forced = [{"at": "2026-01-01", "differences": ["torch was 2.6, is 2.7"]}]
    made = write_run(tmp_path, configuration(), ACCURACY, manifest={"forced": forced, "notes": ["trained on the CPU"]})
    text = read(made).text
    for words in ("not the result of one run: torch was 2.6, is 2.7", "trained on the CPU"):
        assert text.index(words) < text.index("What the samplers came to")


# Numbers


def test_cells_are_the_numbers_of_the_files(made):
    found = cells(made)
    trials = made.trials
    for name, values in ACCURACY.items():
        mean, deviation = 100 * statistics.fmean(values), 100 * statistics.stdev(values)
        assert plain(found["accuracy"][name]) == f"{mean:.1f} ± {deviation:.1f} %"
        spent = [trials[name, seed]["spent"]["epsilon"] for seed in (0, 1, 2)]
        exact = (
            min(one["minimum"] for one in spent),
            sum(one["median"] for one in spent) / 3,
            max(one["maximum"] for one in spent),
        )
        shown = [float(number) for number in found["ε spent"][name].split(" / ")]
        assert all(a <= b <= a * 1.011 for a, b in zip(exact, shown, strict=True))
        assert plain(found["loss"][name]) == f"{2 - statistics.fmean(values):.3f} ± {statistics.stdev(values):.3f}"
        assert plain(found["rewards"][name]) == "1,100 ± 100"
        assert found["exploitability"][name] == "0.04\N{NO-BREAK SPACE}%"
        assert found["clients played rationally"][name] == "yes: best responses"
        assert found["rounds"][name] == "5 of 5"
        assert found["left"][name] == "3"
        assert found["drop-outs"][name] == "6 (6 crash)"
        assert found["refusals"][name] == "3 (3 norm)"
        assert found["drawn again"][name] == "3"
        assert found["evenness"][name] == "0.90"
        assert found["weighed by"][name] == "hajek; at most 0.14"


def test_cells_reach_the_page_beside_their_headings(made, page):
    reader = Reader(page)
    for heading, by_sampler in cells(made).items():
        if heading != "seeds":  # two tables have them
            assert reader.cells[heading] == list(by_sampler.values())


def test_every_column_is_defined(made, page):
    text = Reader(page).text
    for table in study_tables([group_of(made)]):
        assert {"sampler", "against", *table.meanings} == {"against", *table.headings}
        assert all(meaning.endswith(".") and meaning in text for meaning in table.meanings.values())


@pytest.mark.usefixtures("without_figures")
def test_a_private_selection_is_said(tmp_path):
    label = "selection reads label_counts: private, and not part of the privacy claimed"
    made = write_run(tmp_path, configuration(), ACCURACY, changes={"disclosure": label})
    assert read(made).text.count(label) == 4  # for each sampler beside the promise, and in the table


# The finding


def test_what_is_sure_is_the_top_of_the_page(made, page):
    """Pay and ε are made up to be the same; accuracies are within noise of each other."""
    (found,) = compared(group_of(made))
    twin = stats.ttest_rel(ACCURACY["fedpcs"], ACCURACY["random"]).confidence_interval(0.95)
    accuracy = found.of("accuracy")
    assert (accuracy.low, accuracy.high) == pytest.approx((twin.low, twin.high))
    assert twin.low < 0 < twin.high
    said = headline([group_of(made)])
    assert said == ("No sure difference between fedpcs and random: ε and pay are equal, accuracy cannot be told apart.")
    assert f"<h1>{said}</h1>" in page


def test_the_three_differences_are_the_first_table(made, page):
    """Every word of the table is on the page, before any other table."""
    (found,) = compared(group_of(made))
    first = study_tables([group_of(made)])[0]
    about = ("accuracy", "ε of the median client", "pay")
    assert first.headings == ("sampler", "against", *(f"difference in {name}" for name in about), "seeds")
    assert first.rows == (("fedpcs", "random", *(found.text(measure) for measure in MEASURES), "3"),)
    assert page.index(first.rows[0][2]) < page.index("What the samplers came to")


@pytest.mark.parametrize(("shift", "words"), [(0.1, "more accurate"), (-0.1, "less accurate")])
def test_a_difference_the_seeds_show_is_claimed(tmp_path, shift, words):
    shifted = [0.79 + shift, 0.832 + shift, 0.809 + shift]
    made = write_run(tmp_path, configuration(), {"fedpcs": shifted, "random": ACCURACY["random"]})
    assert f" points {words} than random (" in plain(headline([group_of(made)]))


def test_every_other_sampler_has_its_row_and_intervals_hold_together(tmp_path):
    names = ["aocs", "random", "fedpcs", "my.module:Mine"]
    accuracy = {name: [0.5 + 0.003 * k, 0.52 - 0.002 * k, 0.51] for k, name in enumerate(names)}
    config = configuration(f"sampling.samplers={json.dumps(names)}")
    group = group_of(write_run(tmp_path, config, accuracy))
    for found in compared(group):
        twin = stats.ttest_rel(accuracy["fedpcs"], accuracy[found.other]).confidence_interval(1 - 0.05 / 3)
        assert (found.of("accuracy").low, found.of("accuracy").high) == pytest.approx((twin.low, twin.high))
    assert [row[:2] for row in study_tables([group])[0].rows] == [("fedpcs", name) for name in (*names[:2], names[3])]
    assert len(headline([group]).split()) <= 25


def test_a_sampler_alone_is_compared_with_nothing(tmp_path):
    config = configuration("seeds=[4]", 'sampling.samplers=["fedpcs"]')
    made = write_run(tmp_path, config, {"fedpcs": [0.5]})
    assert headline([group_of(made)]) == "fedpcs ends at 50.0\N{NO-BREAK SPACE}% accuracy over one seed."
    assert "difference in pay" not in cells(made)
    assert num_drawn(drawings(made)) == NUM_DRAWN


# Promises


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["privacy.mode=none"], "No privacy"),
        (["privacy.mode=record"], "when one of its records is replaced."),
        (["privacy.mode=record"], "records is public. This run is a simulation: the mechanism is proved"),
        (["privacy.mode=client"], "This run is a simulation: the mechanism is proved, but its noise is seeded"),
        (["privacy.mode=record", "privacy.noise=secure"], "The number of its records is public. The guarantee holds"),
        (["privacy.mode=client", "privacy.noise=exact"], "for any two data sets of the same size that it could hold."),
        (["privacy.mode=client", "privacy.noise=exact"], "The number of its records is public. The guarantee holds"),
        (
            ["privacy.mode=paper", "privacy.noise=secure"],
            "No guarantee: the paper's calibration is not proven for more than one local step",
        ),
        (["privacy.mode=paper"], "Its noise is seeded (noise = fast) besides: a simulation."),
    ],
)
def test_no_more_is_promised_than_holds(changes, words):
    said = promise(configuration(*changes).privacy)
    assert words in said
    is_kept = {"privacy.noise=secure", "privacy.noise=exact"} & set(changes) and "privacy.mode=paper" not in changes
    assert ("The guarantee holds" in said) == bool(is_kept)


# Runs of every kind


@pytest.mark.usefixtures("without_figures")
def test_an_unfinished_run_says_so_and_shows_what_is_there(tmp_path):
    stopped = {("fedpcs", 2): 2, ("random", 1): 3, ("random", 2): 0}
    made = write_run(tmp_path, configuration(), ACCURACY, stopped=stopped)
    words = plain(headline([group_of(made)]))
    assert words == "One seed cannot tell fedpcs from random."
    assert "Not finished: 3 of 6 trials are done;" in read(made).text
    found = cells(made)
    assert plain(found["accuracy"]["fedpcs"]) == "81.0 ± 1.4 %"
    assert found["rounds"] == {"fedpcs": "2–5 of 5", "random": "3–5 of 5"}


def test_a_trial_just_begun_does_not_cut_the_means_of_the_others_short(tmp_path):
    made = write_run(tmp_path, configuration(), ACCURACY, stopped={("fedpcs", 2): 1, ("random", 1): 3})
    assert num_drawn(drawings(made)) == NUM_DRAWN
    expected = np.mean(ACCURACY["fedpcs"][:2]) * (np.arange(1, 6) / 5) ** 0.3
    np.testing.assert_allclose(drawn(accuracy.draw(group_of(made)))["fedpcs"], expected)


def test_a_run_that_has_only_begun_has_a_page(tmp_path):
    nothing = {(name, seed): 0 for name in ACCURACY for seed in (0, 1, 2)}
    reader = read(write_run(tmp_path / "none", configuration(), ACCURACY, stopped=nothing))
    assert num_pictures(reader) == 0
    assert "could not be drawn" not in reader.text
    assert "No trial is done yet." in reader.text
    begun = write_run(tmp_path / "one", configuration(), ACCURACY, stopped={**nothing, ("fedpcs", 0): 1})
    assert num_drawn(drawings(begun)) == NUM_DRAWN - 2  # who holds what, and rewards, are known when a trial is done
    assert set(cells(begun)["accuracy"].values()) == {"not yet"}


def test_a_run_without_privacy_spends_nothing(tmp_path):
    made = write_run(tmp_path, configuration("privacy.mode=none"), ACCURACY)
    found, figures = cells(made), drawings(made)
    assert found["ρ spent"] == {"fedpcs": "no noise", "random": "no noise"}
    assert found["exploitability"]["random"] == "not played"
    assert found["clients played rationally"]["random"] == "no game: nothing depends on budgets"
    assert "no budget is charged" in figures["Privacy spent over rounds"]
    assert "no noise" in figures["Noise in updates"]
    assert num_drawn(figures) == NUM_DRAWN - 2


def test_a_run_whose_clients_could_afford_nothing_has_figures_of_the_rest(tmp_path):
    made = write_run(tmp_path, configuration(), ACCURACY, changes={"ended_by": "budget"})
    trial = made.store.trial("fedpcs", 0)
    trial.log.write_text("")
    trial.finish(a_result(**{**made.trials["fedpcs", 0], "rounds": 0}))
    assert cells(made)["rounds"] == {
        "fedpcs": "0–5 of 5; 3 ended as nobody could afford another round",
        "random": "5 of 5; 3 ended as nobody could afford another round",
    }
    assert num_drawn(drawings(made)) == NUM_DRAWN


def test_a_game_solved_anew_is_told(tmp_path):
    made = write_run(tmp_path, configuration(), ACCURACY)
    log = made.store.trial("fedpcs", 0).log
    rounds = read_log(log)
    rounds[1] |= {"replanned": "solved anew", "exploitability": 0.002}
    rounds[2] |= {"replanned": "kept the last certified schedule", "because": "no equilibrium"}
    write_log(log, rounds)
    said = plain(cells(made)["exploitability"]["fedpcs"])
    assert said == "0.2 %; solved anew once; not solved once, the last schedule kept"


def test_many_samplers_rounds_and_clients_fit(tmp_path):
    names = ["fedpcs", "random", *(f"my.module:Mine{k}" for k in range(7))]
    config = configuration(
        "seeds=[0]",
        "rounds=410",
        "evaluate_every=50",
        "data.num_clients=1200",
        "sampling.sampling_ratio=0.01",
        f"sampling.samplers={json.dumps(names)}",
    )
    unknown = {"label_counts": None, "times_drawn": None}
    made = write_run(tmp_path, config, {name: [0.5 + 0.01 * k] for k, name in enumerate(names)}, changes=unknown)
    figures = drawings(made)
    assert "too many clients to keep it" in figures["Who holds what"]
    assert num_drawn(figures) == NUM_DRAWN - 1


def test_a_figure_that_breaks_leaves_the_rest(made, monkeypatch):
    def broken(_: object) -> None:
        raise ZeroDivisionError("a <b>bad</b> number")

    monkeypatch.setattr(figures, "figure_modules", lambda: [loss, accuracy])
    monkeypatch.setattr(loss, "draw", broken)
    reader = read(made)
    assert num_pictures(reader) == 1
    assert "Loss over rounds" in reader.text
    assert "This figure could not be drawn (ZeroDivisionError: a <b>bad</b> number)." in reader.text
    assert "b" not in reader.tags


# Figures


def drawn(figure: Any) -> dict[str, np.ndarray]:
    return {str(line.get_label()): np.asarray(line.get_ydata()) for line in figure.axes[0].get_lines()}


def test_curves_are_means_over_seeds_where_all_were_evaluated(tmp_path):
    made = write_run(tmp_path, configuration("evaluate_every=2"), ACCURACY)
    line = next(one for one in accuracy.draw(group_of(made)).axes[0].get_lines() if one.get_label() == "fedpcs")
    np.testing.assert_array_equal(line.get_xdata(), [1, 3, 4])
    expected = np.mean(ACCURACY["fedpcs"]) * (np.array([2, 4, 5]) / 5) ** 0.3
    np.testing.assert_allclose(line.get_ydata(), expected)


def test_budgets_stand_beside_what_was_announced(made):
    for path in made.store.folder.glob("trials/*/result.json"):
        value = json.loads(path.read_text())
        value["game"]["mean_budget"] = [0.1] * 5
        path.write_text(json.dumps(value))
    paths = drawn(budgets.draw(group_of(made)))
    assert len(paths) == 3  # both samplers' clients play the same game
    np.testing.assert_allclose(paths["all samplers"], [0.05, 0.06, 0.07, 0.08, 0.09])
    np.testing.assert_allclose(paths["all samplers, drawn"], [0.06, 0.07, 0.08, 0.09, 0.1])
    np.testing.assert_array_equal(paths["all samplers, announced"], [0.1] * 5)
    np.testing.assert_allclose(drawn(rewards.draw(group_of(made)))["all samplers"], [0, 3, 6, 9, 12])


def test_the_greatest_spending_drawn_is_that_of_the_logs(made):
    greatest = drawn(epsilon.draw(group_of(made)))["fedpcs"]
    logs = [made.store.trial("fedpcs", seed).rounds() for seed in (0, 1, 2)]
    np.testing.assert_array_equal(
        greatest, np.max([[line.spent.epsilon.maximum for line in log] for log in logs], axis=0)
    )


def test_noise_is_a_share_of_the_update(made):
    logs = [made.store.trial("fedpcs", seed).rounds() for seed in (0, 1, 2)]
    shares = [[line.noise_norm.median / line.update_norm.median for line in log] for log in logs]
    np.testing.assert_allclose(drawn(noise.draw(group_of(made)))["fedpcs"], np.mean(shares, axis=0))


def test_clients_are_ranked_by_the_share_of_rounds_they_were_drawn_in(tmp_path):
    """Counted from the log, as the result is silent."""
    made = write_run(tmp_path, configuration("seeds=[0]", 'sampling.samplers=["random"]'), {"random": [0.5]})
    cohorts = [client for line in group_of(made).series[0].trials[0].rounds for client in line.cohort]
    shares = sorted((cohorts.count(client) / 5 for client in range(8)), reverse=True)
    np.testing.assert_allclose(draws.draw(group_of(made)).axes[0].get_lines()[0].get_ydata(), shares)


def test_what_has_no_numbers_is_not_drawn(tmp_path):
    nothing = {(name, seed): 0 for name in ACCURACY for seed in (0, 1, 2)}
    made = write_run(tmp_path, configuration(), ACCURACY, stopped={**nothing, ("fedpcs", 0): 1})
    made.store.trial("fedpcs", 0).log.write_text("")
    for module in figure_modules():
        with pytest.raises(NothingToDraw):
            module.draw(group_of(made))
