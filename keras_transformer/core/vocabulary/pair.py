"""The source and target vocabularies, which may be shared (section 5.1)."""

import os
from typing import NamedTuple

from keras_transformer.core.config import SUFFIXES
from keras_transformer.core.vocabulary.subwords import Subwords
from keras_transformer.support.errors import require
from keras_transformer.support.files.paths import to_path

# File names in a data or model directory, without suffixes.
SHARED, SEPARATE = ("vocabulary",), ("source_vocabulary", "target_vocabulary")


class VocabularyPair(NamedTuple):
    """The vocabularies of both sides: the same object twice if shared."""

    source: Subwords
    target: Subwords

    @staticmethod
    def load(folder: str | os.PathLike) -> "VocabularyPair":
        """Reads the vocabularies in a data or model directory.

        Raises:
            InputError: for missing, superfluous or damaged files.
        """
        files = []
        for name in SHARED + SEPARATE:
            for suffix in SUFFIXES.values():
                file = to_path(folder) / (name + suffix)
                if file.is_file():
                    files.append(file)
        names = tuple(file.stem for file in files)
        rule = f"must contain vocabulary.model or .txt, or one each of {', '.join(SEPARATE)}"
        received = ", ".join(file.name for file in files) or "none of them"
        require(names in (SHARED, SEPARATE), None, rule, received, folder)
        if names == SHARED:
            shared = Subwords(files[0])
            return VocabularyPair(shared, shared)
        source_file, target_file = files
        return VocabularyPair(Subwords(source_file), Subwords(target_file))

    @property
    def own_source(self) -> Subwords | None:
        """The source vocabulary, if it is separate."""
        return None if self.source is self.target else self.source

    def contents(self) -> dict[str, bytes]:
        """Returns the contents of their files, by name."""
        return {vocabulary.file.name: vocabulary.file.read_bytes() for vocabulary in self}

    @property
    def fingerprints(self) -> dict[str, str | None]:
        """Their fingerprints, with the field names of config.json and export cards."""
        own_source = self.own_source
        return {
            "vocabulary_fingerprint": self.target.fingerprint,
            "source_vocabulary_fingerprint": None if own_source is None else own_source.fingerprint,
        }
