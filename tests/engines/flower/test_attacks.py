"""A hundred and more attacks on real deployments: by clients, on the wire, and by a server; docs/attacks.md lists them.

What is asserted is seen from outside: ledgers of honest nodes, the run's log and its result, processes, memory.
"""

import json
import os
import re
import signal

import attacks_by_clients as clients
import attacks_by_server as server
import pytest
import test_deployment
from attacks_on_the_wire import WIRE, Wire
from processes import wait_until
from test_deployment import HERE, local, make_another_key, make_app
from test_lying_clients import Peaks

from fedpcs.privacy.conversion import to_rho

pytestmark = pytest.mark.slow
deployments = test_deployment.deployments

MOST_MEGABYTES = {"superlink": 500, "flwr-serverapp": 1000}  # torch alone takes 600 of the latter
NODES = len(clients.HONEST) + len(clients.ATTACKERS) + 1


def online(folder):
    listed = json.loads(local.flwr(folder, "supernode", "list", "local-tls", "--format", "json").stdout)
    return {int(one["node-id"]) for one in listed["nodes"] if one["status"] == "online"}


def node_id(federation, number):
    return int(re.findall(r"SuperNode ID: (\d+)", federation.log(f"supernode{number}"))[-1])


def test_no_attack_by_clients_ends_a_run_costs_an_honest_one_anything_or_is_paid_where_it_can_be_seen(
    deployments, tmp_path, monkeypatch
):
    monkeypatch.setattr(local, "CLIENTS", tuple(local.CLIENTS * 3)[:NODES])
    monkeypatch.setattr(local, "free_ports", lambda number, ports=local.free_ports: ports(NODES + 2))
    changes = [
        ("rounds = 5", f"rounds = {clients.ROUNDS + 1}"),
        ("sampling_ratio = 0.67", "sampling_ratio = 1.0"),
        ("quorum = 0.5", "quorum = 0.2"),
        test_deployment.PATIENT,
    ]
    app = make_app(tmp_path / "app", changes, client_app=HERE / "attacks_by_clients.py")
    (tmp_path / "loot").mkdir()
    federation = deployments()
    with Peaks(federation) as peaks:
        said = federation.run(app, "run", num_clients=NODES, seconds=3600.0)
    lines = federation.rounds()
    assert len(lines) == clients.ROUNDS + 1, said
    names = [one["name"] for one in json.loads((tmp_path / "run" / "roster.json").read_text())["clients"]]
    assert clients.HELLOS[-1][0]["name"] in names
    place = {number: names.index(f"client-{number}") for number in range(NODES - 1)}
    wrong = {}
    for line in lines:
        told = {one["client"]: one["kind"] for one in [*line["failed"], *line["refused"]]}
        for who in clients.ATTACKERS:
            if line["round"] < len(clients.COLUMNS[who]) and place[who] in line["cohort"]:
                name = clients.COLUMNS[who][line["round"]]
                got = told.get(place[who], clients.COUNTS)
                if not re.fullmatch(clients.TRAIN[name][1], got):
                    wrong[name] = got
    assert not wrong
    assert said.count("does not say who it is") >= len(clients.HELLOS) - 1
    unheard = re.findall(r"client 0 (?:does not answer what was announced|is not drawn)", said)
    assert len(unheard) >= len(clients.BUDGETS) - 1, said
    check_honest(federation, {number: place[number] for number in clients.HONEST}, peaks)
    assert {node_id(federation, number) for number in range(NODES)} <= online(tmp_path)


def check_honest(federation, places, peaks):
    """The run has ended well, honest clients have spent what they agreed to, and who was heard alone is paid."""
    said, lines, folder = federation.log("run"), federation.rounds(), federation.folder
    assert (folder / "run" / "result.json").exists(), said
    for number, place in places.items():
        for line in lines:  # heard whenever it was drawn, and blamed for nothing
            assert (place in line["heard"]) == (place in line["cohort"]), line
            assert place not in {one["client"] for one in [*line["failed"], *line["refused"]]}, line
        agreed = federation.agreed(number)  # it has agreed to one run, no more
        own = [(index, nanos) for index, _, nanos in federation.charges(number)]
        assert own == [(line["round"], agreed[line["round"]]) for line in lines if place in line["cohort"]]
        assert own == [(index, nanos) for index, who, nanos in federation.charges() if int(who) == place]
    paid = [(line["round"], client) for line in lines for client in line["heard"]]
    assert [(index, int(client)) for index, client, _ in federation.owed()] == paid
    for name, most in MOST_MEGABYTES.items():
        assert 0 < peaks[name] < most, dict(peaks)
    assert not list(folder.rglob("executed"))
    assert all(words.isprintable() for words in said.splitlines() if words.startswith("fedpcs:"))
    assert all(process.poll() is None for process in federation.processes[:-1])  # the last is the run
    print(dict(peaks))


def test_no_attack_on_the_wire_ends_a_run_loses_a_node_or_fills_memory(deployments, tmp_path):
    changes = [("rounds = 5", "rounds = 8"), ("sampling_ratio = 0.67", "sampling_ratio = 1.0"), test_deployment.PATIENT]
    app = make_app(tmp_path / "app", changes)
    federation = deployments()
    keys = (3, 4)
    for number in keys:
        make_another_key(tmp_path, number)
        local.register(tmp_path, number)
    with Peaks(federation) as peaks:
        run = federation.start_run(app, "run")
        wait_until(lambda: federation.rounds() or run.poll() is not None, 1200.0, lambda: federation.log("run"))
        wire, later = (Wire(tmp_path, number, federation.ports[0], node_id(federation, 1)) for number in keys)
        wire.join()
        codes = {name: attack(wire) for name, (attack, _) in WIRE.items()}
        later.join()  # what was put into the server's way is met now
        wire.leave()
        later.leave()
        run.wait(timeout=3600.0)
    (tmp_path / "codes.json").write_text(json.dumps(codes))
    assert {name: code for name, code in codes.items() if not re.fullmatch(WIRE[name][1], str(code))} == {}
    assert len(federation.rounds()) == 8, federation.log("run")
    check_honest(federation, {number: number for number in range(3)}, peaks)
    assert {node_id(federation, number) for number in range(3)} <= online(tmp_path)


LIMIT = 4.0  # ε


def test_no_attack_by_a_server_costs_an_honest_client_more_than_its_settings_allow(deployments, tmp_path):
    app = make_app(
        tmp_path / "app",
        [test_deployment.PATIENT],
        server_app=HERE / "attacks_by_server.py",
        forgeries=HERE / "forgeries.py",
    )
    project = app / "pyproject.toml"
    project.write_text(project.read_text().replace("fedpcs_app.client_app:app", "fedpcs_app.server_app:shipped"))
    text = (app / "fedpcs_app" / "run.toml").read_text()
    for number, (old, new, _) in enumerate(server.SHIPPED.values()):
        assert old in text
        (app / "fedpcs_app" / f"run{number}.toml").write_text(text.replace(old, new))
    federation = deployments(limit_epsilon=LIMIT)
    before, home = [], tmp_path / "attacked"
    with Peaks(federation, 1) as peaks:
        run = federation.start_run(app, "attacked", run_dir="attacked")
        wait_until(
            lambda: (home / "kill").exists() or run.poll() is not None, 3600.0, lambda: federation.log("attacked")
        )
        before = [len(federation.charges(number)) for number in range(3)]
        killed = kill_one_at_work(federation, before)
        run.wait(timeout=3600.0)
    assert (home / "attacks.json").exists(), federation.log("attacked")
    told = json.loads((home / "attacks.json").read_text())
    check_server(federation, told, killed)
    assert all(most < 1000 for most in peaks.values()), dict(peaks)

    # Nothing of it is left: the same nodes train for an honest server.
    honest = make_app(tmp_path / "honest", [test_deployment.PATIENT, ("rounds = 5", "rounds = 2")])
    for number in range(3):
        settings = tmp_path / f"node{number}.toml"
        settings.write_text(settings.read_text().replace(f"limit_epsilon = {LIMIT}", f"limit_epsilon = {3 * LIMIT}"))
    said = federation.run(honest, "honest", run_dir="run")
    lines = federation.rounds()
    assert len(lines) == 2, said
    assert all(line["heard"] == line["cohort"] for line in lines), said
    print(dict(peaks))


def kill_one_at_work(federation, before):
    """Kill the client app that has charged for its task and not answered yet; return of which node."""

    def charged():
        return [number for number in range(3) if len(federation.charges(number)) > before[number]]

    wait_until(charged, 1200.0, lambda: federation.log("attacked"))
    (number,) = charged()
    for pid in federation.children(federation.processes[1 + number], "flwr-clientapp"):
        os.kill(pid, signal.SIGKILL)
    return number


def check_server(federation, told, killed):
    found, wanted = told["found"], told["wanted"]
    assert told["names"] == ["client-0", "client-1", "client-2"] or sorted(told["names"]) == test_deployment.NAMES
    wrong = {name: found.get(name) for name, words in wanted.items() if not is_refused(found.get(name, ""), words)}
    for name, (_, _, words) in server.SHIPPED.items():
        if words and not is_refused(found[name], words):
            wrong[name] = found[name]
    assert not wrong
    most = int(to_rho(LIMIT, 1e-5, "tight") * 1e9)
    limits = [name for name, one in found.items() if "reached its limit" in str(one)]
    assert limits  # whoever was asked again and again
    for number in range(3):
        spent = [nanos for _, _, nanos in federation.charges(number)]
        assert sum(spent) <= most
        assert all(0 < nanos <= 0.12e9 for nanos in spent)
        log = federation.log(f"supernode{number}")
        assert all(line.isprintable() for line in log.splitlines() if line.startswith("fedpcs:"))
        assert oct((federation.folder / f"client{number}").stat().st_mode)[-3:] == "700"
    assert not list(federation.folder.rglob("executed"))
    assert not (federation.folder / "etc").exists()
    assert killed in range(3)
    assert all(process.poll() is None for process in federation.processes[:4])
    assert len(online(federation.folder)) == 3


def is_refused(answer, words):
    return isinstance(answer, str) and answer.startswith("refused") and words in answer
