"""The page in a real browser: no complaint, no request, nothing beyond the screen's edge, by day and by night."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pages import SAMPLERS, full_page

from fedpcs.report.figures.bars import bars_figure
from fedpcs.report.figures.lines import lines_figure, mean_line
from fedpcs.report.figures.tradeoff import tradeoff_figure
from fedpcs.report.page import Drawing, Page, Table
from fedpcs.report.render import write_page
from fedpcs.studies.paired import PairedDifference
from fedpcs.studies.points import TradeOff

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs a browser: no `chromium` was found on the PATH"),
]

# The page has no script, and its policy allows none. A copy may have one that tells the page around it what the browser
# made of it. It is a page in a page because no window of a browser without a screen is narrower than 500 pixels.
PROBE = """
<script>
window.addEventListener("load", () => {
  const root = document.documentElement, images = [...document.images];
  const beyond = [...document.querySelectorAll("body *")].filter(one =>
    one.getBoundingClientRect().right > root.clientWidth + 1 && !one.closest(".wide"));
  parent.postMessage(JSON.stringify({
    width: window.innerWidth, scroll: root.scrollWidth, beyond: beyond.map(one => one.tagName + "." + one.className),
    dark: matchMedia("(prefers-color-scheme: dark)").matches,
    drawn: images.filter(one => one.complete && one.naturalWidth > 0).length, images: images.length,
    turned: images.filter(one => getComputedStyle(one).filter !== "none").length,
    sliding: [...document.querySelectorAll(".wide")].filter(one => one.scrollWidth > one.clientWidth).length,
  }), "*");
});
</script>
"""
FORBIDS_ALL = "default-src 'none';"
AROUND = """
<!DOCTYPE html><html><head><style>:root { color-scheme: light dark; } iframe { border: 0; }</style></head>
<body><pre id="probe"></pre><script>
window.addEventListener("message", told => { document.getElementById("probe").textContent = told.data; });
</script><iframe src="SOURCE" width="WIDTH" height="3000"></iframe></body></html>
"""


@dataclass(frozen=True)
class Seen:
    """What a browser saw.

    Attributes:
        facts: What the probe wrote down.
        complaints: Lines of its console.
        requests: Addresses it asked for beyond the disk.
    """

    facts: dict[str, Any]
    complaints: list[str]
    requests: set[str]


def look(path: Path, *, width: int = 1280, is_dark: bool = False) -> Seen:
    """Load a page without a screen, every name on the network leading nowhere."""
    log, around = path.with_suffix(".net.json"), path.with_name("around.html")
    around.write_text(AROUND.replace("SOURCE", path.name).replace("WIDTH", str(width)), encoding="utf-8")
    assert CHROMIUM is not None
    done = subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--no-first-run",
            "--hide-scrollbars",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            f"--user-data-dir={path.parent / 'profile'}",
            f"--log-net-log={log}",
            "--enable-logging=stderr",
            "--window-size=1400,3100",
            f"--blink-settings=preferredColorScheme={0 if is_dark else 1}",
            "--virtual-time-budget=2000",
            "--dump-dom",
            around.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    found = re.search(r'<pre id="probe">(\{.*?\})</pre>', done.stdout)
    complaints = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return Seen(json.loads(found[1]) if found else {}, complaints, requests(log))


def requests(log: Path) -> set[str]:
    """Return addresses in a net log that a page had a hand in: those asked for on behalf of its own frame."""
    text = log.read_text(encoding="utf-8").rstrip().rstrip(",")
    events = json.loads(text if text.endswith("}") else text + "]}")["events"]
    asked = [event["params"] for event in events if "url" in event.get("params", {})]
    return {
        one["url"]
        for one in asked
        if re.match("https?:|wss?:|ftp:", one["url"]) and one.get("initiator", "not an origin") != "not an origin"
    }


def demo() -> Page:
    rounds = np.arange(1.0, 60.0)
    curves = {
        name: mean_line(rounds, (0.9 - 0.01 * k) * (1 - np.exp(-rounds[None] / 9))) for k, name in enumerate(SAMPLERS)
    }
    points = [
        TradeOff(name, rule, 3.0 * 1.4**k, 100.0 * k, 0.8 - 0.01 * k - 0.01 * j, 0.01)
        for k, name in enumerate(SAMPLERS)
        for j, rule in enumerate(("hajek", "precision"))
    ]
    bars = {
        "without the precision-weighted aggregation rule": PairedDifference(-0.01, -0.02, 0.01, 3),
        "b": PairedDifference(0.1, -math.inf, math.inf, 1),
    }
    wide = Table(
        "Wide", tuple(f"a rather long heading {k}" for k in range(9)), (tuple("1,234.56 ± 7.89" for _ in range(9)),)
    )
    return full_page(
        tables=(*full_page().tables, wide),
        drawings=(
            Drawing("Curves", lambda: lines_figure("Accuracy", curves, "accuracy")),
            Drawing("Points", lambda: tradeoff_figure(points, "epsilon", "Privacy")),
            Drawing("Bars", lambda: bars_figure(bars, "Parts")),
        ),
        commands=(("fedpcs reproduce --data-dir /" + "a-long-folder/" * 12, "Runs it again"),),
        provenance={"data checksum": "sha256:" + "0123456789abcdef" * 4},
    )


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = write_page(demo(), tmp_path_factory.mktemp("page"))
    html = path.read_text(encoding="utf-8")
    assert FORBIDS_ALL in html
    allowed = html.replace(FORBIDS_ALL, f"{FORBIDS_ALL} script-src 'unsafe-inline';")
    path.write_text(allowed.replace("</body>", PROBE + "</body>"), encoding="utf-8")
    return path


@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_is_whole_on_every_screen(report: Path, width: int, is_dark: bool) -> None:
    seen = look(report, width=width, is_dark=is_dark)
    assert seen.complaints == []
    assert seen.requests == set()
    assert seen.facts["width"] == width
    assert seen.facts["scroll"] <= width
    assert seen.facts["beyond"] == []
    assert width > 760 or seen.facts["sliding"] == 0
    assert seen.facts["drawn"] == seen.facts["images"] == 3
    assert seen.facts["dark"] is is_dark
    assert seen.facts["turned"] == (3 if is_dark else 0)


def test_a_script_and_a_picture_that_got_into_a_page_stay_dead(tmp_path: Path) -> None:
    """Escaping keeps them out; this is what happens if it ever fails."""
    path = write_page(full_page(), tmp_path)
    foreign = "<img src='http://127.0.0.1:9/x.png' onerror='console.error(1)'>"
    html = path.read_text(encoding="utf-8").replace("</body>", foreign + PROBE + "</body>")
    path.write_text(html, encoding="utf-8")
    seen = look(path)
    assert seen.facts == {}
    assert seen.requests == set()
    assert len(seen.complaints) >= 2
    assert all("Content Security Policy" in line for line in seen.complaints)
    path.write_text(html.replace(FORBIDS_ALL, ""), encoding="utf-8")
    assert look(path).facts["images"] > 0  # without the policy's first rule it does run


def test_a_page_that_complains_and_asks_would_be_caught(tmp_path: Path) -> None:
    path = tmp_path / "bad.html"
    bad = "<body><img src='http://127.0.0.1:9/x.png'><script>console.error('oh')</script></body>"
    path.write_text(bad + PROBE, encoding="utf-8")
    seen = look(path)
    assert any("oh" in line for line in seen.complaints)
    assert "http://127.0.0.1:9/x.png" in seen.requests
