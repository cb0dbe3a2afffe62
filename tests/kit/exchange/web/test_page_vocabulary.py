"""The page encodes and decodes like Python, with every kind of vocabulary."""

import gzip
import io
import json
import random

import pytest
import sentencepiece

from keras_transformer.core.config import SUFFIXES
from keras_transformer.core.vocabulary.subwords import Subwords
from keras_transformer.kit.exchange.web.page_vocabulary import page_vocabulary
from keras_transformer.use.translate.texts import encoded
from pipelines.prepare.vocabulary import learn_subwords
from tests.refusals import refused

TEXTS = [
    *("the cat sat on the mat", "Der Hund lief zum Haus.", "grosse rote Katzen, kleine Hunde!"),
    *("big red cats and small dogs", "ﬁne ½ Ａｂｃ ㍿ e\u0301 İ", "Žluťoučký kůň"),
]
HARD = [
    *(
        "",
        " ",
        "  two  spaces ",
        "a\tb\u00a0c\u200bd",
        "▁lit▁ ▁ x",
        "x\0y",
        "\ud800 half",
        "a" * 99,
    ),
    *(
        "漢字かな 한국어 ไทย",
        "😀 👨‍👩‍👧",
        "don't 1,000.50 (NP",
        "</s> <unk> [UNK] ##x # ##",
        "\x01\x02",
        "\ufeff",
        " \ufeff\u3000",
        "a\ufeffb\x85\x1c\u180e",
    ),
    *(">>de<< cat", ">>de<<cat", " >>de<< cat", ">>fr<< cat", ">>de<< "),
]
ENCODE = """
import { Vocabulary } from "./vocabulary.js";
const known = new Vocabulary(vocabulary);
answer([texts.map((text) => known.encode(text)), rows.map((row) => known.decode(row))]);
"""


def sentencepiece_model(**settings):
    model = io.BytesIO()
    usual = {"model_type": "unigram", "vocab_size": 90, "sentence_iterator": iter(TEXTS * 3)}
    ids = {"pad_id": 0, "bos_id": 1, "eos_id": 2, "unk_id": 3}
    sentencepiece.SentencePieceTrainer.train(
        model_writer=model, hard_vocab_limit=False, minloglevel=2, **(usual | ids | settings)
    )
    return model.getvalue()


def imported(folder):
    """A SentencePiece model whose pieces have other ids, with pieces that the model lacks."""
    model = sentencepiece_model(pad_id=-1, bos_id=-1, eos_id=0, unk_id=1)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    pieces = [processor.id_to_piece(id_) for id_ in range(2, processor.get_piece_size())]
    random.Random(1).shuffle(pieces)
    pieces = ["<pad>", "<start>", "</s>", "<unk>", ">>de<<", "▁漢字かな", *pieces[5:]]
    file = folder / f"vocabulary{SUFFIXES['pieces']}"
    file.write_bytes(json.dumps(pieces).encode() + b"\n" + model)
    return Subwords(file)


def written(content):
    def make(folder):
        (folder / "vocabulary.model").write_bytes(content)
        return Subwords(folder / "vocabulary.model")

    return make


def learned(kind, vocab_size, **options):
    return lambda folder: learn_subwords(TEXTS, kind, vocab_size, folder, seed=1, **options)


KINDS = {
    "bpe": learned("bpe", 330),
    "bpe with codes and symbols": learned("bpe", 330, symbols=["(NP"], languages=["de", "cs"]),
    "wordpiece": learned("wordpiece", 110, languages=["de"]),
    "unigram": lambda folder: written(sentencepiece_model(user_defined_symbols=["dog"]))(folder),
    "unigram with bytes": lambda folder: written(
        sentencepiece_model(
            byte_fallback=True,
            vocab_size=330,
            normalization_rule_name="nmt_nfkc_cf",
            treat_whitespace_as_suffix=True,
        )
    )(folder),
    "bpe with rules": lambda folder: written(
        sentencepiece_model(model_type="bpe", add_dummy_prefix=False, vocab_size=80)
    )(folder),
    "pieces": imported,
}


def both(vocabulary, texts, run_script):
    """Encodes texts, and decodes their ids and random ids, with the page and with Python."""
    ids = [row.tolist() for row in encoded(vocabulary, texts)]
    some = random.Random(2)
    rows = [[some.randrange(vocabulary.vocab_size) for _ in range(n % 12)] for n in range(300)]
    rows = [*ids, *rows]
    results = run_script(ENCODE, vocabulary=page_vocabulary(vocabulary), texts=texts, rows=rows)
    return results, [ids, vocabulary.decode(rows)]


@pytest.mark.parametrize("kind", KINDS)
def test_ids_and_texts_are_those_of_python(kind, tmp_path, run_script):
    found, expected = both(KINDS[kind](tmp_path), TEXTS + HARD, run_script)
    assert found == expected


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bpe", "wordpiece", "unigram"])
def test_real_text(kind, tmp_path, run_script, corpora):
    """Ten thousand lines of news, with vocabularies learned from similar text."""
    lines = []
    for language in ("en", "de"):
        with gzip.open(corpora / "news" / f"news.{language}.gz", "rt", encoding="utf-8") as file:
            lines += [line.rstrip("\n") for _, line in zip(range(8000), file, strict=False)]
    train, texts = lines[:1000] + lines[8000:9000], lines[3000:8000] + lines[11000:]
    if kind == "unigram":
        options = {"sentence_iterator": iter(train), "vocab_size": 3000}
        vocabulary = written(sentencepiece_model(**options))(tmp_path)
    else:
        vocabulary = learn_subwords(train, kind, 3000, tmp_path, seed=1)
    found, expected = both(vocabulary, texts, run_script)
    assert found == expected


def test_other_models_of_sentencepiece_are_refused(tmp_path):
    vocabulary = written(sentencepiece_model(model_type="char"))(tmp_path)
    with refused("vocabulary"):
        page_vocabulary(vocabulary)
