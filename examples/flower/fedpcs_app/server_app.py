"""What the SuperLink runs."""

from pathlib import Path

from fedpcs.deploy.server_app import server_app
from fedpcs.report.study import write_report_safely

app = server_app(Path(__file__).with_name("run.toml"), when_done=write_report_safely)
