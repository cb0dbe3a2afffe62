"""The limits on requests, and the messages for requests that exceed them."""

from collections.abc import Sequence
from dataclasses import dataclass

from keras_transformer.kit.documents.text.xml_source import MOST_MARKUP
from keras_transformer.kit.serving.errors import RequestError
from keras_transformer.support.fields import Positive, Size, check_fields, option

BYTES_PER_CHARACTER = 12  # at most, in JSON: two escapes, such as "\ud83d\ude00"
# Defaults for a server that only its own machine can reach: it takes a book.
OWN_MACHINE = {
    "timeout": 3600.0,
    "max_characters": 1_000_000,
    "max_file_bytes": 1 << 27,
    "max_corrections": 20_000,
}
_FOR_OWN = "Default if only this machine can reach the server:"


@dataclass(frozen=True)
class Limits:
    """Request limits; a limit that allows no request at all is an InputError.

    The defaults are for a server that other machines can reach; see OWN_MACHINE.
    """

    timeout: Positive = option(
        60.0,
        "Time limit in seconds for a request's headers, for its body, and for the model. "
        f"{_FOR_OWN} {OWN_MACHINE['timeout']:g}.",
    )
    max_sentences: Size = option(64, "Maximum number of sentences per request.")
    max_characters: Size = option(
        20_000,
        f"Maximum number of characters per request. {_FOR_OWN} {OWN_MACHINE['max_characters']}.",
    )
    max_file_bytes: Size = option(
        1 << 25,
        "Maximum size in bytes of a file to translate, with its pictures. "
        f"{_FOR_OWN} {OWN_MACHINE['max_file_bytes']}.",
    )
    max_waiting: Size = option(
        64, "Maximum number of requests waiting for the model; others are rejected."
    )
    max_corrections: Size = option(
        5_000,
        "Maximum number of corrections, each of which is a sentence. "
        f"{_FOR_OWN} {OWN_MACHINE['max_corrections']}.",
    )
    prefix: str = ""  # of the limits' names in messages, such as -- if they are flags

    def __post_init__(self):
        check_fields(self)

    @property
    def body_bytes(self) -> int:
        """Maximum body size: enough for any request within the other limits, however escaped."""
        return BYTES_PER_CHARACTER * self.max_characters + 8 * self.max_sentences + 1024

    @property
    def markup(self) -> int:
        """Maximum number of tags and attributes in an archive; each takes memory."""
        return min(MOST_MARKUP, 20 * self.max_characters)

    @property
    def rule(self) -> str:
        """The limits, in words."""
        return (
            f"`texts` must have at most {self.max_sentences} sentences, "
            f"and a request at most {self.max_characters} characters of text"
        )

    @property
    def time(self) -> str:
        """The time limit, in words."""
        return f"{self.timeout:g} seconds ({self.prefix}timeout)"

    def check_texts(self, texts: Sequence[str], further: Sequence[str] = ()) -> None:
        """Rejects more text than a request may have.

        Args:
            texts: the texts to translate.
            further: accompanying texts, for which only the characters count.

        Raises:
            RequestError: 413.
        """
        if len(texts) > self.max_sentences:
            received = f"This request has {len(texts):,} texts"
            raise self.refusal(received, f"{self.max_sentences:,}", "max_sentences")
        self.check_characters([*texts, *further])

    def check_characters(self, texts: Sequence[str]) -> None:
        """Rejects more characters than a request may have.

        Args:
            texts: all texts of the request.

        Raises:
            RequestError: 413.
        """
        characters = sum(map(len, texts))
        if characters > self.max_characters:
            subject = "This text" if len(texts) == 1 else "This request"
            received = f"{subject} has {characters:,} characters"
            raise self.refusal(received, f"{self.max_characters:,}", "max_characters")

    def check_corrections(self, count: int) -> None:
        """Rejects a further correction if there are too many.

        Args:
            count: the number of corrections.

        Raises:
            RequestError: 413.
        """
        if count >= self.max_corrections:
            received = f"There are {count:,} corrections"
            raise self.refusal(received, f"{self.max_corrections:,}", "max_corrections")

    def body_refusal(self, size: str) -> RequestError:
        """Returns the rejection of a body of "SIZE bytes", which no text within the limits has."""
        accepted = f"{self.max_characters:,} characters"
        return self.refusal(f"This request has {size}", accepted, "max_characters")

    def file_refusal(self, size: str) -> RequestError:
        """Returns the rejection of a form with a file, of "SIZE bytes"."""
        return self.refusal(f"This upload has {size}", f"{self.max_file_bytes:,}", "max_file_bytes")

    def refusal(self, received: str, most: str, name: str) -> RequestError:
        """Returns the rejection of a request that exceeds a limit.

        Args:
            received: what the request has, in its sender's words.
            most: what the limit allows.
            name: the limit, a field of this class.
        """
        return RequestError(413, f"{received}; this server accepts {most} ({self.prefix}{name})")
