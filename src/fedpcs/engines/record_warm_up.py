"""Imported by the process that workers are forked from, so that each finds per-sample gradients ready.

The first backward pass imports hundreds of modules, a second's work for every worker. They are imported by name: a
backward pass here would start torch's threads for this machine's cards, and processes forked later could not train.
"""

from __future__ import annotations

import importlib

importlib.import_module("torch._dynamo")
