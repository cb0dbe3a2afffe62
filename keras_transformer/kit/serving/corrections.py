"""Corrections by the users of a server: requests, answers, and how they change the file."""

import dataclasses
import logging
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from keras_transformer.core.vocabulary.language_codes import Direction
from keras_transformer.kit.documents.memory.corrections import Corrections
from keras_transformer.kit.serving.errors import RequestError
from keras_transformer.kit.serving.limits import Limits
from keras_transformer.kit.serving.requests import To, checked
from keras_transformer.support.errors import InputError, reason, require
from keras_transformer.use.store.languages import is_same

LOG = logging.getLogger(__name__)

Answer = TypeVar("Answer")
SourceLanguage = Annotated[
    str | None, "Language of the sentence, if the model has several for the target language."
]


@dataclasses.dataclass(frozen=True)
class CorrectionRequest:
    """A corrected translation, which replaces an earlier one of the same sentence."""

    source: Annotated[str, "The sentence."]
    translation: Annotated[str, "Its corrected translation."]
    to: To = None
    source_language: SourceLanguage = None


@dataclasses.dataclass(frozen=True)
class RemovalRequest:
    """A sentence whose corrections are to be removed."""

    source: Annotated[str, "The sentence; white space and placeholders need not match."]
    to: To = None
    source_language: SourceLanguage = None


@dataclasses.dataclass(frozen=True)
class CorrectionAnswer:
    """A correction that has been saved."""

    source: Annotated[str, "The sentence, as one line."]
    translation: Annotated[str, "Its corrected translation, as one line."]
    date: Annotated[str, 'When, as in "20261128T134500Z".']


@dataclasses.dataclass(frozen=True)
class RemovalAnswer:
    """What has been removed."""

    removed: Annotated[int, "Number of corrections."]


class NoCorrections:
    """The place of a CorrectionService in a server without corrections."""

    is_available = False

    def add(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Raises a RequestError: 404."""
        return self.remove(fields)

    def remove(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Raises a RequestError: 404."""
        rule = "the server must have been started with a file of corrections"
        raise RequestError(404, f"{rule}. Received: none")


class CorrectionService:
    """Answers requests to change corrections; they wait for a disk, and so need a thread.

    Args:
        corrections: the corrections.
        limits: the limits on requests.
    """

    is_available = True

    def __init__(self, corrections: Corrections, limits: Limits):
        self._corrections = corrections
        self._limits = limits

    def refresh(self) -> None:
        """Reads the file again if another program has changed it."""
        self._corrections.refresh()

    def add(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Answers a CorrectionRequest.

        Raises:
            InputError: for any other request. RequestError: 413 if there is too much text, or if
                there are too many corrections; 507 if it could not be saved.
        """
        request = checked(CorrectionRequest, fields)
        texts = {"source": request.source, "translation": request.translation}
        for name, text in texts.items():
            require(text.strip() != "", name, "must not be blank", repr(text))
        self._limits.check_texts([request.source], [request.translation])
        direction = self._direction_of(request.source_language, request.to)
        self._limits.check_corrections(len(self._corrections))
        correction = _saved(
            lambda: self._corrections.add(request.source, request.translation, direction)
        )
        answer = CorrectionAnswer(correction.source, correction.translation, correction.date)
        return dataclasses.asdict(answer)

    def remove(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Answers a RemovalRequest; raises as `add` does."""
        request = checked(RemovalRequest, fields)
        self._limits.check_texts([request.source])
        direction = self._direction_of(request.source_language, request.to)
        removed = _saved(lambda: self._corrections.remove(request.source, direction))
        return dataclasses.asdict(RemovalAnswer(removed))

    def _direction_of(self, source_language: str | None, to: str | None) -> Direction:
        """Returns the model's direction that fits the languages of a request."""
        known = self._corrections.directions
        fitting = [
            each
            for each in known
            if (source_language is None or is_same(each.source, source_language))
            and (to in (None, str(each)) or is_same(each.target, to))
        ]
        rule = f"must select one of {', '.join(map(str, known))}"
        received = f"source_language {source_language!r}, to {to!r}"
        require(len(fitting) == 1, "languages", rule, received)
        return fitting[0]


def _saved(change: Callable[[], Answer]) -> Answer:
    """Changes the corrections; a failure names no file of the server, and is logged with it."""
    try:
        return change()
    except InputError as error:  # of the file: the request has been checked
        LOG.error("nothing was saved: %s", error)
        raise RequestError(507, f"nothing was saved: the file {error.rule}") from None
    except OSError as error:
        LOG.error("nothing was saved: %s", error)
        raise RequestError(507, f"nothing was saved: {error.strerror or reason(error)}") from None
