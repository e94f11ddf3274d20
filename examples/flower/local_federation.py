"""A whole federation on this machine: a SuperLink and three SuperNodes, with TLS and node authentication.

    python local_federation.py up      certificates, keys, SuperLink, SuperNodes; stays until Ctrl-C
    python local_federation.py run     in another terminal: train, and print where the report is

On real machines each of these commands runs where it belongs; docs/deploy.md goes through them one by one.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
CLIENTS = ((0.35, 4.0), (0.60, 6.5), (0.85, 9.0))  # privacy aversion and initial budget: each node's own secret
PORT = 18443
NODE_PORT = 19094


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
        f"flower-superlink --host 127.0.0.1 --port {port} --ssl-ca-certfile {secrets}/ca.crt "
        f"--ssl-certfile {secrets}/server.pem --ssl-keyfile {secrets}/server.key --enable-supernode-auth",
    )


def register(folder: Path, number: int) -> None:
    """Tell the SuperLink a node's public key, before that node starts."""
    flwr(folder, "supernode", "register", str(folder / "secrets" / f"node{number}.pub"), "local-tls")


def start_supernode(
    folder: Path, number: int, port: int, node_port: int, data_dir: str = ""
) -> subprocess.Popen[bytes]:
    """Start a client's node; what follows --node-config stays on its machine."""
    aversion, budget = CLIENTS[number % len(CLIENTS)]
    told = (
        f"partition-id={number} num-partitions={len(CLIENTS)} privacy-aversion={aversion} initial-budget={budget} "
        f'state-dir="{folder}/client{number}"'
    )
    told += f' data-dir="{data_dir}"' if data_dir else ""
    secrets = folder / "secrets"
    return _start(
        folder,
        f"supernode{number}",
        f"flower-supernode --superlink 127.0.0.1:{port} --root-certificates {secrets}/ca.crt "
        f"--auth-supernode-private-key {secrets}/node{number} --host 127.0.0.1 --port {node_port}",
        "--node-config",
        told,
    )


def flwr(folder: Path, *arguments: str, timeout: float = 600.0) -> subprocess.CompletedProcess[str]:
    """Run a `flwr` command to its end."""
    return subprocess.run(
        ["flwr", *arguments], env=environment(folder), check=True, text=True, capture_output=True, timeout=timeout
    )


def stop(processes: list[subprocess.Popen[bytes]]) -> None:
    """End processes and what they started."""
    for process in processes:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
    for process in processes:
        try:
            process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)


def up(folder: Path, data_dir: str = "", port: int = PORT, node_port: int = NODE_PORT) -> list[subprocess.Popen[bytes]]:
    """Bring up a SuperLink and its SuperNodes."""
    make_secrets(folder / "secrets", len(CLIENTS))
    write_connection(folder, port)
    processes = [start_superlink(folder, port)]
    try:
        for number in range(len(CLIENTS)):
            _retried(folder, number)
            processes.append(start_supernode(folder, number, port, node_port + number, data_dir))
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
    if options.command == "up":
        processes = up(folder, options.data_dir)
        print(f"A SuperLink and {len(CLIENTS)} SuperNodes are up; logs in {folder}. Ctrl-C ends them.", flush=True)
        try:
            while all(process.poll() is None for process in processes):
                time.sleep(0.5)
            print(f"One of them has ended: see {folder}/*.log", flush=True)
        except KeyboardInterrupt:
            pass
        finally:
            stop(processes)
        return
    told = f'run-dir="{folder / "run"}" data-dir="{options.data_dir}"'
    command = ["flwr", "run", str(HERE), "local-tls", "--stream", "--run-config", told]
    sys.exit(subprocess.run(command, env=environment(folder)).returncode)


def _retried(folder: Path, number: int, seconds: float = 60.0) -> None:
    """Register a node as soon as the SuperLink answers."""
    until = time.monotonic() + seconds
    while True:
        try:
            return register(folder, number)
        except subprocess.CalledProcessError as error:
            if time.monotonic() > until:
                raise SystemExit(f"the SuperLink does not answer: {error.stdout}{error.stderr}") from None
            time.sleep(1.0)


def _start(folder: Path, name: str, command: str, *more: str) -> subprocess.Popen[bytes]:
    with (folder / f"{name}.log").open("ab") as log:
        return subprocess.Popen(
            [*command.split(), *more], env=environment(folder), stdout=log, stderr=log, start_new_session=True
        )


def _write(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read."""
    path.touch(mode=0o600)
    path.write_bytes(content)


if __name__ == "__main__":
    main()
