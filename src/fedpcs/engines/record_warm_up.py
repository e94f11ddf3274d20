"""Imported by the process that workers are forked from, so that each finds per-sample gradients ready.

The first call of `torch.func.vmap` imports hundreds of modules, a second's work for every worker.
"""

from __future__ import annotations

import torch

torch.func.vmap(torch.func.grad(lambda value: value.square()))(torch.zeros(2))
