"""The samplers that come with fedpcs, each in a file of its own. A new one is a file here and a line below."""

from __future__ import annotations

from typing import Any

from fedpcs.sampling.samplers.aocs import AOCSSampler
from fedpcs.sampling.samplers.clustered import ClusteredSampler
from fedpcs.sampling.samplers.delta import DeltaSampler
from fedpcs.sampling.samplers.fed_cbs import FedCBSSampler
from fedpcs.sampling.samplers.fedpcs import FedPCSSampler
from fedpcs.sampling.samplers.oort import OortSampler
from fedpcs.sampling.samplers.optimal import OptimalSampler
from fedpcs.sampling.samplers.power_of_choice import PowerOfChoiceSampler
from fedpcs.sampling.samplers.random import RandomSampler

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
