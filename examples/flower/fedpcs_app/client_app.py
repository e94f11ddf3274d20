"""What every SuperNode runs."""

from pathlib import Path

from fedpcs.deploy.client_app import client_app

app = client_app(Path(__file__).with_name("run.toml"))
