"""The command line. Each verb parses, calls one function, prints; stdout is data, stderr is talk."""

from __future__ import annotations

import json
import shlex
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Literal, get_args

import typer

from fedpcs.errors import FedpcsError, InvalidInput
from fedpcs.experiments.presets import preset_names

app = typer.Typer(
    name="fedpcs",
    help="Privacy-aware client sampling in federated learning.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

_PRESETS = ", ".join(preset_names())
Profile = Literal["quick", "paper"]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]

data = typer.Typer(
    name="data",
    help="Data sets: which there are, fetch one, check one.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(data)

DataDirOption = Annotated[
    Path | None,
    typer.Option(metavar="DIR", file_okay=False, help="Where data sets lie; FEDPCS_DATA or the cache if absent."),
]


def _print_version(is_asked: bool) -> None:
    if is_asked:
        print(f"fedpcs {version('fedpcs')}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command()
def run(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[CONFIG.toml|PRESET]",
            help=f"What to run: a file, or a preset ({_PRESETS}).",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Where to keep the run; a new folder.")] = None,
    data_dir: DataDirOption = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change one key of the run, such as rounds=5."),
    ] = None,
    engine: Annotated[
        str | None, typer.Option(metavar="KIND", help="Where clients run: workers, in-process or flower.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Train a federation with every sampler and seed asked for, and write a report.

    Exit code 0 when done, 2 for bad input, 3 if a game has no certified equilibrium, 4 if every client has spent its
    limit, 5 if too few clients answer, 130 if interrupted; `fedpcs resume` goes on from there.

    Example: fedpcs run fashion-mnist --set rounds=5 --data-dir data
    """
    from fedpcs.experiments import own_code, run, run_config, run_progress, run_table

    chosen = [] if engine is None else [f"engine.kind={engine}"]
    config = run_config.load_run_config(source, [*(overrides or []), *chosen])
    own_code.look_here(config.data.name, config.training.model, *config.sampling.samplers)
    folder = run_table.new_folder(config.name) if out is None else out
    with run_progress.Display(config) as display:
        store = run.start_run(config, folder, data_dir, display)
    run_table.print_run(store, as_json=as_json)
    run.raise_if_exhausted(store)


@app.command()
def resume(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run that was stopped.")],
    force: Annotated[bool, typer.Option("--force", help="Go on though code, data or configuration differ.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Go on with a run that was stopped, from its last checkpoints; the result is that of a run never stopped.

    Exit code 6 if no checkpoint is whole; otherwise as `fedpcs run`.

    Example: fedpcs resume fedpcs-runs/default
    """
    from fedpcs.experiments import own_code, run, run_progress, run_store, run_table

    config = run_store.open_run(folder).config()
    own_code.look_here(config.data.name, config.training.model, *config.sampling.samplers)
    with run_progress.Display(config) as display:
        store = run.resume_run(folder, display, force=force)
    run_table.print_run(store, as_json=as_json)
    run.raise_if_exhausted(store)


@app.command()
def compare(
    source: Annotated[
        str | None,
        typer.Argument(metavar="[SWEEP.toml|RUN.toml|PRESET]", help="What to vary: a sweep, a run, or a preset."),
    ] = None,
    samplers: Annotated[str | None, typer.Option(metavar="A,B,…", help="Which samplers.")] = None,
    seeds: Annotated[
        str | None, typer.Option(metavar="0,1,…", help="Which seeds; three or more tell something.")
    ] = None,
    grid: Annotated[
        list[str] | None, typer.Option(metavar="KEY=A,B,…", help="Try every value, with those of other grids.")
    ] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change one key everywhere.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="The sweep's folder; goes on if it is there.")] = None,
    cells: Annotated[Path | None, typer.Option(metavar="DIR", help="Share finished cells with other sweeps.")] = None,
    data_dir: DataDirOption = None,
    jobs: Annotated[int | None, typer.Option(min=1, max=1024, help="Cells at a time; one a core if absent.")] = None,
    plan_only: Annotated[bool, typer.Option("--plan", help="Say what would be run and how long; run nothing.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Run samplers side by side over settings and seeds, and write one page with tables and figures.

    Cells that are done are reused: stop it at any time and give the same command again. Exit code 1 if some cells
    could not be run, 2 for bad input, 3 if a game has no certified equilibrium, 130 if interrupted.

    Example: fedpcs compare --samplers fedpcs,random,delta --seeds 0,1,2 --grid data.partition=iid,dirichlet
    """
    from fedpcs.experiments import cell_store, compare, sweep_config

    sweep = compare.read_sweep(source, samplers=samplers, seeds=seeds, grid=grid or [], overrides=overrides or [])
    wanted = sweep_config.make_cells(sweep)
    folder = Path("fedpcs-runs") / f"compare-{sweep.name}" if out is None else out
    store = cell_store.CellStore(folder if cells is None else cells)
    plan = compare.plan_sweep(wanted, store, data_dir, jobs)
    if plan_only:
        print(json.dumps(plan.numbers) if as_json else plan.words)
        return
    compare.remember_sweep(folder, sweep, cells, _command_line())
    failures = compare.carry_out(plan, store, data_dir)
    compare.print_sweep(compare.write_sweep(folder), as_json=as_json)
    compare.raise_if_failed(failures, wanted)


@app.command()
def reproduce(
    name: Annotated[str | None, typer.Argument(metavar="EXHIBIT", help="Which; the list if absent.")] = None,
    dataset: Annotated[str, typer.Option(metavar="NAME", help="On which data set.")] = "fashion-mnist",
    profile: Annotated[str, typer.Option(metavar="quick|paper", help="Two cores, or the paper's sizes.")] = "quick",
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where exhibits and their cells are kept.")] = Path(
        "fedpcs-runs/reproduce"
    ),
    data_dir: DataDirOption = None,
    jobs: Annotated[int | None, typer.Option(min=1, max=1024, help="Cells at a time; one a core if absent.")] = None,
    only_done: Annotated[bool, typer.Option("--only-done", help="Run nothing; show what is done.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Make one of the paper's exhibits: run what is missing, write a page that says where we agree with the paper.

    Cells are shared between exhibits and reused: stop it at any time and give the same command again.

    Example: fedpcs reproduce welfare
    """
    from fedpcs.experiments import reproduce
    from fedpcs.experiments.exhibits.registry import EXHIBITS

    if name is None:
        listed = {key: one.words for key, one in EXHIBITS.items()}
        print(json.dumps(listed) if as_json else "\n".join(f"{key:18} {words}" for key, words in listed.items()))
        return
    found = reproduce.reproduce(name, dataset, _profile(profile), out, data_dir, num_jobs=jobs, only_done=only_done)
    print(json.dumps({"report": str(found)}) if as_json else found)


@app.command()
def report(
    folders: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Folders of runs or sweeps.")],
    as_json: JsonOption = False,
) -> None:
    """Write reports again, from files alone: of runs, of sweeps, finished or not.

    Example: fedpcs report fedpcs-runs/default
    """
    from fedpcs.experiments import compare, run_report, run_store

    written = [
        compare.write_sweep(one) if compare.is_sweep(one) else run_report.write_report(run_store.open_run(one))
        for one in folders
    ]
    print(json.dumps({"reports": [str(path) for path in written]}) if as_json else "\n".join(map(str, written)))


@app.command()
def solve(
    game_file: Annotated[Path | None, typer.Argument(metavar="GAME.toml", help="The game; default if absent.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE.npz", help="Write budgets and rewards here.")] = None,
    figures: Annotated[Path | None, typer.Option(metavar="DIR", help="Draw the game's figures here.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Solve a game, certify the equilibrium, and draw it.

    Exit code 0 if it converged, 2 for bad input, 3 if no equilibrium was found to the tolerance asked for.

    Example: fedpcs solve game.toml --out equilibrium.npz --figures figures
    """
    from rich.console import Console

    from fedpcs.experiments import config, equilibrium_file, solve_report
    from fedpcs.game import equilibrium, sampling_ratio

    settings = config.load_game_config(game_file)
    game = config.build_game(settings, game_file.parent if game_file else None)
    if out is not None:
        equilibrium_file.check_writable(out)
    if figures is not None:
        _make_folder(figures)
    talk = Console(stderr=True)
    began = time.perf_counter()
    plan = None
    with talk.status("Solving the game …"):
        if settings.budget_cap is None:
            found = equilibrium.solve(
                game, settings.reward, response=settings.response, tolerance=settings.tolerance, throw=False
            )
        else:
            found, plan = sampling_ratio.solve_with_caps(
                game,
                settings.reward,
                settings.budget_cap,
                response=settings.response,
                tolerance=settings.tolerance,
                throw=False,
            )
        seconds = time.perf_counter() - began
    if out is not None:
        equilibrium_file.write_equilibrium(out, found)
        talk.print(f"wrote {out}")
    if as_json:
        print(json.dumps(solve_report.solve_object(found, plan, seconds)))
    else:
        solve_report.print_solution(found, plan, seconds, Console())
    if figures is not None:
        from fedpcs.experiments import game_figures

        with talk.status("Drawing …"):
            drawn = game_figures.draw_all(found, plan, figures)
        talk.print(f"drew {len(drawn)} figures in {figures}: {', '.join(path.name for path in drawn)}")
    if found.status != "converged":
        raise typer.Exit(3)


@app.command()
def verify(
    equilibrium_path: Annotated[Path, typer.Argument(metavar="FILE.npz", help="Written by `fedpcs solve --out`.")],
    game_file: Annotated[
        Path | None, typer.Option("--game", metavar="GAME.toml", help="The game it claims to solve; default if absent.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Recompute an equilibrium's certificate from the file alone.

    Exit code 0 if it is an equilibrium to the game's tolerance, 3 if it is not, 2 for bad input.

    Example: fedpcs verify equilibrium.npz --game game.toml
    """
    from dataclasses import replace

    from rich.console import Console

    from fedpcs.experiments import config, equilibrium_file, solve_report

    settings = config.load_game_config(game_file)
    game = config.build_game(settings, game_file.parent if game_file else None)
    stored = equilibrium_file.read_equilibrium(equilibrium_path)
    if settings.budget_cap is not None and stored.cohort_size is not None:
        game = replace(game, cohort_size=config.cohort_path(stored.cohort_size, game))
    with Console(stderr=True).status("Checking …"):
        checked = solve_report.verify_stored(stored, game, settings)
    if as_json:
        print(json.dumps(solve_report.verify_object(checked, float(settings.tolerance))))
    else:
        solve_report.print_verification(checked, float(settings.tolerance), Console())
    if not checked.is_equilibrium:
        raise typer.Exit(3)


# A negative number is a value to refuse with a reason, not an unknown option.
@app.command(context_settings={"ignore_unknown_options": True})
def privacy(
    rho: Annotated[float | None, typer.Argument(metavar="RHO", help="A zCDP budget, such as a client's total.")] = None,
    delta: Annotated[float, typer.Option(help="The δ to go with ε, strictly between 0 and 1.")] = 1e-5,
    epsilon: Annotated[float | None, typer.Option(help="Convert this ε to ρ instead.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Convert a zCDP budget ρ to (ε, δ), three ways, and say which to quote.

    Example: fedpcs privacy 0.5 --delta 1e-5

    And back: fedpcs privacy --epsilon 8 --delta 1e-5
    """
    from rich.console import Console

    from fedpcs.experiments import privacy_report

    if (rho is None) == (epsilon is None):
        raise InvalidInput("give either RHO or --epsilon, not both. Example: fedpcs privacy 0.5 --delta 1e-5")
    found = privacy_report.to_both_sides(rho, epsilon, delta)
    if as_json:
        print(json.dumps(found))
    else:
        privacy_report.print_conversion(found, Console())


@app.command()
def samplers(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="One sampler, or your own as package.module:ClassName.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the samplers: what each reads from clients, whether that is private, whether its weights are unbiased.

    Example: fedpcs samplers

    With a NAME, show its settings and hold it to every sampler's promises: fedpcs samplers aocs
    """
    from rich.console import Console

    from fedpcs.experiments import sampler_report

    if name is None:
        found = sampler_report.describe_all()
        if as_json:
            print(json.dumps(found))
        else:
            sampler_report.print_all(found, Console())
        return
    sampler_report.check(name)
    one = sampler_report.describe(name)
    if as_json:
        print(json.dumps(one, default=str))
    else:
        sampler_report.print_one(one, Console())


@app.command()
def audit(
    mode: Annotated[str, typer.Option(help="client, record, record-training, paper or paper-one-step.")] = "client",
    rho: Annotated[float, typer.Option(help="Budget ρ of one round.")] = 1.0,
    canaries: Annotated[int, typer.Option(help="Runs with the canary; as many again go without.")] = 1000,
    noise: Annotated[str, typer.Option(help="secure, exact or fast (seeded, for simulation).")] = "secure",
    delta: Annotated[float, typer.Option(help="The δ to go with ε, strictly between 0 and 1.")] = 1e-5,
    seed: Annotated[int, typer.Option(help="Of canaries and backgrounds; of the noise too if it is fast.")] = 0,
    rounds: Annotated[int, typer.Option(help="Rounds each canary takes part in; ρ adds up.")] = 1,
    figure: Annotated[Path, typer.Option(metavar="FILE.png", help="Draw the attack's ROC curve here.")] = Path(
        "fedpcs-audit.png"
    ),
    as_json: JsonOption = False,
) -> None:
    """Try to break a privacy mode's claim with canaries, and print lower bounds on its ε.

    Exit code 7 if the claim is contradicted, which is expected of mode paper; 0 if it is not; 2 for bad input.

    Example: fedpcs audit --mode record --rho 0.5 --figure roc.png
    """
    from rich.console import Console

    from fedpcs.experiments import audit_figure, audit_report, audit_run, figure_style

    if figure.is_dir() or not figure.parent.is_dir():
        raise InvalidInput(f"--figure {figure}: cannot be written there. Give a file name in an existing folder.")
    talk = Console(stderr=True)
    with talk.status("Running canaries …"):
        found = audit_run.run_audit(
            mode, rho, num_canaries=canaries, noise=noise, seed=seed, delta=delta, num_rounds=rounds
        )
    if as_json:
        print(json.dumps(audit_report.audit_object(found)))
    else:
        audit_report.print_audit(found, Console())
    try:
        figure_style.save(audit_figure.roc_figure(found), figure)
        talk.print(f"wrote {figure}")
    except InvalidInput as error:  # a picture that cannot be written must not hide the verdict
        if not found.result.is_contradicted:
            raise
        talk.print(f"fedpcs: {error}")
    if found.result.is_contradicted:
        raise typer.Exit(7)


@data.command("list")
def data_list(data_dir: DataDirOption = None, as_json: JsonOption = False) -> None:
    """List the data sets: their published size, whether they are here, and their terms.

    Example: fedpcs data list
    """
    from rich.console import Console

    from fedpcs.experiments import data_report

    found = data_report.describe_all(data_dir)
    if as_json:
        print(json.dumps(found))
    else:
        data_report.print_all(found, Console())


@data.command("fetch")
def data_fetch(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name from `fedpcs data list`.")],
    data_dir: DataDirOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fetch a data set from its publisher unless it is here, and print its folder; a broken fetch goes on where it was.

    Exit code 0 if it is here now, 2 if there is no such set or its server cannot be reached, 6 if what arrived is
    damaged.

    Example: fedpcs data fetch fashion-mnist --data-dir data
    """
    from fedpcs.learning.datasets import fetch_dataset

    folder = fetch_dataset(name, data_dir, progress=True)
    print(json.dumps({"name": name, "folder": str(folder)}) if as_json else folder)


@data.command("check")
def data_check(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A name from `fedpcs data list`, or package.module:function.")
    ],
    data_dir: DataDirOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read a data set from its files, and say whether they are the published ones.

    Exit code 0 if it can be read, 2 if it is not here, 6 if a file is damaged.

    Example: fedpcs data check cifar-10 --data-dir data
    """
    from rich.console import Console

    from fedpcs.experiments import data_report

    found = data_report.check(name, data_dir)
    if as_json:
        print(json.dumps(found))
    else:
        data_report.print_check(found, Console())


def _profile(name: str) -> Profile:
    for known in get_args(Profile):
        if name == known:
            found: Profile = known
            return found
    raise InvalidInput(f"--profile must be quick or paper, got {name!r}.")


def _command_line() -> str:
    return shlex.join(["fedpcs", *sys.argv[1:]])


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"--figures {folder}: cannot be made: {error.strerror}. Give another folder.") from None


def main() -> None:
    """Run the command line; an error becomes one line on stderr and its exit code."""
    try:
        app()
    except FedpcsError as error:
        print(f"fedpcs: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except MemoryError as error:
        print(f"fedpcs: out of memory: {error or 'no more to be had'}. Ask for less.", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        print(f"fedpcs: the system refused: {error}. Is the place there, and may it be written to?", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("fedpcs: interrupted", file=sys.stderr)
        sys.exit(130)
