"""FedPCS on Flower: our server and client functions, carried by its messages. Needs the extra `fedpcs[flower]`.

Flower and Ray report usage to their makers unless told not to. Here they are told not to; whoever sets these variables
otherwise is left alone.
"""

import os

for _name in ("FLWR_TELEMETRY_ENABLED", "RAY_USAGE_STATS_ENABLED"):
    os.environ.setdefault(_name, "0")
os.environ.setdefault("FLWR_DISABLE_UPDATE_CHECK", "1")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # what Ray will do anyway; otherwise it warns of it
