"""How often one caller may ask: a bucket that fills steadily and is emptied by requests."""

import time
from collections import OrderedDict
from dataclasses import dataclass

_MOST_CALLERS = 10_000


@dataclass
class _Bucket:
    left: float
    at: float


class RateLimit:
    """A bucket for each caller; those who have not called for longest are forgotten."""

    def __init__(self, per_second: float, burst: float) -> None:
        self._rate, self._burst = per_second, burst
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def wait(self, caller: str, now: float | None = None) -> float:
        """0 if the caller may go on, else in how many seconds. Called from one thread: the event loop's."""
        now = time.monotonic() if now is None else now
        bucket = self._buckets.pop(caller, None) or _Bucket(self._burst, now)
        bucket.left = min(self._burst, bucket.left + (now - bucket.at) * self._rate)
        bucket.at = now
        self._buckets[caller] = bucket
        while len(self._buckets) > _MOST_CALLERS:
            self._buckets.popitem(last=False)
        if bucket.left < 1:
            return (1 - bucket.left) / self._rate
        bucket.left -= 1
        return 0.0
