"""A single-process run, as a cluster of one worker."""

from collections.abc import Mapping
from typing import Any


class LoneWorker:
    """A chief without other workers, with the methods of a Cluster."""

    index = 0
    is_chief = True

    def __enter__(self) -> "LoneWorker":
        return self

    def __exit__(self, kind, error, traceback) -> None:
        pass

    def agreed(self, decision: Any) -> Any:
        """Returns the decision unchanged."""
        return decision

    def require_same(self, settings: Mapping[str, Any]) -> None:
        """Does nothing, as there are no other workers."""

    def pass_on(self, number: int) -> None:
        """Does nothing, as there are no other workers."""
