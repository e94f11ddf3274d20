"""A whole federation on this machine: a SuperLink and three SuperNodes, with TLS and node authentication.

    python local_federation.py up      certificates, keys, SuperLink, SuperNodes; stays until Ctrl-C
    python local_federation.py run     in another terminal: train, and print where the report is

On real machines each of these commands runs where it belongs; docs/deploy.md goes through them one by one.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

HERE = Path(__file__).resolve().parent
CLIENTS = ((0.35, 4.0), (0.60, 6.5), (0.85, 9.0))  # privacy aversion and initial budget: each node's own secret
PORTS = (18443, 19094, 19095, 19096)  # of the SuperLink, and of each SuperNode


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of every Flower command: a home of its own, no telemetry, nothing installed behind us."""
    quiet = {
        "FLWR_HOME": str(folder / "flwr"),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
        "OMP_NUM_THREADS": "1",
    }
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"  # Flower starts children by name
    return {**os.environ, **quiet, "PATH": path}


def make_secrets(folder: Path, num_nodes: int) -> None:
    """Write a certificate authority, the server's certificate for localhost, and a key pair for each node."""
    from datetime import UTC, datetime, timedelta
    from ipaddress import ip_address

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    def private(key: ec.EllipticCurvePrivateKey, style: serialization.PrivateFormat) -> bytes:
        return key.private_bytes(serialization.Encoding.PEM, style, serialization.NoEncryption())

    def certificate(
        subject: str, key: ec.EllipticCurvePrivateKey, issuer: str, by: ec.EllipticCurvePrivateKey
    ) -> bytes:
        now = datetime.now(UTC)
        names = [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
        is_authority = subject == issuer
        made = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(minutes=5))
            .not_valid_after(now + timedelta(days=365))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .sign(by, hashes.SHA256())
        )
        return made.public_bytes(serialization.Encoding.PEM)

    folder.mkdir(parents=True, exist_ok=True)
    authority, server = ec.generate_private_key(ec.SECP384R1()), ec.generate_private_key(ec.SECP384R1())
    _write(folder / "ca.crt", certificate("fedpcs example CA", authority, "fedpcs example CA", authority))
    _write(folder / "server.pem", certificate("localhost", server, "fedpcs example CA", authority))
    _write(folder / "server.key", private(server, serialization.PrivateFormat.PKCS8))
    for number in range(num_nodes):
        key = ec.generate_private_key(ec.SECP384R1())
        _write(folder / f"node{number}", private(key, serialization.PrivateFormat.OpenSSH))
        public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
        _write(folder / f"node{number}.pub", public + b"\n")


def write_connection(folder: Path, port: int) -> None:
    """Tell the `flwr` command how to reach the SuperLink."""
    home = folder / "flwr"
    home.mkdir(parents=True, exist_ok=True)
    text = (
        f'[superlink.local-tls]\naddress = "127.0.0.1:{port}"\nroot-certificates = "{folder / "secrets" / "ca.crt"}"\n'
    )
    _write(home / "config.toml", text.encode())


def start_superlink(folder: Path, port: int) -> subprocess.Popen[bytes]:
    """Start the SuperLink: TLS, and only nodes whose keys were registered."""
    secrets = folder / "secrets"
    return _start(
        folder,
        "superlink",
        *("fedpcs", "superlink", "--host", "127.0.0.1", "--port", port, "--enable-supernode-auth"),
        *("--database", folder / "superlink.db"),
        *("--ssl-ca-certfile", secrets / "ca.crt"),
        *("--ssl-certfile", secrets / "server.pem", "--ssl-keyfile", secrets / "server.key"),
    )


def register(folder: Path, number: int, seconds: float = 60.0) -> None:
    """Tell the SuperLink a node's public key, before that node starts; wait for the SuperLink if it is not up yet."""
    until = time.monotonic() + seconds
    while True:
        try:
            flwr(folder, "supernode", "register", str(folder / "secrets" / f"node{number}.pub"), "local-tls")
            return
        except subprocess.CalledProcessError as error:
            if time.monotonic() > until:
                raise SystemExit(f"the SuperLink does not answer: {error.stdout}{error.stderr}") from None
            time.sleep(1.0)


def start_supernode(
    folder: Path,
    number: int,
    port: int,
    node_port: int,
    *,
    authority: Path | None = None,
    key: Path | None = None,
    **told: Any,
) -> subprocess.Popen[bytes]:
    """Start a client's node, told of nothing but where its settings are.

    Args:
        folder: Of the federation.
        number: The client's.
        port: The SuperLink's.
        node_port: Its own.
        authority: Whose server it trusts; by default the federation's.
        key: Its private key; by default the one made for it.
        told: More of its settings.
    """
    secrets = folder / "secrets"
    return _start(
        folder,
        f"supernode{number}",
        *("fedpcs", "node", "--superlink", f"127.0.0.1:{port}", "--host", "127.0.0.1", "--port", node_port),
        *("--root-certificates", authority or secrets / "ca.crt"),
        *("--auth-supernode-private-key", key or secrets / f"node{number}"),
        *("--node-config", settings(settings=write_settings(folder, number, **told))),
    )


def write_settings(folder: Path, number: int, **told: Any) -> Path:
    """Write what a client states itself, to a file that only its owner can read: docs/deploy.md has all keys."""
    aversion, budget = CLIENTS[number % len(CLIENTS)]
    config = {
        "partition_id": number % len(CLIENTS),
        "num_partitions": len(CLIENTS),
        "privacy_aversion": aversion,
        "initial_budget": budget,
        "state_dir": folder / f"client{number}",
        "accepts.budget_unit": 0.01,
        **told,
    }
    lines = [f'{key} = "{it}"' if isinstance(it, str | Path) else f"{key} = {it}" for key, it in config.items()]
    path = folder / f"node{number}.toml"
    _write(path, "\n".join([*lines, ""]).encode())
    return path


def settings(**told: Any) -> str:
    """Return settings as Flower reads them on a command line.

    Example:
        >>> settings(num_clients=2, run_dir="/var/lib/fedpcs")
        'num-clients=2 run-dir="/var/lib/fedpcs"'
    """
    words = {name.replace("_", "-"): value for name, value in told.items()}
    return " ".join(f'{name}="{it}"' if isinstance(it, str | Path) else f"{name}={it}" for name, it in words.items())


def start_run(folder: Path, app: Path, log: str | None = None, **told: Any) -> subprocess.Popen[bytes]:
    """Hand an app to the SuperLink, and follow it to its end; `told` is its run-config, with _ for -."""
    return _start(folder, log, "flwr", "run", app, "local-tls", "--stream", "--run-config", settings(**told))


def flwr(folder: Path, *arguments: str, timeout: float = 600.0) -> subprocess.CompletedProcess[str]:
    """Run a `flwr` command to its end."""
    return subprocess.run(
        ["flwr", *arguments], env=environment(folder), check=True, text=True, capture_output=True, timeout=timeout
    )


def free_ports(number: int) -> tuple[int, ...]:
    """Return ports nobody listens on."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(number)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return tuple(one.getsockname()[1] for one in sockets)


def stop(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """End processes and all that they started."""
    started = descendants(process.pid for process in processes)
    for process in processes:
        if process.poll() is None:
            process.terminate()
    for process in processes:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=15)
    for pid in [*(process.pid for process in processes if process.poll() is None), *started]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for process in processes:
        process.wait()


def descendants(pids: Iterable[int]) -> list[int]:
    """Return the processes that these have started, and those that they have started, also if a parent has ended."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid=,pgid="], check=True, text=True, capture_output=True).stdout
    rows = [[int(number) for number in line.split()] for line in listed.splitlines()]
    known = set(pids)
    found: list[int] = []
    while more := [pid for pid, parent, group in rows if {parent, group} & known and pid not in known]:
        known |= set(more)
        found += more
    return found


def up(folder: Path, ports: Sequence[int] = PORTS, **told: Any) -> list[subprocess.Popen[bytes]]:
    """Bring up a SuperLink and its SuperNodes.

    Args:
        folder: Where keys, logs and state are kept.
        ports: The SuperLink's, then one for each node.
        told: More of every node's settings.
    """
    make_secrets(folder / "secrets", len(CLIENTS))
    write_connection(folder, ports[0])
    processes = [start_superlink(folder, ports[0])]
    try:
        for number in range(len(CLIENTS)):
            register(folder, number)
            processes.append(start_supernode(folder, number, ports[0], ports[1 + number], **told))
    except BaseException:
        stop(processes)
        raise
    return processes


def main() -> None:
    """Bring a federation up, or run the app on it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["up", "run"])
    parser.add_argument("--folder", type=Path, default=Path("federation"), help="where keys, logs and state are kept")
    parser.add_argument("--data-dir", default="", help="where data sets lie, if the run needs one")
    options = parser.parse_args()
    folder = options.folder.resolve()
    data: dict[str, Any] = {"data_dir": Path(options.data_dir).resolve()} if options.data_dir else {}
    if options.command == "up":
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        processes = up(folder, **data)
        print(f"A SuperLink and {len(CLIENTS)} SuperNodes are up; logs in {folder}. Ctrl-C ends them.", flush=True)
        with contextlib.suppress(KeyboardInterrupt), contextlib.ExitStack() as at_the_end:
            at_the_end.callback(stop, processes)
            _watch(folder, processes)
        return
    with start_run(folder, HERE, run_dir=folder / "run", **data) as run:
        sys.exit(run.wait())


def _watch(folder: Path, processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Return when the SuperLink has ended; tell of nodes that end before."""
    names = ["superlink", *(f"supernode{number}" for number in range(len(CLIENTS)))]
    running = dict(zip(names, processes, strict=True))
    while "superlink" in running:
        for name in [name for name, process in running.items() if process.poll() is not None]:
            del running[name]
            print(f"{name} has ended: see {folder / name}.log", flush=True)
        time.sleep(0.5)


def _start(folder: Path, name: str | None, *command: object) -> subprocess.Popen[bytes]:
    """Start a command; what it prints goes to a log of that name, or is seen."""
    with contextlib.ExitStack() as opened:
        log = None if name is None else opened.enter_context(_log(folder / f"{name}.log"))
        own = name is not None  # so that Ctrl-C is for us, and we end what we started
        words = [str(word) for word in command]
        return subprocess.Popen(
            words, env=environment(folder), stdout=log, stderr=log, start_new_session=own, umask=0o077
        )


def _log(path: Path) -> BinaryIO:
    """Open a log that only its owner may read: a node's may name its client's private numbers."""
    path.touch(mode=0o600)
    return path.open("ab")


def _write(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read."""
    path.touch(mode=0o600)
    path.write_bytes(content)


if __name__ == "__main__":
    main()
