"""`fedpcs audit`: real pipelines keep their claims, the paper's multi-epoch one does not, and the report says so."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from command_line import fedpcs

from fedpcs import _random
from fedpcs.cli.audit import audit_facts
from fedpcs.errors import InvalidInput
from fedpcs.privacy.budget import Rho
from fedpcs.report.figures import audit as audit_figure
from fedpcs.studies.audit.attack import (
    DISTANCE_CHECK,
    Audit,
    AuditPlan,
    Silence,
    _run_trial,
    audit_scenario,
    run_audit,
)
from fedpcs.studies.audit.canaries import (
    LAYER_ENDS,
    LAYERS,
    NUM_PARAMETERS,
    NUM_RECORDS,
    canary_direction,
    make_scenario,
)

SOUND_MODES = ("client", "record", "paper-one-step")
BUDGETS = (0.5, 1.0, 2.0, 5.0)


@cache
def audited(mode: str, rho: float, num_canaries: int = 1000, num_rounds: int = 1) -> Audit:
    """An audit that can be run again: seeded noise."""
    return run_audit(mode, rho, num_canaries=num_canaries, noise="fast", seed=1, num_rounds=num_rounds)


def failed(audit: Audit) -> set[str]:
    return {check.name for check in audit.result.checks if not check.is_passed}


def holds_and_is_tight(mode: str, rho: float, num_canaries: int = 1000) -> None:
    """No bound passes the claim beyond chance, and the Gaussian one shows at least three quarters of it."""
    audit = audited(mode, rho, num_canaries)
    found = audit.result
    assert failed(audit) == set()
    assert max(found.verdict_bounds.gaussian, found.verdict_bounds.clopper_pearson) <= found.claim.epsilon
    assert not found.is_contradicted
    assert found.bounds.clopper_pearson <= found.claim.epsilon
    assert found.bounds.gaussian >= 0.75 * found.claim.epsilon
    # The standard error of an area of n + n scores is at most 0.5/√n.
    assert found.auc == pytest.approx(found.claim.auc, abs=5.0 * 0.5 / math.sqrt(num_canaries))


@pytest.mark.parametrize("rho", [BUDGETS[0], *(pytest.param(rho, marks=pytest.mark.slow) for rho in BUDGETS[1:])])
def test_the_client_mode_keeps_its_claim_and_the_audit_comes_close(rho):
    holds_and_is_tight("client", rho)


def test_the_record_mode_keeps_its_claim_and_the_audit_comes_close():
    holds_and_is_tight("record", 5.0, num_canaries=400)


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "rho"), [(m, r) for m in SOUND_MODES for r in BUDGETS])
def test_the_rest_of_the_modes_and_budgets_keep_their_claims(mode, rho):
    holds_and_is_tight(mode, rho)


@pytest.mark.parametrize("mode", SOUND_MODES)
@pytest.mark.parametrize("noise", ["secure", "exact"])
def test_noise_that_no_seed_repeats_keeps_claims_too(mode, noise):
    found = run_audit(mode, 1.0, num_canaries=40, noise=noise)
    assert found.is_guarantee
    assert not found.result.is_contradicted


@pytest.mark.parametrize("mode", ["client", pytest.param("record", marks=pytest.mark.slow)])
def test_rounds_add_up(mode):
    one, four = (audited(mode, 0.5, 60, num_rounds) for num_rounds in (1, 4))
    assert four.result.claim.rho == Rho.of(2.0)
    assert not four.result.is_contradicted
    assert four.result.auc > one.result.auc
    assert four.result.auc == pytest.approx(four.result.claim.auc, abs=5.0 * 0.5 / math.sqrt(60.0))


@pytest.mark.parametrize("rho", [1.0, 5.0])
def test_the_paper_s_claim_is_contradicted_by_several_local_steps(rho):
    """Erratum 12: 2W/|D| is what one record moves a mean of clipped gradients by, not a clipped multi-epoch update."""
    found = audited("paper", rho, 200)
    assert found.result.is_attack_contradicting
    assert failed(found) == {DISTANCE_CHECK}
    assert found.scenario.remark


@pytest.mark.slow
def test_a_lone_lower_bound_above_the_claim_is_no_verdict():
    """One sound audit in twenty passes its claim at 95 %; the verdict must not."""
    num_above = 0
    for seed in range(30):
        found = run_audit("client", 1.0, num_canaries=20, noise="fast", seed=seed).result
        num_above += found.bounds.gaussian > found.claim.epsilon
        assert not found.is_contradicted
    assert num_above <= 10  # binomial, 30 trials of 1/20: passed once in a million times


@pytest.mark.parametrize("mode", [*SOUND_MODES, "paper"])
def test_neighbours_are_the_worst_the_claim_speaks_of_and_come_out_as_the_auditor_expects(mode):
    scenario = make_scenario(mode, Rho.of(0.7))
    stddev = scenario.noise_stddev(None)
    for index in range(12):
        rng = _random.generator(3, "test", client=index)
        pair = scenario.make_neighbours(rng, canary_direction(rng, index))
        for raw, expected in ((pair.held_in, pair.expected_in), (pair.held_out, pair.expected_out)):
            np.testing.assert_allclose(scenario.pipeline(raw, Silence()), expected, rtol=1e-9, atol=1e-12)
        distance = np.linalg.norm(pair.expected_in - pair.expected_out) / stddev
        claimed = math.sqrt(2.0 * 0.7)
        if mode == "paper":
            assert 0.98 * NUM_RECORDS * claimed < distance <= (1.0 + 1e-9) * NUM_RECORDS * claimed
        else:
            assert distance == pytest.approx(claimed, rel=1e-9)


def test_record_neighbours_differ_in_one_record_of_one_batch_of_each_epoch():
    scenario = make_scenario("record", Rho.of(1.0))
    rng = np.random.default_rng(0)
    pair = scenario.make_neighbours(rng, canary_direction(rng, 5))
    differs = (pair.held_in != pair.held_out).any(axis=2).reshape(2, -1)
    assert differs.sum(axis=1).tolist() == [1, 1]


def test_canaries_take_turns_through_the_layers_and_never_share_a_direction():
    rng = np.random.default_rng(0)
    directions = np.stack([canary_direction(rng, index) for index in range(12)])
    np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1.0)
    starts = (0, *LAYER_ENDS)
    for layer in range(len(LAYERS)):
        inside = directions[layer, starts[layer] : starts[layer + 1]]
        assert np.linalg.norm(inside) == pytest.approx(1.0)
    assert np.count_nonzero(directions[len(LAYERS)]) == NUM_PARAMETERS
    # All but the layer of a single parameter, where two directions cannot differ but in sign.
    several = [k for k in range(12) if k % 6 != 4]
    assert np.abs(np.triu(directions[several] @ directions[several].T, 1)).max() < 0.9


def test_scores_are_standard_normals_around_half_the_distance():
    """ρ = 2, so μ = 2; 300 scores on either side, five standard errors."""
    scenario, plan = make_scenario("client", Rho.of(2.0)), AuditPlan(noise="fast")
    scores = np.array([_run_trial(scenario, plan, scenario.noise_stddev(None), index)[0] for index in range(600)])
    for side, centre in ((scores[::2], 1.0), (scores[1::2], -1.0)):
        assert side.mean() == pytest.approx(centre, abs=5.0 / math.sqrt(300.0))
        assert side.std() == pytest.approx(1.0, abs=5.0 / math.sqrt(600.0))


def test_a_pipeline_that_releases_no_numbers_is_refused():
    scenario = make_scenario("client", Rho.of(1.0))
    broken = replace(scenario, pipeline=lambda raw, source: np.full((1, NUM_PARAMETERS), math.nan))
    with pytest.raises(InvalidInput):
        audit_scenario(broken, AuditPlan(20))


def test_tiny_budgets_pay_for_their_grid_and_are_not_contradicted():
    """At ρ = 3e-9 the grid costs a few per cent of noise, and half a billionth cannot be spent."""
    assert not run_audit("record", 3e-9, num_canaries=100).result.is_contradicted


BAD = [math.nan, math.inf, -1, True, "1", None]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("num_canaries", [*BAD, 9, 10.0]),
        ("num_rounds", [*BAD, 0, 1.5]),
        ("seed", [*BAD, 0.5]),
        ("delta", [*BAD, 0, 1]),
        ("confidence", [*BAD, 0.5, 1.0]),
        ("noise", [*BAD, "loud"]),
    ],
)
def test_bad_settings_are_refused_by_name(name, values):
    for value in values:
        with pytest.raises(InvalidInput, match=name):
            run_audit("client", 1.0, **{"num_canaries": 20, name: value})


@pytest.mark.parametrize("bad", [*BAD, 0, 0.0, 1e300])
def test_bad_budgets_are_refused(bad):
    with pytest.raises(InvalidInput, match="rho"):
        run_audit("client", bad, num_canaries=20)


@pytest.mark.parametrize("bad", ["both", None, 1])
def test_bad_modes_are_refused(bad):
    with pytest.raises(InvalidInput, match="mode"):
        run_audit(bad, 1.0)


def printed(audit: Audit) -> str:
    return "\n".join(f"{name} {text}" for name, text in audit_facts(audit).items()).replace("\N{NO-BREAK SPACE}", " ")


def test_only_sources_without_a_seed_may_be_called_a_guarantee():
    fast = audited("client", 1.0, 200)
    secure = replace(fast, plan=replace(fast.plan, noise="secure"), is_guarantee=True)
    assert "the guarantee holds" in printed(secure)
    assert "the guarantee holds" not in printed(fast)


def test_bounds_are_printed_rounded_down():
    found = audited("client", 1.0)
    bounds = replace(found.result.bounds, gaussian=5.99999, clopper_pearson=1.23456, ceiling=9.8765)
    text = printed(replace(found, result=replace(found.result, bounds=bounds)))
    for said in ("ε ≥ 5.99 assuming a Gaussian", "ε ≥ 1.23 assuming nothing", "9.87 at most"):
        assert said in text


@pytest.mark.parametrize("mode", ["client", "paper"])
def test_the_figure_draws_both_curves(mode):
    found = audited(mode, 1.0, 200)
    for axes in audit_figure.roc_figure(found).axes:
        drawn = {str(line.get_label()).split(",")[0]: line.get_xydata() for line in axes.get_lines()}
        np.testing.assert_array_equal(drawn["the attack"].T, found.result.roc)
        rates, allowed = drawn["most the claim allows"].T
        np.testing.assert_array_equal(allowed, found.result.claim.true_positive_rate(rates))


def test_the_band_is_where_sound_attacks_fall():
    """Of 300 simulated attacks, about 95 % lie inside at each point."""
    claim = audited("client", 1.0).result.claim
    rates, low, high = audit_figure.claim_band(claim, 200)
    point = int(np.searchsorted(rates, 0.1))
    rng = np.random.default_rng(5)
    num_inside = 0
    for _ in range(300):
        held_in, held_out = rng.normal(claim.distance, 1.0, 200), rng.normal(0.0, 1.0, 200)
        threshold = np.sort(held_out)[::-1][round(rates[point] * 200)]
        num_inside += low[point] <= (held_in > threshold).mean() <= high[point]
    assert 0.88 <= num_inside / 300 <= 0.99


def test_a_sound_mode_exits_0_with_one_object_and_a_picture(tmp_path: Path):
    done = fedpcs("audit", "--canaries", 50, "--rho", 0.5, "--rounds", 2, "--json", "--figure", "roc.png", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["status"] == "not-contradicted"
    assert found["reasons"] == []
    assert found["claim"]["rho"] == 1.0
    assert found["claim"]["epsilon"] == pytest.approx(6.57297, abs=1e-5)
    assert found["noise"] == {"source": "secure", "is_guarantee": True}
    assert found["lower_bounds"]["confidence"] == 0.95
    assert {"clopper_pearson", "gaussian", "ceiling"} <= set(found["lower_bounds"])
    assert "roc.png" in done.stderr
    assert (tmp_path / "roc.png").read_bytes().startswith(b"\x89PNG")


def test_the_paper_s_mode_exits_7_and_says_why(tmp_path: Path):
    done = fedpcs("audit", "--mode", "paper", "--canaries", 50, cwd=tmp_path)
    assert done.returncode == 7
    assert "CONTRADICTED" in done.stdout
    assert "expected" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--rho", "-1"), "rho"),
        (("--figure", "absent/folder/roc.png"), "--figure"),
    ],
)
def test_bad_arguments_are_one_line_and_exit_2(arguments, words, tmp_path):
    done = fedpcs("audit", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_seeded_audits_can_be_repeated_and_other_seeds_differ():
    first, again, other = (run_audit("record", 1.0, num_canaries=20, noise="fast", seed=s).result for s in (1, 1, 2))
    assert first.bounds == again.bounds
    np.testing.assert_array_equal(first.roc, again.roc)
    assert first.auc != other.auc
