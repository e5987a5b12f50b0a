"""Published algorithms, written anew for comparison: as gates of this project, or around the function."""

from ._aimd_rate import AimdRate
from ._client_throttling import ClientThrottling
from ._failsafe_limit import FailsafeLimit
from ._gradient2_limit import Gradient2Limit

__all__ = ["AimdRate", "ClientThrottling", "FailsafeLimit", "Gradient2Limit"]
