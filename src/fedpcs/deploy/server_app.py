"""The server app of a deployment: it waits for its clients, announces, runs the rounds, and goes on after a crash.

The folder is that of any other run: config.toml, manifest.json, trials/…, report.html, result.json; and roster.json has
the clients that take part. Start the app again on the same folder, and it goes on from its last checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from fedpcs._files import locked
from fedpcs.deploy.federation import Federation
from fedpcs.deploy.operator import Operator, one_line
from fedpcs.deploy.roster import Roster, roster_of
from fedpcs.deploy.served_samplers import check_served
from fedpcs.engines.flower.directory import Directory
from fedpcs.engines.flower.guarded_grid import GuardedGrid
from fedpcs.trial.config import RunConfig, load_run_config
from fedpcs.trial.identity import alone
from fedpcs.trial.run import carry_on
from fedpcs.trial.run_store import RunStore, check_same, make_manifest, open_run
from fedpcs.trial.session import Session, open_session

# Flower's nodes and server look for messages every three seconds.
_POLL_SECONDS = 0.5
WhenDone = Callable[[RunStore, Callable[[str], None]], object]


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
        given = context.run_config
        data_dir = str(given.get("data-dir", ""))
        config = load_run_config(str(config_file), [f"data.num_clients={int(given['num-clients'])}"])
        serve(
            grid,
            config,
            Path(str(given["run-dir"])).expanduser(),
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
    say = one_line(say)
    grid = GuardedGrid(grid, say)
    config = alone(config, config.sampling.samplers[0], config.seeds[0])
    # A round that is done over is charged to its clients again, whose noise is new: none is, if each is saved.
    config = config.model_copy(update={"checkpoint_every": 1})
    check_served(config, say)
    session = open_session(config, data_dir, folder / "games", Operator(say))
    session.identity = session.identity.model_copy(update={"num_train": None})  # those records are not read
    with locked(folder):
        store = _opened(folder, config, session)
        if store.result is not None:
            say(f"{folder} is done already")
            return store
        directory = Directory(grid, poll_seconds, say)
        roster = _enrolled(directory, store, config)
        for words in roster.capped():
            session.note(words)
        is_announced = store.trial_of(config).num_rounds_known > 0
        federation = Federation(grid, directory, roster, poll_seconds, is_announced)
        carry_on(store, config, session, set_up=federation.set_up)
    if when_done is not None:
        when_done(store, say)
    say(f"done: {store.report if store.report.exists() else store.folder}")
    return store


def _opened(folder: Path, config: RunConfig, session: Session) -> RunStore:
    manifest = make_manifest(config, session.identity, session.data_dir, list(session.notes))
    if not (folder / "manifest.json").exists():
        store = RunStore(folder)
        store.begin(config, manifest)
        return store
    store = open_run(folder)
    check_same(store, manifest, force=False)
    return store


def _enrolled(directory: Directory, store: RunStore, config: RunConfig) -> Roster:
    """Wait for clients, all to begin, enough for a quorum to go on; return who takes part."""
    path, num_clients = store.folder / "roster.json", config.data.num_clients
    wanted = max(1, round(float(config.engine.quorum) * num_clients)) if path.exists() else num_clients
    directory.wait_for(wanted, float(config.federation.wait_seconds))
    roster = roster_of(path, config, directory.roster)
    directory.enrol(roster.num_samples_of, roster.nodes if config.federation.bind_names else {})
    return roster
