"""The record mode audited from end to end: torch gradients, clipping, noise at every step, the update released."""

from __future__ import annotations

import pytest
import torch

from fedpcs.privacy import per_sample, private_training
from fedpcs.studies.audit.attack import run_audit


def audited(num_canaries: int = 40):
    return run_audit("record-training", 1.0, num_canaries=num_canaries, noise="fast").result


@pytest.mark.slow
def test_private_training_keeps_its_claim_and_the_audit_comes_close() -> None:
    found = audited(120)
    assert not found.is_contradicted
    assert 0.5 * found.claim.epsilon < found.bounds.gaussian <= found.claim.epsilon * 1.05


def test_gradients_that_are_not_clipped_contradict_the_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing_clipped(gradients: object, bound: float) -> tuple[torch.Tensor, torch.Tensor]:
        scale, kept = clip_factors(gradients, bound)
        return torch.ones_like(scale), kept

    def anything_goes(clipped_sum, l2_bound: float, num_records: int):
        mean = bounded_mean(clipped_sum * 0.0, l2_bound, num_records)
        object.__setattr__(mean, "value", clipped_sum / num_records)
        return mean

    clip_factors, bounded_mean = per_sample._clip_factors, per_sample.bounded_mean
    monkeypatch.setattr(per_sample, "_clip_factors", nothing_clipped)
    monkeypatch.setattr(per_sample, "bounded_mean", anything_goes)
    assert audited().is_attack_contradicting


def test_a_record_used_twice_an_epoch_is_noticed_before_anything_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    def twice(*arguments):
        for batch in batches(*arguments):
            yield batch
            yield batch

    batches = private_training.disjoint_batches
    monkeypatch.setattr(private_training, "disjoint_batches", twice)
    with pytest.raises(AssertionError):
        audited()
