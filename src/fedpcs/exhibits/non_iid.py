"""The paper's non-IID figure: what label skew costs each sampler, from the accuracy table's cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from matplotlib.figure import Figure

from fedpcs.exhibits.accuracy_cells import TUNED, Run, setting_of, shrunk
from fedpcs.exhibits.accuracy_table import findings_of, tune_and_run
from fedpcs.exhibits.profiles import Profile
from fedpcs.report.figures.bars import bars_figure
from fedpcs.report.page import Drawing, Page, Table
from fedpcs.report.study_page import comparison_page
from fedpcs.report.tables import difference_text
from fedpcs.studies.cell_store import Done
from fedpcs.studies.groups import Group, Series, against, group, has_common_seed
from fedpcs.studies.points import Bar


def make_page(dataset: str, profile: Profile, run: Run) -> Page:
    """Run the accuracy table's cells and return the page of the skewed ones."""
    _, done = tune_and_run(dataset, profile, run)
    return page_of(dataset, profile, done)


def page_of(dataset: str, profile: Profile, done: Sequence[Done]) -> Page:
    """Return the page of finished cells, IID and skewed."""
    groups = group(done)
    skewed = [one for one in groups if one.point["data.partition"] == "dirichlet"]
    pairs = [(one, even) for one in skewed if (even := _even(one, groups)) is not None]
    costs = {
        one.words: [
            _cost(series, other)
            for series in one.series
            if (other := even.of(series.sampler)) is not None and has_common_seed(series, other)
        ]
        for one, even in pairs
    }
    costs = {words: bars for words, bars in costs.items() if bars}
    base = comparison_page(
        "non-iid",
        [one for one in done if one.cell.point["data.partition"] == "dirichlet"],
        command=f"fedpcs reproduce non-iid --dataset {dataset} --profile {profile}",
    )
    return replace(
        base,
        name=f"non-iid-{dataset}",
        title=f"Label skew on {dataset}",
        headline=_headline(costs),
        shrunk=shrunk(setting_of(dataset, profile), [TUNED]),
        findings=tuple(finding for one in skewed for finding in findings_of(dataset, one)),
        tables=(*base.tables, *(_table(words, bars) for words, bars in costs.items())),
        drawings=tuple(_drawing(words, bars) for words, bars in costs.items()),
    )


def _even(skewed: Group, groups: Sequence[Group]) -> Group | None:
    """Return the IID group that differs from a skewed one by the split alone."""
    wanted = {**skewed.point, "data.partition": "iid"}
    return next((one for one in groups if one.variant == skewed.variant and dict(one.point) == wanted), None)


def _cost(skewed: Series, even: Series) -> Bar:
    found = against(skewed, even)
    return Bar(skewed.sampler, found.mean, found.low, found.high)


def _table(words: str, bars: Sequence[Bar]) -> Table:
    rows = tuple((bar.label, difference_text(bar)) for bar in bars)
    return Table(f"What skew changes: {words}", ("sampler", "Dirichlet minus IID, points"), rows)


def _drawing(words: str, bars: Sequence[Bar]) -> Drawing:
    def draw() -> Figure:
        return bars_figure(bars, _told(bars), f"{words}; accuracy under Dirichlet(0.5) minus IID, same seeds.")

    return Drawing(f"cost of skew {words}", draw)


def _headline(costs: dict[str, list[Bar]]) -> str:
    if not costs:
        return "No pair of IID and skewed cells is done yet."
    words, bars = next(iter(costs.items()))
    return f"{_told(bars)} ({words})."


def _told(bars: Sequence[Bar]) -> str:
    """Say what skew costs. Whose interval leaves zero out is no difference between samplers, so nobody is named."""
    low, high = (100.0 * pick(-bar.mean for bar in bars) for pick in (min, max))
    clear = sum(bar.high < 0.0 for bar in bars)
    told = f"{low:.1f} to {high:.1f} points, by sampler".replace("-", "−")
    return f"Label skew costs {told}; seeds are sure of it for {clear} of {len(bars)}"
