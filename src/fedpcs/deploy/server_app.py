"""The server app of a deployment: it waits for its clients, announces, runs the rounds, and goes on after a crash.

The folder is that of any other run: config.toml, manifest.json, trials/…, report.html, result.json; and roster.json has
the clients that take part. Start the app again on the same folder, and it goes on from its last checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from flwr.app import Context, Message
from flwr.serverapp import Grid, ServerApp
from numpy.typing import NDArray

from fedpcs import _format
from fedpcs._outside import printable
from fedpcs.deploy.announcer import Announcer
from fedpcs.deploy.roster import Roster, roster_of
from fedpcs.engines.flower import messages
from fedpcs.engines.flower.announcement import Announcement
from fedpcs.engines.flower.directory import Directory
from fedpcs.engines.flower.grid_engine import GridEngine, exchange
from fedpcs.engines.flower.guarded_grid import GuardedGrid
from fedpcs.engines.inprocess import InProcessEngine
from fedpcs.errors import FedpcsError, InvalidInput
from fedpcs.learning.client import ClientSide
from fedpcs.learning.client_data import deal_out
from fedpcs.learning.datasets import Dataset
from fedpcs.learning.layout import flat_parameters, load_parameters
from fedpcs.learning.models import make_model
from fedpcs.learning.protocol import MEASURES
from fedpcs.learning.wire import MessageRefused
from fedpcs.sampling import Sampler
from fedpcs.trial import checkpoint
from fedpcs.trial.assemble import Trial, device_of, load_for, plan_for, sampler_of
from fedpcs.trial.config import RunConfig, load_run_config
from fedpcs.trial.identity import alone
from fedpcs.trial.loop import Settings, run_trial
from fedpcs.trial.records import DataIdentity, RoundRecord
from fedpcs.trial.results import run_result, trial_result
from fedpcs.trial.run_store import RunStore, check_same, create_run, locked, make_manifest, open_run

# Flower's nodes and server look for messages every three seconds.
_POLL_SECONDS = 0.5
_LONGEST_LINE = 600
WhenDone = Callable[[RunStore, Callable[[str], None]], object]
_ASKED = ("label_counts", "update_norm", "loss")
IntArray = NDArray[np.int64]


def server_app(config_file: str | Path, when_done: WhenDone | None = None) -> ServerApp:
    """Return the server app of a deployment.

    The app's configuration names `num-clients` and `run-dir`, and `data-dir` if the server's test records lie there.

    Args:
        config_file: The run's file, which the app brings along.
        when_done: Called with the finished run, such as `fedpcs.report.study.write_report_safely`.
    """
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        told = context.run_config
        data_dir = str(told.get("data-dir", ""))
        config = load_run_config(str(config_file), [f"data.num_clients={int(told['num-clients'])}"])
        serve(
            grid,
            config,
            Path(str(told["run-dir"])).expanduser(),
            Path(data_dir).expanduser() if data_dir else None,
            say=lambda words: print(f"fedpcs: {words}", flush=True),
            when_done=when_done,
        )

    return app


def serve(
    grid: Grid,
    config: RunConfig,
    folder: Path,
    data_dir: Path | None = None,
    *,
    say: Callable[[str], None] = lambda words: None,
    when_done: WhenDone | None = None,
    poll_seconds: float = _POLL_SECONDS,
) -> RunStore:
    """Run a federation over a grid, from the beginning or from where its folder says it was.

    Args:
        grid: Of the server app.
        config: The run; its first sampler and its first seed.
        folder: Where to keep it.
        data_dir: Where the server's test records lie.
        say: Told what an operator should know.
        when_done: Called with the finished run, such as `fedpcs.report.study.write_report_safely`.
        poll_seconds: How often to look for replies.

    Raises:
        InvalidInput: The sampler needs what clients of a deployment do not tell, or the folder is another run's.
        QuorumNotReached: Too few clients are connected, or answer.
    """
    say = _one_line(say)
    grid = GuardedGrid(grid, say)
    trial = Trial(config.sampling.samplers[0], config.seeds[0])
    sampler = sampler_of(config, trial.sampler)
    _check_told(sampler, say)
    _, notes = device_of(config)
    dataset = load_for(config, data_dir)
    with locked(folder):
        store = _opened(folder, config, dataset, data_dir, notes)
        if store.result is not None:
            say(f"{folder} is done already")
            return store
        directory = Directory(grid, poll_seconds, say)
        directory.wait_for(_num_to_wait_for(store, config), float(config.federation.wait_seconds))
        roster = roster_of(store.folder / "roster.json", config, directory.roster)
        directory.enrol(roster.told, roster.nodes if config.federation.bind_names else {})
        for words in roster.capped():
            say(words)
            store.add_note(words)
        _run(grid, config, trial, sampler, dataset, store, directory, roster, say, poll_seconds)
        store.finish(run_result(store, config))
    if when_done is not None:
        when_done(store, say)
    say(f"done: {store.report if store.report.exists() else store.folder}")
    return store


def _one_line(say: Callable[[str], None]) -> Callable[[str], None]:
    """Return `say` for words that clients may have a part in: nothing of theirs makes a line of its own."""
    return lambda words: say(printable(words.replace("\N{NO-BREAK SPACE}", " "), _LONGEST_LINE))


def _check_told(sampler: Sampler, say: Callable[[str], None]) -> None:
    if private := [name for name in _ASKED if name in sampler.reads]:
        raise InvalidInput(
            f"sampler {sampler.name} reads {', '.join(private)} of every client, which clients of a deployment do not "
            "tell: it is private, and charged to nobody. Take fedpcs, random or clustered, or simulate."
        )
    if measured := [name for name in MEASURES if name in sampler.hears]:
        say(
            f"sampler {sampler.name} hears {', '.join(measured)} of clients that were drawn, which is private and "
            "charged to nobody: only clients whose settings say may_be_asked = true answer it"
        )


def _opened(folder: Path, config: RunConfig, dataset: Dataset, data_dir: Path | None, notes: list[str]) -> RunStore:
    tests = DataIdentity(
        name=dataset.name,
        checksum=dataset.checksum,
        num_test=len(dataset.test_targets),
        evaluated_on=config.data.evaluated_on,
    )
    manifest = make_manifest(config, tests, data_dir, notes)
    if (folder / "manifest.json").exists():
        store = open_run(folder)
        check_same(store, manifest, force=False)
        return store
    return create_run(folder, config, manifest)


def _num_to_wait_for(store: RunStore, config: RunConfig) -> int:
    """Return how many must be there: all to begin, enough for a quorum to go on."""
    if not (store.folder / "roster.json").exists():
        return config.data.num_clients
    return max(1, round(float(config.engine.quorum) * config.data.num_clients))


def _run(
    grid: Grid,
    config: RunConfig,
    trial: Trial,
    sampler: Sampler,
    dataset: Dataset,
    store: RunStore,
    directory: Directory,
    roster: Roster,
    say: Callable[[str], None],
    poll_seconds: float,
) -> None:
    deadline = float(config.engine.deadline_seconds)
    sizes = roster.num_samples
    name = f"{config.name}/{trial.sampler}/{trial.seed}"

    def ask(announcement: Announcement, clients: IntArray) -> dict[int, IntArray]:
        return ask_terms(grid, directory.nodes(), announcement, clients, deadline, poll_seconds, say)

    trial_store = store.trial(trial.sampler, trial.seed)
    announcer = Announcer(config, sampler, name, sizes.size, ask, say)
    if checkpoint.latest(trial_store.checkpoints) is None:  # otherwise it knows what was agreed
        announcer.start()
    model = make_model(config.training.model, dataset.input_shape, dataset.num_classes, seed=trial.seed)
    plan = replace(
        plan_for(config, trial, sampler, announcer.schedule, sizes, model, device_of(config)[0]),
        max_samples=roster.max_samples,
        largest_weight=float(config.federation.largest_weight),
    )
    # The server's own part of the data set is its test records: no client's record is in it.
    tests = ClientSide(plan.client, model, deal_out(dataset, [np.zeros(1, dtype=np.int64)]))
    engine = GridEngine(
        grid,
        directory.nodes,
        InProcessEngine(tests).score,
        deadline_seconds=deadline,
        poll_seconds=poll_seconds,
        task_seconds=deadline,
    )

    def presence(_: int) -> NDArray[np.bool_]:
        connected = directory.is_connected()
        announcer.ask_missing(connected)
        return connected & announcer.has_answered

    def notify(record: RoundRecord, seconds: float) -> None:
        score = "" if record.accuracy is None else f", accuracy {_format.share(record.accuracy)}"
        heard = f"{len(record.heard)} of {len(record.cohort)} heard"
        drift = record.budget_drift
        strays = "" if drift is None else f", budgets {drift:+.1%} from what was announced"
        say(f"round {record.round}: {heard}{score}{strays} ({_format.duration(seconds)})")

    if not trial_store.has_begun:
        trial_store.begin(alone(config, trial.sampler, trial.seed), store.manifest)
    settings = Settings(
        delta=float(config.privacy.delta),
        evaluate_every=config.evaluate_every,
        checkpoint_every=1,  # a round done over is charged to its clients again: their noise is new
        redraws=config.engine.redraws,
        presence=presence,
        say=say,
        notify=notify,
        replan=announcer,
    )
    finished = run_trial(plan, flat_parameters(model), engine, trial_store, settings)
    load_parameters(model, torch.from_numpy(finished.model))
    trial_store.save_model(model.state_dict())
    trial_store.finish(
        trial_result(config, trial, sampler, plan, announcer.schedule, finished, len(dataset.test_targets))
    )


def ask_terms(
    grid: Grid,
    nodes: Mapping[int, int],
    announcement: Announcement,
    clients: IntArray,
    deadline_seconds: float,
    poll_seconds: float,
    say: Callable[[str], None],
) -> dict[int, IntArray]:
    """Announce terms to clients; return the budgets of those that answer, in billionths, by client."""
    content = messages.announcement_content(announcement)
    sent = {
        int(client): Message(content, nodes[int(client)], messages.TERMS, ttl=deadline_seconds)
        for client in clients
        if int(client) in nodes
    }
    found = {}
    for client, reply in exchange(grid, sent, deadline_seconds, poll_seconds):
        try:
            if not isinstance(reply, Message) or reply.has_error():
                told = reply.error if isinstance(reply, Message) else reply
                raise FedpcsError(str(told.reason))
            found[client] = messages.read_budgets(reply.content, len(announcement.reward))
        except (FedpcsError, MessageRefused) as error:
            say(f"client {client} does not answer what was announced: {str(error)[-300:]}")
    return found
