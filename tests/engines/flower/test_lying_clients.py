"""A real deployment, and a client that lies on the wire: no run ends, no node is lost, memory is bounded.

The SuperLink keeps a database, as docs/deploy.md has it: one reply of 20,000 records locks it where nothing stops it.
"""

import json
import threading
import time
from collections import defaultdict
from pathlib import Path

import pytest
import test_deployment
from processes import wait_until
from test_deployment import HERE, local, make_app, spent_where_drawn

pytestmark = pytest.mark.slow
deployments = test_deployment.deployments

LIES = ["protobuf", "records", "bulk", "header", "chunks", "words", "error"]
# What the log says of each: kinds of failures and refusals. A reply that the SuperLink has refused never came.
KINDS = {
    "protobuf": {"message"},
    "records": {"deadline", "died"},
    "bulk": {"deadline", "died"},
    "header": {"message"},
    "chunks": {"deadline", "died"},
    "words": {"message"},
    "error": {"raised"},
}
MOST_MEGABYTES = {"superlink": 500, "flwr-serverapp": 1000}  # torch alone takes 600 of the latter


class Peaks:
    """Looks at the memory of the SuperLink, and of nodes, and of all that they start, until the block ends."""

    def __init__(self, federation, *nodes):
        self.watched = [federation.superlink.pid, *(federation.processes[1 + number].pid for number in nodes)]
        self.is_over, self.found = threading.Event(), defaultdict(int)
        self.thread = threading.Thread(target=self._look)

    def __enter__(self):
        self.thread.start()
        return self.found

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join()

    def _look(self):
        superlink = self.watched[0]
        while not self.is_over.wait(0.5):
            for pid in [*self.watched, *local.descendants(self.watched)]:
                try:
                    words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
                    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
                except OSError:
                    continue
                name = "superlink" if pid == superlink else Path(words[1] if len(words) > 1 else words[0]).name
                self.found[name] = max(self.found[name], int(status.get("VmHWM", "0 kB").split()[0]) // 1024)


def test_no_lie_on_the_wire_ends_a_run_loses_a_node_or_fills_memory(deployments, tmp_path):
    changes = [
        ("rounds = 5", f"rounds = {len(LIES) + 1}"),
        ("sampling_ratio = 0.67", "sampling_ratio = 1.0"),
        ("quorum = 0.5", "quorum = 0.3"),
        ("deadline_seconds = 60.0", "deadline_seconds = 90.0"),
    ]
    app = make_app(tmp_path / "app", changes, client_app=HERE / "lying_client_app.py")
    federation = deployments()
    (tmp_path / "faults").write_text(" ".join(f"train{index}:{lie}" for index, lie in enumerate(LIES)))
    with Peaks(federation) as peaks:
        said = federation.run(app, "run", seconds=2400.0)
    lines = federation.rounds()
    assert len(lines) == len(LIES) + 1, said
    for line, lie in zip(lines, LIES, strict=False):
        assert line["heard"] == [0, 2], line
        (told,) = [*line["failed"], *line["refused"]]
        assert (told["client"], told["kind"] in KINDS[lie]) == (1, True), line
        assert told["reason"].isprintable()
    assert lines[-1]["heard"] == [0, 1, 2]
    assert all(words.isprintable() for words in said.splitlines() if words.startswith("fedpcs:"))
    assert said.count("round 9: 3 of 3 heard") == 0
    # Nobody was charged twice for a round, and every node is there.
    for number in range(3):
        spent_where_drawn(federation, number)
        assert [index for index, _, _ in federation.charges(number)] == list(range(len(lines)))
    assert all(process.poll() is None for process in federation.processes[:4])
    listed = json.loads(local.flwr(tmp_path, "supernode", "list", "local-tls", "--format", "json").stdout)
    assert [one["status"] for one in listed["nodes"]] == ["online"] * 3
    for name, most in MOST_MEGABYTES.items():
        assert 0 < peaks[name] < most, peaks
    print(dict(peaks))


def test_a_client_that_lies_from_the_first_word_keeps_nobody_from_starting(deployments, tmp_path):
    changes = [("rounds = 5", "rounds = 2"), ("sampling_ratio = 0.67", "sampling_ratio = 1.0")]
    app = make_app(tmp_path / "app", changes, client_app=HERE / "lying_client_app.py")
    federation = deployments()
    (tmp_path / "faults").write_text("hello:records")
    federation.start_run(app, "run")
    wait_until(lambda: federation.log("run").count("is connected") == 2, 300.0, lambda: federation.log("run"))
    time.sleep(30.0)
    (tmp_path / "faults").write_text("")  # it thinks better of it
    wait_until(lambda: (tmp_path / "run" / "result.json").exists(), 600.0, lambda: federation.log("run"))
    assert all(process.poll() is None for process in federation.processes[:4])
