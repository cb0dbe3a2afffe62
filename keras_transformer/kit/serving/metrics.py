"""The counts of a server, in the text format of Prometheus."""

from collections import Counter
from collections.abc import Iterable, Mapping

PREFIX = "keras_transformer"


class RequestCounts:
    """Counts of the requests that were answered.

    Attributes:
        by_status: number of requests by path and status.
        seconds: time that requests took, by path.
    """

    def __init__(self):
        self.by_status: Counter[tuple[str, int]] = Counter()
        self.seconds: Counter[str] = Counter()

    def add(self, path: str, status: int, seconds: float) -> None:
        """Adds a request.

        Args:
            path: the path of its endpoint; one of a fixed number, whatever clients send.
            status: the HTTP status of its answer.
            seconds: the time from its headers to its answer.
        """
        self.by_status[path, status] += 1
        self.seconds[path] += seconds

    @property
    def requests(self) -> int:
        """The number of all requests."""
        return self.by_status.total()

    @property
    def errors(self) -> int:
        """The number of those that were rejected or failed."""
        return sum(count for (_, status), count in self.by_status.items() if status >= 400)

    def by_path(self) -> Counter[str]:
        """Returns the number of requests by path."""
        counts: Counter[str] = Counter()
        for (path, _), count in self.by_status.items():
            counts[path] += count
        return counts


def metrics_text(
    counts: RequestCounts, sentences: int, documents: int, batches: int, waiting: Mapping[str, int]
) -> str:
    """Returns the counts of a server as Prometheus reads them.

    Args:
        counts: of its requests.
        sentences, documents: number of those that were translated.
        batches: number of calls that translated sentences of several requests.
        waiting: number of requests that wait in each queue.
    """
    requests = [
        (f'_total{{path="{path}",status="{status}"}}', count)
        for (path, status), count in sorted(counts.by_status.items())
    ]
    seconds = []
    for path, count in sorted(counts.by_path().items()):
        seconds.append((f'_sum{{path="{path}"}}', round(counts.seconds[path], 3)))
        seconds.append((f'_count{{path="{path}"}}', count))
    queues = [(f'{{queue="{name}"}}', count) for name, count in waiting.items()]
    metrics = [
        metric(
            "requests", "counter", "Requests answered; a status from 400 is a refusal.", requests
        ),
        metric("request_seconds", "summary", "Seconds that requests took.", seconds),
        metric("sentences", "counter", "Sentences translated.", [("_total", sentences)]),
        metric("documents", "counter", "Texts of any length translated.", [("_total", documents)]),
        metric("batches", "counter", "Joint calls of the model.", [("_total", batches)]),
        metric("waiting_requests", "gauge", "Requests that wait for the model.", queues),
    ]
    return "".join(metrics)


def metric(name: str, kind: str, help: str, samples: Iterable[tuple[str, float]]) -> str:
    """Returns one metric.

    Args:
        name: its name, without prefix and suffix.
        kind: counter, gauge or summary.
        help: what it counts.
        samples: the end of each name, with labels, and the value.
    """
    full = f"{PREFIX}_{name}"
    named = f"{full}_total" if kind == "counter" else full
    lines = [f"# HELP {named} {help}", f"# TYPE {named} {kind}"]
    lines += [f"{full}{end} {value}" for end, value in samples]
    return "\n".join(lines) + "\n"
