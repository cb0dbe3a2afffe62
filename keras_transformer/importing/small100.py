"""The vocabulary of SMaLL-100 (Mohammadshahi et al. 2022, arXiv 2210.11621).

SMaLL-100 is a small M2M-100 model of a hundred languages. Its sources begin with the token of the
target language, such as "__de__", which becomes the code ">>de<<". These tokens have the ids after
the pieces in vocab.json; a few unused ids follow.

M2M-100 and NLLB-200 have the same layers. But their sources begin with the source language, and
their targets with the target language, which the programs cannot do.
"""

from pathlib import Path
from typing import Any

from keras_transformer.errors import require
from keras_transformer.files.json_files import read_json
from keras_transformer.importing.sentencepiece_pieces import Pieces, read_pieces
from keras_transformer.language_codes import code_of

TOKENIZER = "tokenization_small100.py"  # never read: its presence shows that it is SMaLL-100
MOST_UNUSED_IDS = 1000  # it has 8
# In the order of the ids, which no file has.
LANGUAGES = (
    *("af", "am", "ar", "ast", "az", "ba", "be", "bg", "bn", "br", "bs", "ca", "ceb", "cs", "cy"),
    *("da", "de", "el", "en", "es", "et", "fa", "ff", "fi", "fr", "fy", "ga", "gd", "gl", "gu"),
    *("ha", "he", "hi", "hr", "ht", "hu", "hy", "id", "ig", "ilo", "is", "it", "ja", "jv", "ka"),
    *("kk", "km", "kn", "ko", "lb", "lg", "ln", "lo", "lt", "lv", "mg", "mk", "ml", "mn", "mr"),
    *("ms", "my", "ne", "nl", "no", "ns", "oc", "or", "pa", "pl", "ps", "pt", "ro", "ru", "sd"),
    *("si", "sk", "sl", "so", "sq", "sr", "ss", "su", "sv", "sw", "ta", "th", "tl", "tn", "tr"),
    *("uk", "ur", "uz", "vi", "wo", "xh", "yi", "yo", "zh", "zu"),
)


def read_vocabularies(path: Path, options: dict[str, Any]) -> tuple[Pieces, Pieces]:
    """Reads the vocabulary of both sides.

    Args:
        path: a directory in Hugging Face's format.
        options: of config.json.

    Raises:
        InputError: if a file is missing or damaged, or the model is not SMaLL-100.
    """
    is_small100 = (path / TOKENIZER).is_file()
    rule = f"must be marian, or m2m_100 with {TOKENIZER} (SMaLL-100), but not M2M-100 or NLLB-200"
    require(is_small100, "model_type", rule, options["model_type"], path / "config.json")

    count = len(read_json(path / "vocab.json", dict[str, int])) + len(LANGUAGES)
    unused = options.get("vocab_size", 0) - count
    rule = f"must be from {count}, the number of pieces and languages, to {MOST_UNUSED_IDS} more"
    is_size = 0 <= unused <= MOST_UNUSED_IDS
    require(is_size, "vocab_size", rule, options.get("vocab_size"), path / "config.json")
    further_pieces = [code_of(language) for language in LANGUAGES]
    further_pieces += [f"<unused{number}>" for number in range(unused)]
    pieces = read_pieces(
        path / "sentencepiece.bpe.model",
        path / "vocab.json",
        options["decoder_start_token_id"],
        further_pieces,
    )
    return pieces, pieces
