"""A sweep run, killed, run again: the same table; one cell's failure costs the others nothing."""

import csv
import html
import json
import multiprocessing
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import fedpcs
from scipy import stats
from typer.testing import CliRunner

from fedpcs._files import locked
from fedpcs.cli import app, study_table
from fedpcs.errors import CorruptFile, FedpcsError, InvalidInput, NotConverged, Unfinished
from fedpcs.exhibits import exhibit, reproduce
from fedpcs.exhibits.exhibit import Exhibit, Gathered
from fedpcs.privacy import Event, PrivacyLedger, ReleaseKey, Rho
from fedpcs.privacy.events import CLIENT_LEVEL, Family
from fedpcs.privacy.modes import MODES
from fedpcs.privacy.standing import standing_sentence
from fedpcs.report import study
from fedpcs.report.export import export_csv
from fedpcs.report.figures.study.spent import draw as spent_figure
from fedpcs.report.figures.study.spent import epsilon_of
from fedpcs.report.study_page import comparison_page
from fedpcs.report.tables import study_tables
from fedpcs.studies import compare
from fedpcs.studies import pool as sweep
from fedpcs.studies.cell_process import run_cell
from fedpcs.studies.cell_store import CellStore
from fedpcs.studies.estimate import estimate
from fedpcs.studies.grid import make_cells, make_sweep_config
from fedpcs.studies.plan import SweepPlan, plan_sweep
from fedpcs.studies.pool import run_cells, solve_games
from fedpcs.studies.results import Study, against, best_of, group
from fedpcs.trial import schedule, session
from fedpcs.trial.assemble import load_for
from fedpcs.trial.config import as_toml, load_run_config

TINY = {
    "base": "default",
    "samplers": ["fedpcs", "random"],
    "seeds": [0, 1],
    "set": {
        "rounds": 3,
        "data.num_clients": 8,
        "game.reward": 20.0,
        "privacy.mode": "none",
        "sampling.rule": "hajek",
        "sampling.sampling_ratio": 0.5,
    },
}


def with_gain(one, gain):
    """A trial's result with another exploitability."""
    return one.result.model_copy(update={"game": one.result.game.model_copy(update={"exploitability": gain})})


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """(cells, store) of a sweep that was left alone."""
    store = CellStore(tmp_path_factory.mktemp("sweep"))
    cells = make_cells(make_sweep_config(TINY))
    assert run_cells(cells, store) == {}
    return cells, store


def accuracies(cells, store):
    return [store.read(cell).result.accuracy for cell in cells]


def test_cells_come_to_what_runs_of_their_own_come_to(whole, tmp_path):
    from fedpcs.trial.run import start_run

    cells, store = whole
    alone = start_run(cells[0].config, tmp_path / "alone")
    trial = alone.result.trials[0]
    assert trial == store.read(cells[0]).result
    assert len(store.read(cells[0]).rounds) == 3
    assert store.read(cells[0]).seconds > 0.0


def test_the_terminal_says_what_a_sweep_s_runs_may_claim(whole, tmp_path, capsys):
    """No privacy, and what else a reader must know: clients are paid all the same."""
    _, store = whole
    compare.remember_sweep(tmp_path, make_sweep_config(TINY), store.folder, "")
    study_table.print_sweep(study.write_study(tmp_path), as_json=False)
    said = capsys.readouterr().out.splitlines()
    assert standing_sentence(MODES["none"], "fast") in said
    assert any(line.startswith("Rewards are paid all the same") for line in said)


def test_done_cells_are_reused_by_other_sweeps(whole, monkeypatch):
    cells, store = whole
    monkeypatch.setattr(sweep, "_start", lambda *_: pytest.fail("a cell was run again"))
    other = make_sweep_config({**TINY, "name": "another", "seeds": [1]})
    assert run_cells(make_cells(other), store) == {}
    assert plan_sweep(cells, store, None).num_done == len(cells)


def test_groups_pair_seeds_and_name_a_winner_only_when_intervals_do(whole):
    cells, store = whole
    (found,) = group([store.read(cell) for cell in cells])
    assert [series.sampler for series in found.series] == ["fedpcs", "random"]
    first, second = found.series
    assert against(first, second).mean == pytest.approx(float((first.accuracy - second.accuracy).mean()))
    assert (best_of(found) is not None) == (against(first, second).is_above or against(second, first).is_above)


@pytest.mark.slow
def test_a_cell_that_fails_costs_the_others_nothing_and_is_tried_again(tmp_path):
    broken = make_cells(make_sweep_config({**TINY, "seeds": [0], "samplers": ["random"]}))
    other = make_cells(
        make_sweep_config(
            {**TINY, "seeds": [0], "samplers": ["random"], "set": {**TINY["set"], "engine.device": "cuda"}}
        )
    )
    store = CellStore(tmp_path)
    failures = run_cells([*other, *broken], store)
    assert list(failures) == [other[0].key]
    assert "finds no such device" in failures[other[0].key]
    assert store.is_done(broken[0])
    assert store.failure_of(other[0]) == failures[other[0].key]
    assert list(run_cells(other, store)) == [other[0].key]


def test_a_cell_that_other_libraries_began_is_begun_again(whole, tmp_path):
    cells, store = whole
    copy = copied(store, tmp_path, cells[:1])
    folder = copy.trial_of(cells[0]).folder
    harm(copy, cells[0], "manifest.json", lambda text: json.dumps(json.loads(text) | {"libraries": {"torch": "0.1"}}))
    (folder / "result.json").unlink()
    copy.trial_of(cells[0]).log.write_text("of other libraries")
    run_cell(folder, cells[0].config, None, copy.games)
    assert copy.read(cells[0]).result == store.read(cells[0]).result
    assert copy.read(cells[0]).manifest.libraries == store.read(cells[0]).manifest.libraries


def test_a_cell_goes_on_with_data_that_were_moved(whole, tmp_path, monkeypatch):
    cells, store = whole
    copy = copied(store, tmp_path, cells[:1])
    folder = copy.trial_of(cells[0]).folder
    (folder / "result.json").unlink()
    looked = []

    def loaded(config, data_dir):
        looked.append(data_dir)
        return load_for(config, data_dir)

    monkeypatch.setattr(session, "load_for", loaded)
    run_cell(folder, cells[0].config, tmp_path / "moved", copy.games)
    assert looked == [tmp_path / "moved"]
    assert accuracies(cells[:1], copy) == accuracies(cells[:1], store)


def test_every_cell_keeps_its_own_reason(tmp_path):
    first, second = make_cells(make_sweep_config({**TINY, "seeds": [0]}))
    store = CellStore(tmp_path)
    store.fail(first, "one reason")
    store.fail(second, "another")
    assert (store.failure_of(first), store.failure_of(second)) == ("one reason", "another")
    store.forget_failure(first)
    assert (store.failure_of(first), store.failure_of(second)) == ("", "another")


def test_games_are_solved_once(tmp_path):
    said = []

    values = {**TINY, "samplers": ["fedpcs", "random", "delta"], "set": {**TINY["set"], "privacy.mode": "paper"}}
    solve_games(make_cells(make_sweep_config(values)), CellStore(tmp_path), said.append)
    assert len(said) == 2  # budget-aware, budget-blind


@pytest.mark.slow
def test_a_game_without_an_equilibrium_costs_only_those_who_play_it(tmp_path, monkeypatch):
    solved = schedule.make_schedule

    def unsolved(config, sampler):
        if "budget" in sampler.reads:
            raise NotConverged("no equilibrium", None)
        return solved(config, sampler)

    monkeypatch.setattr(schedule, "make_schedule", unsolved)
    values = {**TINY, "seeds": [0], "set": {**TINY["set"], "privacy.mode": "paper"}}
    by_budget, at_random = make_cells(make_sweep_config(values))
    store = CellStore(tmp_path)
    assert run_cells([by_budget, at_random], store) == {by_budget.key: "no equilibrium"}
    assert store.failure_of(by_budget) == "no equilibrium"
    assert store.is_done(at_random)


def test_asked_to_stop_no_further_game_is_solved(tmp_path):
    asked = threading.Event()

    said = []

    def say(words):
        said.append(words)
        asked.set()

    values = {**TINY, "set": {**TINY["set"], "privacy.mode": "paper"}}
    assert solve_games(make_cells(make_sweep_config(values)), CellStore(tmp_path), say, asked) == {}
    assert len(said) == 1


def test_a_plan_counts_the_games_that_must_be_solved_first(whole, tmp_path):
    cells = make_cells(make_sweep_config({**TINY, "set": {**TINY["set"], "privacy.mode": "paper"}}))
    plan = plan_sweep(cells, CellStore(tmp_path), None, num_jobs=1)
    assert plan.num_games == plan.numbers["num_games"] == 2
    assert plan.text.endswith(" on 1 core, after 2 games to be solved")
    assert plan_sweep(*whole, None).num_games == 0


def test_the_estimate_is_of_the_order_of_what_it_takes(whole):
    cells, _ = whole
    seconds = estimate(cells, None)
    assert set(seconds) == {cell.key for cell in cells}
    assert all(0.1 < value < 60.0 for value in seconds.values())
    longer = make_cells(make_sweep_config({**TINY, "set": {**TINY["set"], "rounds": 3000}}))
    assert estimate(longer[:1], None)[longer[0].key] > 2.0 * seconds[cells[0].key]


def start_compare(folder, changes):
    arguments = ["--samplers", "fedpcs,random", "--seeds", "0,1", "--out", str(folder), "--jobs", "2"]
    sets = [part for key, value in changes.items() for part in ("--set", f"{key}={value}")]
    command = [sys.executable, "-c", "from fedpcs.cli import main; main()", "compare", *arguments, *sets]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def under_way(folder):
    """Rounds in the logs of cells that are begun and not done, by cell."""
    logs = {path: path.parent for path in folder.glob("trials/*/rounds.jsonl")}
    found = {cell.name: log.read_bytes().count(b"\n") for log, cell in logs.items() if not is_done(cell)}
    return {name: rounds for name, rounds in found.items() if rounds}


def is_done(cell):
    return (cell / "result.json").exists()


def wait_for_rounds(folder, victim, more):
    """Wait until some cell that is not done has so many rounds more in its log than now."""
    before, late = under_way(folder), time.monotonic() + 240.0
    while not any(rounds >= before.get(name, 0) + more for name, rounds in under_way(folder).items()):
        assert victim.poll() is None, victim.communicate()
        assert time.monotonic() < late, under_way(folder)
        time.sleep(0.01)


def ledgers_of(folder):
    """Every charge and every reward of every cell."""
    found = {}
    for path in sorted(folder.glob("trials/*/ledger.sqlite")):
        with closing(sqlite3.connect(path)) as ledger:
            charges = ledger.execute("SELECT round_index, client, attempt, rho_nanos FROM charges ORDER BY 1, 2, 3")
            rewards = ledger.execute("SELECT round_index, client, amount_nanos FROM rewards ORDER BY 1, 2")
            found[path.parent.name] = charges.fetchall(), rewards.fetchall()
    return found


def table_of(folder):
    with (folder / "cells.csv").open(newline="") as stream:
        return [{key: value for key, value in row.items() if key != "seconds"} for row in csv.DictReader(stream)]


@pytest.mark.slow
def test_a_sweep_killed_again_and_again_while_cells_are_under_way_gives_the_same_table(tmp_path):
    """With noise, a ledger, and a game that was solved: nothing is drawn, charged or paid twice."""
    changes = TINY["set"] | {"rounds": 60, "privacy.mode": "record", "privacy.limit_epsilon": 100.0}
    done = start_compare(tmp_path / "whole", changes)
    _, err = done.communicate(timeout=600)
    assert done.returncode == 0, err
    folder = tmp_path / "killed"
    for number, more in enumerate((1, 7, 2, 11)):
        how = signal.SIGKILL if number % 2 == 0 else signal.SIGTERM
        victim = start_compare(folder, changes)
        wait_for_rounds(folder, victim, more)
        victim.send_signal(how)
        _, err = victim.communicate(timeout=120)
        assert victim.returncode == (-how if how == signal.SIGKILL else 130), err
        if how != signal.SIGKILL:
            assert f"fedpcs: {folder}: stopped; " in err.splitlines()[-1]
            assert "Go on with `fedpcs compare " in err.splitlines()[-1]
        assert any(0 < rounds < 60 for rounds in under_way(folder).values())
    again = start_compare(folder, changes)
    _, err = again.communicate(timeout=600)
    assert again.returncode == 0, err
    rows = table_of(tmp_path / "whole")
    assert len(rows) == 4
    assert table_of(folder) == rows
    assert all(float(row["epsilon_minimum"]) > 0.0 and float(row["exploitability"]) >= 0.0 for row in rows)
    charged = ledgers_of(tmp_path / "whole")
    assert len(charged) == 4
    assert all(charges and rewards for charges, rewards in charged.values())
    assert ledgers_of(folder) == charged
    assert {path.name for path in (folder / "games").iterdir()} == {
        path.name for path in (tmp_path / "whole" / "games").iterdir()
    }


@pytest.mark.slow
def test_a_cell_that_another_command_is_at_is_waited_for_and_not_run_again(whole, tmp_path):
    cells, store = whole[0][:2], whole[1]
    mine = CellStore(tmp_path)
    folder = mine.trial_of(cells[0]).folder
    folder.mkdir(parents=True)
    went = []

    def moved(done, running):
        """Stand for the other command: it finishes once all other cells are done."""
        went.extend(cell.key for cell, _ in running)
        if len(done) == len(cells) - 1 and not running:
            shutil.copytree(store.trial_of(cells[0]).folder, folder, dirs_exist_ok=True)
            others.close()

    with ExitStack() as others:
        others.enter_context(locked(folder))
        assert run_cells(cells, mine, moved=moved) == {}
    assert cells[0].key not in went
    assert accuracies(cells, mine) == accuracies(cells, store)


def test_a_cell_that_somebody_ends_by_itself_is_told(whole, tmp_path):
    cells, _ = whole

    def moved(done, running):
        if running and not done:
            for child in multiprocessing.active_children():
                child.terminate()

    failures = run_cells(cells[:1], CellStore(tmp_path), num_jobs=1, moved=moved)
    assert list(failures) == [cells[0].key]


def test_an_exhibit_that_waits_for_a_search_is_not_made(tmp_path):
    with pytest.raises(Unfinished, match="without --only-done"):
        reproduce.reproduce("accuracy-table", "fashion-mnist", "quick", tmp_path, only_done=True)


def test_an_exhibit_of_which_nothing_is_done_is_not_written(tmp_path):
    with pytest.raises(Unfinished, match="no trial of it is done"):
        reproduce.reproduce("useful-privacy", "fashion-mnist", "quick", tmp_path, only_done=True)
    assert list(tmp_path.iterdir()) == []


def test_where_a_page_cannot_be_kept_no_game_is_solved_for_it(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    told = []
    with pytest.raises(FedpcsError, match="cannot be written: Permission denied"):
        reproduce.reproduce("welfare", "fashion-mnist", "quick", tmp_path / "new", say=told.append)
    assert told == []


def test_the_page_of_a_sweep_is_written_from_its_cells(whole, tmp_path, capsys):
    cells, store = whole
    compare.remember_sweep(tmp_path, make_sweep_config(TINY), store.folder, "fedpcs compare …")
    written = study.write_study(tmp_path)
    text = written.report.read_text()
    assert "fedpcs run DIR/trials/FOLDER/config.toml" in text
    assert f"such as {cells[0].folder_name}" in text
    assert [row["folder"] for row in table_of(tmp_path)] == [cell.folder_name for cell in cells]
    assert load_run_config(str(store.trial_of(cells[0]).folder / "config.toml")) == cells[0].config
    study_table.print_sweep(written, as_json=True)
    printed = json.loads(capsys.readouterr().out)
    assert [row["accuracy"] for row in printed["cells"]] == accuracies(cells, store)  # numbers, not words
    assert [row["seed"] for row in printed["cells"]] == [cell.seed for cell in cells]
    assert os.fspath(written.report) == printed["report"]


def test_a_sweep_tells_the_three_differences_and_what_is_sure_first(whole, tmp_path, capsys):
    """Two seeds, no noise, and so no game under random sampling: accuracy by SciPy, no ε, pay alone."""
    cells, store = whole
    results = [store.read(cell).result for cell in cells]
    mine, theirs = ([one for one in results if one.sampler == name] for name in ("fedpcs", "random"))
    compare.remember_sweep(tmp_path, make_sweep_config(TINY), store.folder, "")
    written = study.write_study(tmp_path)
    study_table.print_sweep(written, as_json=True)
    printed = json.loads(capsys.readouterr().out)
    (found,) = printed["differences"]
    assert (found["sampler"], found["other"], found["seeds"]) == ("fedpcs", "random", 2)
    twin = stats.ttest_rel(*([one.accuracy for one in side] for side in (mine, theirs))).confidence_interval()
    assert (found["accuracy"]["low"], found["accuracy"]["high"]) == pytest.approx((twin.low, twin.high))
    assert found["epsilon"] is found["paid"] is None
    assert found["left_out"] == {"epsilon": "no client spends any ε", "paid": "only fedpcs pays"}
    assert printed["headline"] == "Only fedpcs pays; accuracy cannot be told apart."
    study_table.print_sweep(written, as_json=False)
    said = capsys.readouterr().out
    assert said.startswith(f"{printed['headline']}\n")
    page = written.report.read_text()
    assert f"<h1>{html.escape(printed['headline'])}</h1>" in page
    assert "The three differences" in page


def test_a_page_is_left_alone_where_its_cells_are_gone(whole, tmp_path):
    _, store = whole
    elsewhere = tmp_path / "cells elsewhere"
    shutil.copytree(store.folder, elsewhere)
    compare.remember_sweep(tmp_path / "sweep", make_sweep_config(TINY), elsewhere, "")
    page = study.write_study(tmp_path / "sweep").report
    before = page.read_bytes(), page.with_name("cells.csv").read_bytes()
    elsewhere.rename(tmp_path / "moved")
    answer = fedpcs("report", tmp_path / "sweep")
    assert answer.returncode == 6, answer.stderr
    assert f"{elsewhere}, which is not there" in answer.stderr
    assert (page.read_bytes(), page.with_name("cells.csv").read_bytes()) == before


def test_a_page_is_left_alone_where_none_of_its_cells_is_found(whole, tmp_path):
    cells, store = whole
    shutil.copytree(store.folder, tmp_path, dirs_exist_ok=True)
    compare.remember_sweep(tmp_path, make_sweep_config(TINY), None, "")
    page = study.write_study(tmp_path).report
    before = page.read_bytes(), page.with_name("cells.csv").read_bytes()
    shutil.rmtree(tmp_path / "trials")
    with pytest.raises(CorruptFile, match=f"none of the {len(cells)} cells its page tells of"):
        study.write_study(tmp_path)
    assert (page.read_bytes(), page.with_name("cells.csv").read_bytes()) == before


def test_a_cell_at_two_places_of_a_table_is_planned_once(whole):
    cells, store = whole
    plan = plan_sweep([*cells, replace(cells[0], variant="elsewhere")], store, None)
    assert (len(plan.cells), plan.num_done) == (len(cells), len(cells))


def test_every_client_s_privacy_is_the_ledger_s_and_is_drawn(tmp_path):
    private = {**TINY, "seeds": [0], "set": {**TINY["set"], "rounds": 2, "privacy.mode": "client"}}
    sweep_config = make_sweep_config(private)
    cells, store = make_cells(sweep_config), CellStore(tmp_path)
    assert run_cells(cells, store) == {}
    compare.remember_sweep(tmp_path, sweep_config, None, "fedpcs compare")
    study.write_study(tmp_path)
    assert (tmp_path / "figures" / "privacy-spent-by-each-client.png").is_file()
    done = [store.read(cell) for cell in cells]
    spent = {one.cell.key: epsilon_of(one) for one in done}
    for one in done:
        every, known = spent[one.cell.key], one.outcome.spent
        assert every.shape == (one.cell.config.data.num_clients,)
        charged = every[every > 0.0]
        assert charged.size == known.num_clients
        assert (charged.min(), charged.max()) == (known.epsilon.minimum, known.epsilon.maximum)
    renamed = make_cells(make_sweep_config({**private, "name": "another"}))
    shared = {cell.key: epsilon_of(store.read(cell)) for cell in renamed}
    assert {key: values.tolist() for key, values in shared.items()} == {key: v.tolist() for key, v in spent.items()}
    (found,) = group(done)
    (drawn,) = (spent_figure(found).axes[0].get_lines()[0],)
    assert drawn.get_ydata().tolist() == sorted(spent[cells[0].key])
    ledger = store.trial_of(cells[0]).ledger
    for harmed in (b"no ledger", b""):
        ledger.write_bytes(harmed)
        figure = spent_figure(found)
        assert [line.get_label() for line in figure.axes[0].get_lines()] == ["random"]
        assert "Not drawn, as a ledger cannot be read: fedpcs: " in figure.get_supxlabel().replace("\n", " ")
        assert ledger.read_bytes() == harmed  # nothing is made of it
    shutil.copyfile(store.trial_of(cells[1]).ledger, ledger)  # a good one, and another cell's
    with pytest.raises(CorruptFile, match="0 clients spent something by it"):
        epsilon_of(done[0])
    with PrivacyLedger.open(store.trial_of(cells[1]).ledger) as opened:
        run = next(opened.charges()).key.run
        opened.charge(ReleaseKey(run, 0, 99), Event(Rho(1), CLIENT_LEVEL, "fast", Family.GAUSSIAN))
    with pytest.raises(CorruptFile, match="client '99' spent something by it; clients are 0…7"):
        epsilon_of(done[1])


def test_a_sweep_names_its_seeds_and_calls_a_gain_of_rounding_nothing(whole):
    cells, store = whole
    done = [store.read(cell) for cell in cells]
    nobody = [replace(one, result=with_gain(one, 0.0)) for one in done]
    page = comparison_page("tiny", nobody)
    assert page.facts.startswith("digits Dirichlet(0.5); 8 clients, one draw of their preferences; ")
    assert page.facts.endswith(f"seeds {', '.join(map(str, make_sweep_config(TINY).seeds))}")
    table = next(one for one in page.tables if "exploitability" in one.headings)
    column = table.headings.index("exploitability")
    assert {row[column] for row in table.rows} == {"nothing"}


def test_what_a_grid_varies_is_no_warning_and_is_told(whole):
    cells, store = whole
    fixed = {key: value for key, value in TINY["set"].items() if key != "data.num_clients"}
    varied = {**TINY, "set": fixed, "grid": {"data.num_clients": [8, 9], "data.validation_share": [0.2]}}
    first, *_, last = make_cells(make_sweep_config(varied))
    one, other = store.read(cells[0]), store.read(cells[1])
    data = other.manifest.data.model_copy(update={"num_train": 7})
    done = [
        replace(one, cell=first),
        replace(other, cell=last, manifest=other.manifest.model_copy(update={"data": data})),
    ]
    page = comparison_page("grid", done)
    assert [words for words in page.warnings if "are paid all the same" not in words] == []  # it has no noise
    assert "; 8–9 clients, " in page.facts
    harmed = replace(
        done[1], manifest=other.manifest.model_copy(update={"data": data.model_copy(update={"checksum": "0"})})
    )
    assert "different data sets" in str(comparison_page("grid", [done[0], harmed]).warnings)


@pytest.mark.parametrize("behaviour", ["static", "selfish"])
def test_clients_that_play_no_game_have_no_exploitability(whole, behaviour):
    cells, store = whole
    (unmoved, *_) = make_cells(make_sweep_config({**TINY, "set": {**TINY["set"], "game.behaviour": behaviour}}))
    one = store.read(cells[0])
    known = replace(one, result=with_gain(one, 1e-17))
    played, still = comparison_page("tiny", [known, replace(known, cell=unmoved)]).records
    assert (played["exploitability"], still["exploitability"]) == (1e-17, None)


def test_report_writes_a_sweeps_cells_as_parquet_too(whole, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    cells, store = whole
    compare.remember_sweep(tmp_path, make_sweep_config(TINY), store.folder, "")
    assert CliRunner().invoke(app, ["report", str(tmp_path), "--parquet"]).exit_code == 0
    written = parquet.read_table(tmp_path / "cells.parquet").to_pylist()
    assert [row["accuracy"] for row in written] == accuracies(cells, store)


def test_a_sweep_that_could_not_write_its_parquet_is_not_begun(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    answer = CliRunner().invoke(app, ["compare", "--parquet", "--out", str(tmp_path / "sweep")])
    assert isinstance(answer.exception, InvalidInput)
    assert "`pip install 'pyarrow>=17'`" in str(answer.exception)
    assert not (tmp_path / "sweep").exists()


def test_places_of_a_grid_are_not_taken_for_seeds(whole, tmp_path, capsys):
    cells, store = whole
    other = {**TINY, "grid": {"training.learning_rate": [0.5, 1.0]}}
    varied = make_cells(make_sweep_config(other))
    done = [replace(store.read(cells[k % len(cells)]), cell=cell) for k, cell in enumerate(varied)]
    page = comparison_page("grid", done)
    export_csv(page, tmp_path / "cells.csv")
    assert {row["set.training.learning_rate"] for row in table_of(tmp_path)} == {"0.5", "1.0"}
    found = Study("grid", tmp_path, None, tuple(varied), tuple(done), {}, {}, "")
    written = study.WrittenStudy(found, tmp_path / "report.html", page)
    study_table.print_sweep(written, as_json=False)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    first = next(k for k, line in enumerate(lines) if "learning_rate" in line)
    assert [line[-1] for line in lines[first + 1 : first + 5]] == ["2", "2", "2", "2"]


def test_a_sweep_without_a_finished_cell_has_a_page_that_says_why(tmp_path, capsys):
    sweep_of = make_sweep_config(TINY)
    compare.remember_sweep(tmp_path, sweep_of, None, "fedpcs compare …")
    CellStore(tmp_path).fail(make_cells(sweep_of)[0], "the model raised")
    written = study.write_study(tmp_path)
    assert "the model raised" in written.report.read_text()
    assert "No trial is done yet." in written.report.read_text()
    study_table.print_sweep(written, as_json=True)
    assert json.loads(capsys.readouterr().out)["cells"] == []


def test_an_exhibit_whose_cells_fail_is_written_and_ends_in_an_error(tmp_path, monkeypatch):
    def failing(plan, store, data_dir):
        return {cell.key: "no such device" for cell in plan.cells}

    monkeypatch.setattr(reproduce, "carry_out", failing)
    monkeypatch.setattr(reproduce, "plan_sweep", lambda cells, *_: SweepPlan(tuple(cells), 0, {}, 1, 0))
    with pytest.raises(FedpcsError, match=r"cells could not be run, such as .*: no such device"):
        reproduce.reproduce("useful-privacy", "fashion-mnist", "quick", tmp_path)
    page = (tmp_path / "useful-privacy-fashion-mnist-quick" / "report.md").read_text()
    assert "no such device" in page
    assert "ValueError" not in page


def test_a_page_is_made_again_wherever_the_run_file_went(whole, tmp_path, monkeypatch):
    _, store = whole
    file = tmp_path / "run.toml"
    file.write_text(as_toml(load_run_config("default")))
    monkeypatch.chdir(tmp_path)
    compare.remember_sweep(tmp_path / "sweep", make_sweep_config({**TINY, "base": "run.toml"}), store.folder, "")
    first = study.write_study(tmp_path / "sweep").report.read_bytes()
    file.unlink()
    monkeypatch.chdir("/")
    assert study.write_study(tmp_path / "sweep").report.read_bytes() == first
    assert len(table_of(tmp_path / "sweep")) == 4


def halved(text):
    return text[: len(text) // 2]


def without(key):
    """Return what leaves a key out of an object."""
    return lambda text: json.dumps({name: value for name, value in json.loads(text).items() if name != key})


DAMAGES = [
    ("rounds.jsonl", lambda text: "", "has 0 of 3 rounds"),
    ("rounds.jsonl", halved, "rounds in its log"),
    ("rounds.jsonl", lambda text: "3\n" + text, "line 1 is damaged"),
    ("rounds.jsonl", lambda text: text.replace('"rule"', '"role"'), "line 1 is damaged"),
    ("rounds.jsonl", lambda text: "".join(text.splitlines(keepends=True)[1:]), "line 1 is damaged"),
    ("rounds.jsonl", lambda text: "[" * 100_000 + "\n" + text, "line 1 is damaged"),
    ("seconds.json", lambda text: "{", "cannot be read"),
    ("seconds.json", lambda text: '"long"', "got 'long'"),
    ("seconds.json", lambda text: "NaN", "must be a number in [0, 1e+10], got 'nan'"),
    ("seconds.json", lambda text: "9" * 400, "must be a number in [0, 1e+10]"),
    ("rounds.jsonl", lambda text: text + text, "line 4 is damaged"),
    ("manifest.json", halved, "cannot be read"),
    ("manifest.json", lambda text: "[" * 100_000, "cannot be read"),
    ("manifest.json", lambda text: "{}", "must be given"),
    ("manifest.json", lambda text: json.dumps(json.loads(text) | {"data": 3}), "data must be a table"),
    ("manifest.json", without("config"), "config must be given"),
    ("manifest.json", lambda text: text.replace('"rounds": 3', '"rounds": 4'), "is not the cell"),
    ("result.json", lambda text: json.dumps(json.loads(text) | {"accuracy": 1.7}), "accuracy"),
    ("result.json", halved, "cannot be read"),
    ("result.json", lambda text: "[]", "holds no object"),
    ("result.json", without("num_test"), "num_test must be given"),
    ("result.json", without("disclosure"), "disclosure must be given"),
    ("result.json", lambda text: json.dumps(json.loads(text) | {"spent": {}}), "spent.rho must be given"),
    ("result.json", lambda text: json.dumps(json.loads(text) | {"num_test": "many"}), "got 'many'"),
    ("result.json", lambda text: json.dumps(json.loads(text) | {"seed": 7}), "is not of "),
]


@pytest.mark.parametrize(("name", "damage", "words"), DAMAGES)
def test_a_damaged_cell_is_named_with_what_is_wrong_and_what_to_do(whole, tmp_path, name, damage, words):
    cells, store = whole
    copy = copied(store, tmp_path, cells[:1])
    assert copy.read(cells[0]).result == store.read(cells[0]).result
    harm(copy, cells[0], name, damage)
    with pytest.raises(CorruptFile) as error:
        copy.read(cells[0])
    assert words in str(error.value)
    assert f"Delete the folder {copy.trial_of(cells[0]).folder}, and the cell is run again." in str(error.value)


def copied(store, folder, cells):
    copy = CellStore(folder)
    for cell in cells:
        shutil.copytree(store.trial_of(cell).folder, copy.trial_of(cell).folder)
    return copy


def harm(store, cell, name, damage):
    (path,) = store.trial_of(cell).folder.rglob(name)
    path.write_text(damage(path.read_text()))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "damage", "words"),
    [
        ("manifest.json", halved, "cannot be read"),
        ("manifest.json", lambda text: "{}", "must be given"),
        ("result.json", halved, "cannot be read"),
        ("result.json", without("num_test"), "num_test must be given"),
        ("rounds.jsonl", halved, "rounds in its log"),
    ],
)
def test_a_damaged_cell_costs_the_others_nothing(whole, tmp_path, name, damage, words):
    cells, store = whole
    copy = copied(store, tmp_path, cells)
    harm(copy, cells[1], name, damage)
    compare.remember_sweep(tmp_path, make_sweep_config(TINY), None, "")
    answer = fedpcs("report", tmp_path)
    assert answer.returncode == 6, answer.stderr
    assert str(tmp_path / "report.html") in answer.stdout
    assert words in answer.stderr
    assert "Delete the folder" in answer.stderr
    page = html.unescape((tmp_path / "report.html").read_text())
    assert f"{cells[1].label}: " in page
    assert words in page
    assert [row["cell"] for row in table_of(tmp_path)] == [cell.key for cell in cells if cell is not cells[1]]
    shutil.rmtree(copy.trial_of(cells[1]).folder)
    assert run_cells(cells, copy) == {}
    assert fedpcs("report", tmp_path).returncode == 0
    assert len(table_of(tmp_path)) == len(cells)


def test_compare_writes_its_page_without_a_damaged_cell_and_exits_6(whole, tmp_path):
    cells, store = whole
    harm(copied(store, tmp_path, cells), cells[0], "manifest.json", halved)
    sets = [part for key, value in TINY["set"].items() for part in ("--set", f"{key}={value}")]
    answer = fedpcs("compare", "--seeds", "0,1", "--samplers", "fedpcs,random", "--out", tmp_path, "--json", *sets)
    assert answer.returncode == 6, answer.stderr
    assert [row["cell"] for row in json.loads(answer.stdout)["cells"]] == [cell.key for cell in cells[1:]]
    assert "1 finished cells cannot be read" in answer.stderr


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cells": 3}, "cells must be"),
        ({"sweep": 3}, "sweep must be"),
        ({"command": None}, "command must be"),
        ({"base": 3}, "base must be"),
        ({"sweep": {"gird": {}}}, "unknown key 'sweep.gird'"),
        ({"base": {"training": 3}}, "training"),
    ],
)
def test_a_sweeps_own_file_that_is_damaged_is_named(tmp_path, change, words):
    compare.remember_sweep(tmp_path, make_sweep_config(TINY), None, "")
    path = tmp_path / "sweep.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    answer = fedpcs("report", tmp_path)
    assert answer.returncode == 6, answer.stderr
    assert words in answer.stderr
    assert "sweep.json" in answer.stderr
    assert "Give the `fedpcs compare` that made it again" in answer.stderr


def test_an_exhibit_names_a_damaged_cell_and_is_written_without_it(whole, tmp_path, monkeypatch):
    cells, store = whole
    harm(copied(store, tmp_path, cells), cells[3], "manifest.json", halved)
    asked = []

    def gather(request):
        done = request.run(cells)
        asked.append([one.cell.seed for one in done])
        return Gathered(None, comparison_page("curves", done))

    monkeypatch.setattr(exhibit, "declaration", lambda name: Exhibit(title="Curves", gather=gather))
    with pytest.raises(CorruptFile, match="1 finished cells cannot be read"):
        reproduce.reproduce("curves", "fashion-mnist", "quick", tmp_path, only_done=True)
    assert asked == [[0, 1, 0]]
    page = (tmp_path / "curves-fashion-mnist-quick" / "report.md").read_text()
    assert f"1 trials are missing, such as {cells[3].label}." in page
    assert "Delete the folder" in page


def test_cells_that_only_sought_something_are_told_where_other_code_ran_them(whole, tmp_path, monkeypatch):
    cells, store = whole
    copied(store, tmp_path, cells)
    manifest = CellStore(tmp_path).trial_of(cells[0]).folder / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "code": "another"}))

    def gather(request):
        request.run(cells[:1])
        return Gathered(None, comparison_page("curves", request.run(cells[1:])))

    monkeypatch.setattr(exhibit, "declaration", lambda name: Exhibit(title="Curves", gather=gather))
    reproduce.reproduce("curves", "fashion-mnist", "quick", tmp_path, only_done=True)
    page = (tmp_path / "curves-fashion-mnist-quick" / "report.md").read_text()
    assert "Cells were run by different versions of fedpcs's code" in page


def test_trainings_that_ended_early_are_named(whole):
    cells, store = whole
    done = [store.read(cell) for cell in cells]
    assert not any("ended before" in words for words in comparison_page("tiny", done).warnings)
    short = [replace(done[0], result=done[0].result.model_copy(update={"rounds": 2})), *done[1:]]
    (said,) = [words for words in comparison_page("tiny", short).warnings if "ended before" in words]
    assert said.startswith("1 of 4 trainings")
    assert f"({cells[0].label}: 2 of 3)" in said


def test_a_sweep_is_not_put_on_top_of_another(tmp_path):
    mine = make_sweep_config({**TINY, "name": "mine"})
    compare.remember_sweep(tmp_path, mine, None, "")
    kept = (tmp_path / "sweep.json").read_bytes()
    compare.check_free(tmp_path, "mine")
    answer = fedpcs("compare", "--out", tmp_path, "--plan")
    assert answer.returncode == 2
    assert "its page would be lost to 'default'" in answer.stderr
    assert (tmp_path / "sweep.json").read_bytes() == kept
    (tmp_path / "sweep.json").write_text("{")  # damaged: a command makes it anew
    compare.check_free(tmp_path, "another")


def test_a_plan_multiplies_only_where_that_gives_its_cells():
    variants = [{"label": "a", "samplers": ["random"]}, {"label": "b", "set": {"rounds": 4}}]
    cells = make_cells(make_sweep_config({**TINY, "variants": variants}))
    assert SweepPlan(tuple(cells), 0, {}, 1, 0).text.startswith("6 cells; about")
    one = make_cells(make_sweep_config({**TINY, "samplers": ["random"], "seeds": [3]}))
    assert SweepPlan(tuple(one), 0, {}, 1, 0).text.startswith("1 cell (1 sampler × 1 seed); about")


@pytest.mark.parametrize("stranger", ["report.html", "config.toml"])
def test_a_sweep_is_not_put_on_top_of_what_is_none(tmp_path, stranger):
    (tmp_path / "trials").mkdir()
    compare.check_free(tmp_path, "tiny")
    (tmp_path / stranger).write_text("mine")
    with pytest.raises(InvalidInput, match="Give another folder"):
        compare.check_free(tmp_path, "tiny")


def test_a_rule_that_cannot_weigh_a_sampler_is_refused_before_anything_is_run(tmp_path):
    cells = make_cells(make_sweep_config({**TINY, "samplers": ["fedpcs", "power-of-choice"]}))
    with pytest.raises(InvalidInput, match="sampler 'power-of-choice' cannot be run with rule 'hajek'"):
        plan_sweep(cells, CellStore(tmp_path), None)


@pytest.mark.slow
def test_a_file_in_the_place_of_a_cell_costs_the_others_nothing(whole, tmp_path):
    cells, store = whole
    shutil.copytree(store.folder, tmp_path, dirs_exist_ok=True)
    folder = CellStore(tmp_path).trial_of(cells[0]).folder
    shutil.rmtree(folder)
    folder.write_text("no folder")
    failures = run_cells(cells, CellStore(tmp_path))
    assert list(failures) == [cells[0].key]
    assert "is a file" in failures[cells[0].key]


def test_a_begun_cell_that_cannot_go_on_says_to_delete_it(whole, tmp_path):
    cells, store = whole
    folder = tmp_path / "cell"
    shutil.copytree(store.trial_of(cells[0]).folder, folder)
    (folder / "result.json").unlink()
    (folder / "manifest.json").unlink()
    with pytest.raises(CorruptFile, match="Or delete the folder"):
        run_cell(folder, cells[0].config, None, store.games)


@pytest.mark.slow
def test_a_parquet_table_is_never_left_behind_the_cells(whole, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    _, store = whole
    compare.remember_sweep(tmp_path, make_sweep_config(TINY), store.folder, "")
    table = tmp_path / "cells.parquet"
    assert not study.write_study(tmp_path).report.with_name(table.name).exists()
    table.write_text("of older cells")
    study.write_study(tmp_path)
    assert table.read_bytes().startswith(b"PAR1")
    monkeypatch.setattr(study, "can_write_parquet", lambda: False)
    study.write_study(tmp_path)
    assert not table.exists()


def test_a_row_over_other_seeds_says_so(whole):
    cells, store = whole
    done = [store.read(cell) for cell in cells if (cell.sampler, cell.seed) != ("fedpcs", 0)]
    (found,) = group(done)
    table = next(one for one in study_tables([found]) if "accuracy" in one.headings)
    column = table.headings.index("seeds")
    assert {row[0]: row[column] for row in table.rows} == {"fedpcs": "1", "random": "0, 1"}
