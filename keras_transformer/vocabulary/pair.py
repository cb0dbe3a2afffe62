"""The vocabularies of source and target, which are one where both sides share it (section 5.1)."""

import os
from typing import NamedTuple

from keras_transformer.config import SUFFIXES
from keras_transformer.errors import require
from keras_transformer.files import to_path
from keras_transformer.vocabulary.subwords import Subwords

# The names of the files in a data or model directory, without suffixes.
SHARED, SEPARATE = ("vocabulary",), ("source_vocabulary", "target_vocabulary")


class VocabularyPair(NamedTuple):
    """The vocabularies of both sides: the same object twice where they share one."""

    source: Subwords
    target: Subwords

    @staticmethod
    def load(folder: str | os.PathLike) -> "VocabularyPair":
        """Reads what a folder holds; InputError for files that are missing, many or damaged."""
        names = [name + suffix for name in SHARED + SEPARATE for suffix in SUFFIXES.values()]
        found = [file for name in names if (file := to_path(folder) / name).is_file()]
        rule = f"{folder} must hold vocabulary.model or .txt, or one each of {', '.join(SEPARATE)}"
        known = tuple(file.stem for file in found) in (SHARED, SEPARATE)
        require(known, rule, ", ".join(file.name for file in found) or "none of them")
        sides = [Subwords(file) for file in found]
        return VocabularyPair(sides[0], sides[-1])

    @property
    def own_source(self) -> Subwords | None:
        """The source's vocabulary, where it is not the target's."""
        return None if self.source is self.target else self.source

    @property
    def fingerprints(self) -> dict[str, str | None]:
        """What config.json and the cards of exports know them by."""
        return {
            "vocabulary_fingerprint": self.target.fingerprint,
            "source_vocabulary_fingerprint": self.own_source and self.own_source.fingerprint,
        }
