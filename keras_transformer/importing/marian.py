"""Marian's models, such as those of OPUS-MT, as model directories of this library.

They are kept in two formats, Hugging Face's (hugging_face.py) and Marian's own (marian_npz.py).
What a model computes becomes fields of TransformerConfig, and its weights are put in the order of
this library (marian_model.py).
"""

import json
import tempfile
from pathlib import Path

from keras_transformer.config import SUFFIXES
from keras_transformer.errors import require
from keras_transformer.files.paths import is_device
from keras_transformer.files.replacing import write_file
from keras_transformer.importing.directory import write_model_directory
from keras_transformer.importing.hugging_face import read_hugging_face
from keras_transformer.importing.marian_model import build
from keras_transformer.importing.marian_npz import read_npz
from keras_transformer.importing.sentencepiece_pieces import Pieces
from keras_transformer.vocabulary.pair import SEPARATE, VocabularyPair


def import_marian(path: Path, model_dir: Path) -> dict[str, str | int]:
    """Makes a model directory of a Marian model.

    Args:
        path: the directory of the Marian model, in either format.
        model_dir: the directory to make.

    Returns:
        {"model_dir", "checkpoint", "parameters"}, as write_model_directory.

    Raises:
        InputError: if a file is missing, damaged or a device, or the files do not belong together,
            or the model has something that this library's has not, or `model_dir` holds something.
    """
    for file in path.glob("*"):
        require(not is_device(file), None, "must be a file", "a pipe or a device", file)
    is_hugging_face = (path / "config.json").is_file()
    kept = read_hugging_face(path) if is_hugging_face else read_npz(path)
    model = build(kept)
    source_name, target_name = SEPARATE
    with tempfile.TemporaryDirectory() as folder:
        _write_vocabulary(Path(folder, source_name + SUFFIXES["pieces"]), kept.source)
        _write_vocabulary(Path(folder, target_name + SUFFIXES["pieces"]), kept.target)
        vocabularies = VocabularyPair.load(folder)
        languages = list(vocabularies.source.languages)
        # A model of one language may have its code, but does not need it.
        task_options = {"target_languages": languages} if len(languages) > 1 else {}
        return write_model_directory(
            model_dir,
            model,
            vocabularies,
            max_length=kept.max_length,
            task_options=task_options,
        )


def _write_vocabulary(file: Path, pieces: Pieces) -> None:
    """Writes the pieces in the order of their ids, and the SentencePiece model after them."""
    names = json.dumps(pieces.names).encode()
    write_file(file, names + b"\n" + pieces.sentencepiece_model.read_bytes())
