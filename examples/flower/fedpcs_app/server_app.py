"""What the SuperLink runs."""

from pathlib import Path

from fedpcs.experiments.federation import server_app

app = server_app(Path(__file__).with_name("run.toml"))
