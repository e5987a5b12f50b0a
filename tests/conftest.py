"""How long Hypothesis looks: `--hypothesis-profile=soak` makes it look long."""

from hypothesis import HealthCheck, settings

# A virtual hour takes a real millisecond or a second, as the machine likes: no deadline.
settings.register_profile("quick", deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("soak", settings.get_profile("quick"), max_examples=10_000)
settings.load_profile("quick")
