"""A run in a single process, as a cluster of one worker."""

from collections.abc import Mapping
from typing import Any


class LoneWorker:
    """A chief without other workers, with the methods of a Cluster: its decisions are its own."""

    index = 0
    is_chief = True

    def __enter__(self) -> "LoneWorker":
        return self

    def __exit__(self, kind, error, traceback) -> None:
        pass

    def agreed(self, decision: Any) -> Any:
        """Returns the decision, as nobody else decides."""
        return decision

    def require_same(self, settings: Mapping[str, Any]) -> None:
        """Does nothing, as there are no other settings."""

    def pass_on(self, number: int) -> None:
        """Does nothing, as there is nobody to tell of a signal."""
