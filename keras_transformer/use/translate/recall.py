"""Known translations, which come before the model's."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from keras_transformer.use.translate.search_request import SearchRequest


class Memory(Protocol):
    """A translation memory, such as that of documents/memory/memory.py."""

    def __len__(self) -> int: ...

    def find(self, text: str, phrases: Iterable[str] = ()) -> str | None:
        """Returns the translation of a text, if the memory has one with these phrases."""


def recall(memories: Sequence[Memory], text: str, phrases: Iterable[str]) -> str | None:
    """Returns the translation of a text in the first memory that has one with these phrases."""
    found = (memory.find(text, phrases) for memory in memories)
    return next((target for target in found if target is not None), None)


def recalled(memories: Sequence[Memory], request: SearchRequest) -> list[str | None]:
    """Returns for each text of a request its translation in the memories, or None."""
    if not any(map(len, memories)) or request.target_prefixes is not None:
        return [None] * len(request.texts)
    return [
        recall(memories, text, phrases)
        for text, phrases in zip(request.texts, request.all_phrases(), strict=True)
    ]
