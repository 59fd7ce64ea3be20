"""What Prometheus may ask: how many requests, how long they took, what the encoder did."""

import os

from prometheus_client import REGISTRY as EVERYTHING
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest, multiprocess

from medgrape.server.settings import METRICS_FOLDER

REQUESTS = Counter("medgrape_requests", "Requests answered.", ["method", "route", "status"])
SECONDS = Histogram(
    "medgrape_request_seconds", "Time to answer.", ["method", "route"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)  # fmt: skip
ENCODED = Counter("medgrape_films_encoded", "Films that a backbone was run for.")
BATCHES = Counter("medgrape_encoder_batches", "Batches in which it was run.")
REFUSED = Counter("medgrape_films_refused", "Uploads that were no readable film.")
WARNINGS = Counter("medgrape_mismatch_warnings", "Boxes that the safety check doubted and nobody had confirmed.")


def exposed() -> bytes:
    """All figures of all workers, as text."""
    if not os.environ.get(METRICS_FOLDER):
        return generate_latest(EVERYTHING)
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry)
