"""How property tests search: no test may depend on how fast the machine is."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "rackwright",
    deadline=None,
    derandomize="CI" in os.environ,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("rackwright")
