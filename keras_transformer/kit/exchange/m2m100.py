"""The vocabularies of M2M-100 and its successors, models of a hundred languages and more.

They have the same layers, and languages are tokens of one vocabulary, such as "__de__", which
become codes, such as ">>de<<" (language_codes.py):

    SMaLL-100   sources begin with the target language (Mohammadshahi et al. 2022, arXiv 2210.11621)
    M2M-100     sources begin with their own language, and targets with theirs, which the decoder
                reads after BOS (Fan et al. 2020, arXiv 2010.11125)
    NLLB-200    likewise, with other pieces and codes, such as "deu_Latn" (arXiv 2207.04672)
"""

import re
from pathlib import Path
from typing import Any

from keras_transformer.core.vocabulary.language_codes import code_of
from keras_transformer.kit.exchange.sentencepiece_pieces import (
    Pieces,
    numbered_pieces,
    read_pieces,
    sentencepiece_names,
)
from keras_transformer.support.errors import require
from keras_transformer.support.fields import Count, from_json, shown
from keras_transformer.support.files.json_files import read_json

SENTENCEPIECE_MODEL = "sentencepiece.bpe.model"
SMALL_100 = "tokenization_small100.py"  # never read: its presence shows that it is SMaLL-100
PIECES = "vocab.json"  # of M2M-100 and SMaLL-100
TOKENIZER = "tokenizer.json"  # of NLLB-200
OPTIONS = "tokenizer_config.json"
MOST_UNUSED_IDS = 1000  # they have 2 or 8
# Of M2M-100 and SMaLL-100, in the order of the ids, which no file has.
LANGUAGES = (
    *("af", "am", "ar", "ast", "az", "ba", "be", "bg", "bn", "br", "bs", "ca", "ceb", "cs", "cy"),
    *("da", "de", "el", "en", "es", "et", "fa", "ff", "fi", "fr", "fy", "ga", "gd", "gl", "gu"),
    *("ha", "he", "hi", "hr", "ht", "hu", "hy", "id", "ig", "ilo", "is", "it", "ja", "jv", "ka"),
    *("kk", "km", "kn", "ko", "lb", "lg", "ln", "lo", "lt", "lv", "mg", "mk", "ml", "mn", "mr"),
    *("ms", "my", "ne", "nl", "no", "ns", "oc", "or", "pa", "pl", "ps", "pt", "ro", "ru", "sd"),
    *("si", "sk", "sl", "so", "sq", "sr", "ss", "su", "sv", "sw", "ta", "th", "tl", "tn", "tr"),
    *("uk", "ur", "uz", "vi", "wo", "xh", "yi", "yo", "zh", "zu"),
)
# NLLB-200's SentencePiece model numbers its pieces from 3, and the model from 4.
SPECIAL_PIECES = ("<s>", "<pad>", "</s>", "<unk>")
_is_nllb_language = re.compile(r"[a-z]{3}_[A-Z][a-z]{3}").fullmatch


def variant_of(folder: Path) -> str:
    """Returns which of the models a directory has: "SMaLL-100", "M2M-100" or "NLLB-200"."""
    if (folder / SMALL_100).is_file():
        return "SMaLL-100"
    return "M2M-100" if (folder / PIECES).is_file() else "NLLB-200"


def read_m2m100_vocabulary(folder: Path, options: dict[str, Any]) -> Pieces:
    """Reads the vocabulary of M2M-100 and SMaLL-100.

    Args:
        folder: a directory in Hugging Face's format.
        options: of config.json.

    Raises:
        InputError: if a file is missing or damaged, or the model has other languages.
    """
    _require_option(folder, "language_codes", "m2m100")
    size = len(read_json(folder / PIECES, dict[str, int]))
    codes = [code_of(language) for language in LANGUAGES]
    unused = _unused_names(folder, options, size + len(codes))
    start_id = options["decoder_start_token_id"]
    return read_pieces(
        folder / SENTENCEPIECE_MODEL, folder / PIECES, start_id, further_pieces=codes + unused
    )


def read_nllb_vocabulary(folder: Path, options: dict[str, Any]) -> Pieces:
    """Reads the vocabulary of NLLB-200; see `read_m2m100_vocabulary`."""
    _require_option(folder, "legacy_behaviour", False)  # sources that end with their language
    model = folder / SENTENCEPIECE_MODEL
    pieces = [*SPECIAL_PIECES, *sentencepiece_names(model)[3:]]
    ids = {piece: number for number, piece in enumerate(pieces)}
    for token in _added_tokens(folder / TOKENIZER):
        name = token["content"]
        ids[code_of(name) if _is_nllb_language(name) else name] = token["id"]
    unused = _unused_names(folder, options, len(ids))
    ids |= {name: number for number, name in enumerate(unused, start=len(ids))}
    return numbered_pieces(model, ids, folder / TOKENIZER, options["decoder_start_token_id"])


def _added_tokens(file: Path) -> list[dict[str, Any]]:
    """Reads the tokens in tokenizer.json that are not SentencePiece's, such as languages."""
    tokens = from_json({"added_tokens": list[dict[str, Any]]}, read_json(file), file)
    for token in tokens["added_tokens"]:
        from_json({"id": Count, "content": str}, token, file)
    return tokens["added_tokens"]


def _require_option(folder: Path, name: str, value: Any) -> None:
    """Requires a value in tokenizer_config.json, if it has this option."""
    file = folder / OPTIONS
    options = read_json(file) if file.is_file() else {}
    received = options.get(name, value)
    rule = f"must be {shown(value)}, the only supported value"
    require(received == value, name, rule, shown(received), file)


def _unused_names(folder: Path, options: dict[str, Any], count: int) -> list[str]:
    """Returns names for the ids between the number of pieces and the size of the vocabulary."""
    unused = options.get("vocab_size", 0) - count
    rule = f"must be from {count}, the number of pieces and languages, to {MOST_UNUSED_IDS} more"
    is_size = 0 <= unused <= MOST_UNUSED_IDS
    require(is_size, "vocab_size", rule, options.get("vocab_size"), folder / "config.json")
    return [f"<unused{number}>" for number in range(unused)]
