"""Published algorithms, written anew for comparison: as gates of this project, or around the function."""

from ._aimd_rate import AimdRate
from ._client_throttling import ClientThrottling
from ._failsafe_limit import FailsafeLimit
from ._gradient2_limit import Gradient2Limit

__all__ = ["RIVALS", "AimdRate", "ClientThrottling", "FailsafeLimit", "Gradient2Limit"]

# By the name of the contender
RIVALS = {
    "AIMD": "a rate that falls to 0.7 x after a refusal, and rises by 1 per second each second (Chiu and Jain, 1989)",
    "client-side throttling": "a client refuses its own calls, with K = 2 (Site Reliability Engineering, chapter 21)",
    "a fixed share": "`RateLimit` with the service's rate, divided by the number of tasks",
    "Gradient2": "a limit of calls at once that follows the gradient of the latency (Netflix concurrency-limits)",
    "failsafe-go": "its adaptive limiter: thresholds of TCP Vegas, and correlations of latency and throughput",
}
