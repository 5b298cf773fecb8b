"""What every test has in common."""

from hypothesis import HealthCheck, settings

# A slow machine is no mistake of the code under test.
settings.register_profile("tpucfg", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tpucfg")
