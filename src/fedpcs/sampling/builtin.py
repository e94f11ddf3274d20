"""The samplers that come with fedpcs. A new one is a file of its own and a line here."""

from __future__ import annotations

from typing import Any

from fedpcs.sampling.aocs import AOCSSampler
from fedpcs.sampling.clustered import ClusteredSampler
from fedpcs.sampling.delta import DeltaSampler
from fedpcs.sampling.fed_cbs import FedCBSSampler
from fedpcs.sampling.fedpcs import FedPCSSampler
from fedpcs.sampling.oort import OortSampler
from fedpcs.sampling.optimal import OptimalSampler
from fedpcs.sampling.power_of_choice import PowerOfChoiceSampler
from fedpcs.sampling.random import RandomSampler

SAMPLERS: dict[str, type[Any]] = {
    kind.name: kind
    for kind in (
        RandomSampler,
        FedPCSSampler,
        AOCSSampler,
        FedCBSSampler,
        DeltaSampler,
        PowerOfChoiceSampler,
        OortSampler,
        ClusteredSampler,
        OptimalSampler,
    )
}
