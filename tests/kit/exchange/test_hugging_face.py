"""Imported models beside Hugging Face's own models and MarianTokenizer.

They need PyTorch, whose compiler does not load after TensorFlow: `make test-marian` runs this file
alone, and other runs skip it.
"""

import importlib
import json
import pathlib
import shutil
import sys
import types

import pytest

INSTALL = "make test-marian runs them; install: pip install '.[marian,marian-test]'"
if "tensorflow" in sys.modules:
    pytest.skip(INSTALL, allow_module_level=True)
torch = pytest.importorskip("torch", reason=INSTALL)
transformers = pytest.importorskip("transformers", reason=INSTALL)
pytest.importorskip("safetensors", reason=INSTALL)
importlib.import_module("transformers.models.marian.modeling_marian")
importlib.import_module("transformers.models.m2m_100.modeling_m2m_100")

import numpy as np
import sentencepiece

from keras_transformer.core.config import EOS_ID
from keras_transformer.core.search.config import DecodingConfig
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.kit.exchange import hugging_face
from keras_transformer.kit.exchange.ctranslate2 import export_ctranslate2
from keras_transformer.kit.exchange.foreign_model import build
from keras_transformer.kit.exchange.hugging_face_writer import export_hugging_face
from keras_transformer.kit.exchange.importing import import_model
from keras_transformer.loading import load
from keras_transformer.support.errors import InputError
from keras_transformer.use.store.model_path import ModelPath
from keras_transformer.use.store.opening import open_model
from pipelines.prepare.vocabulary import learn_subwords
from tests.given_answers import card_of
from tests.kit.exchange import hugging_face_files, marian_files
from tests.kit.exchange.marian_files import SOURCES, TARGETS
from tests.refusals import refused
from tests.small_models import small_model

pytestmark = pytest.mark.slow  # another engine, which takes seconds to import

SETTINGS = {
    "OPUS-MT": {"activation_function": "swish", "scale_embedding": True},
    "six layers": {"encoder_layers": 6, "decoder_layers": 3, "activation_function": "relu"},
    "separate vocabularies": {"share_encoder_decoder_embeddings": False},
    "gelu": {"activation_function": "gelu", "encoder_layers": 2, "decoder_layers": 2},
}
# A toy language: words in reverse order, and the second translation of a word now and then.
WORDS = ["haus", "baum", "hund", "frau", "kind", "buch", "tisch", "vogel", "stadt", "wald"]
LIKELY = ["house", "tree", "dog", "woman", "child", "book", "table", "bird", "town", "forest"]
SYNONYMS = ["home", "oak", "hound", "lady", "kid", "volume", "desk", "finch", "city", "wood"]


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """A folder with SentencePiece models of the sentences, and lists of pieces."""
    folder = tmp_path_factory.mktemp("texts")
    marian_files.train_sentencepiece(folder)
    add_lists(folder)
    return folder


def add_lists(folder):
    pieces = [*marian_files.pieces_of(folder), "<pad>"]
    for name in ("vocab.json", "target_vocab.json"):
        (folder / name).write_text(json.dumps({piece: i for i, piece in enumerate(pieces)}))


def make(texts, folder, **settings):
    """A model with random weights, saved with its tokenizer in the folder."""
    pad = len(marian_files.pieces_of(texts))
    torch.manual_seed(3)
    defaults = {
        "vocab_size": pad + 1,
        "pad_token_id": pad,
        "decoder_start_token_id": pad,
        "eos_token_id": 0,
        "forced_eos_token_id": None,
        "d_model": 32,
        "init_std": 0.3,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 48,
        "decoder_ffn_dim": 48,
        "encoder_layers": 2,
        "decoder_layers": 2,
    }
    config = transformers.MarianConfig(**{**defaults, **settings})
    model = transformers.MarianMTModel(config).eval()
    model.generation_config.bad_words_ids = [[pad]]
    with torch.no_grad():
        for parameter in (*model.parameters(), model.final_logits_bias):
            if parameter.ndim == 1 or parameter is model.final_logits_bias:
                parameter.add_(0.3 * torch.randn_like(parameter))
    separate = not config.share_encoder_decoder_embeddings
    files = [str(texts / name) for name in ("source.spm", "target.spm", "vocab.json")]
    lists = {"target_vocab_file": str(texts / "target_vocab.json"), "separate_vocabs": separate}
    tokenizer = transformers.MarianTokenizer(*files, **(lists if separate else {}))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return types.SimpleNamespace(model=model, tokenizer=tokenizer, folder=folder, pad=pad)


@pytest.fixture(scope="module")
def made(texts, tmp_path_factory):
    """The model with the default settings; nothing is written into its folder."""
    return make(texts, tmp_path_factory.mktemp("made") / "there")


def ours_of(kept):
    """Ids of ours by theirs, for each side."""
    return [
        {int(row): i for i, row in enumerate(pieces.rows) if i != 1}
        for pieces in (kept.source, kept.target)
    ]


@pytest.mark.parametrize("name", SETTINGS)
def test_logits(name, texts, tmp_path):
    made = make(texts, tmp_path, **SETTINGS[name])
    kept = hugging_face.read(made.folder)
    model, ours = build(kept), ours_of(kept)
    sources = made.tokenizer(SOURCES, return_tensors="pt", padding=True)
    targets = np.random.default_rng(1).integers(made.pad, size=(len(SOURCES), 7))
    targets[:, 0] = made.pad
    with torch.no_grad():
        theirs = made.model(**sources, decoder_input_ids=torch.tensor(targets)).logits.numpy()
    source = np.vectorize(ours[0].get)(sources.input_ids.numpy()).astype("int32")
    target = np.vectorize(ours[1].get)(targets).astype("int32")
    target[:, 0] = 1
    logits = np.array(model({"source": source, "target": target}))
    np.testing.assert_allclose(logits[..., 2:], theirs[..., kept.target.rows[2:]], atol=1e-4)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_small100(seed, tmp_path):
    """SMaLL-100 has the layers of M2M100ForConditionalGeneration."""
    folder = tmp_path / "there"
    folder.mkdir()
    _, _, pieces = hugging_face_files.write_m2m100(folder, "SMaLL-100")
    settings = {"d_model": 32, "encoder_attention_heads": 4, "decoder_attention_heads": 4}
    options = json.loads((folder / "config.json").read_text())
    torch.manual_seed(seed)
    config = transformers.M2M100Config(**{**options, **settings}, init_std=0.5)
    there = transformers.M2M100ForConditionalGeneration(config).eval()
    with torch.no_grad():
        for parameter in there.parameters():
            if parameter.ndim == 1:
                parameter.add_(0.3 * torch.randn_like(parameter))
    there.save_pretrained(folder)
    import_model(folder, tmp_path / "model")

    kept = hugging_face.read(folder)
    encoded = VocabularyPair.load(tmp_path / "model").source.encode(
        [f">>de<< {text}" for text in SOURCES]
    )
    source = np.zeros((len(SOURCES), max(map(len, encoded)) + 1), np.int32)
    for row, ids in zip(source, encoded, strict=True):
        row[: len(ids) + 1] = [*ids, EOS_ID]
    target = np.random.default_rng(seed).integers(4, pieces, size=(len(SOURCES), 9), dtype=np.int32)
    target[:, 0] = 1
    source_there = torch.tensor(kept.source.rows[source])
    inputs = {"input_ids": source_there, "attention_mask": (source_there != 1).long()}
    with torch.no_grad():
        decoder_input_ids = torch.tensor(kept.target.rows[target])
        theirs = there(**inputs, decoder_input_ids=decoder_input_ids).logits.numpy()
        generated = there.generate(
            **inputs, num_beams=1, do_sample=False, max_new_tokens=20, suppress_tokens=[1]
        )
    ours = np.array(build(kept)({"source": source, "target": target}))
    np.testing.assert_allclose(ours[..., 2:], theirs[..., kept.target.rows[2:]], atol=1e-4)

    # Greedy search: the same texts, as far as the longest allowed there.
    translator = load(tmp_path / "model", engine="tensorflow", beam_size=1)
    ours_by_theirs = ours_of(kept)[1]
    for (best, *_), row in zip(translator.translate(SOURCES, to="de"), generated, strict=True):
        ids = [ours_by_theirs[i] for i in row[1:].tolist()]
        is_finished = EOS_ID in ids
        ids = ids[: ids.index(EOS_ID)] if is_finished else ids
        (text,) = translator.vocabularies.target.decode([ids])
        assert best.text == text if is_finished else best.text.startswith(text)


def test_half_precision_in_every_kind_of_file(texts, tmp_path):
    made = make(texts, tmp_path)
    made.model.half().save_pretrained(tmp_path)
    models = [build(hugging_face.read(tmp_path))]
    (tmp_path / "model.safetensors").unlink()
    for zipped in (True, False):  # False: as PyTorch wrote before 1.6
        file, state = tmp_path / "pytorch_model.bin", made.model.state_dict()
        torch.save(state, file, _use_new_zipfile_serialization=zipped)
        models.append(build(hugging_face.read(tmp_path)))
    for variables in zip(*[model.trainable_variables for model in models], strict=True):
        first, *others = map(np.array, variables)
        assert first.dtype == np.float32 and np.ptp(first) > 0
        assert all((first == other).all() for other in others), variables[0].path


class Evil:
    def __reduce__(self):
        return (pathlib.Path.touch, (pathlib.Path("touched"),))


def test_pickled_code_is_not_run(made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = shutil.copytree(made.folder, tmp_path / "model")
    (folder / "model.safetensors").unlink()
    torch.save({"model.shared.weight": Evil()}, folder / "pytorch_model.bin")
    with refused(None, place=folder / "pytorch_model.bin"):
        hugging_face.read(folder)
    assert not (tmp_path / "touched").exists()


@pytest.mark.parametrize(
    ("name", "value", "place", "argument", "received"),
    [
        ("model_type", "mbart", "config.json", "model_type", "mbart"),
        ("normalize_before", True, "config.json", "normalize_before", "true"),
        ("decoder_ffn_dim", 64, "config.json", "decoder_ffn_dim", "64"),
        ("eos_token_id", 5, "config.json", "eos_token_id", "5"),
        ("d_model", "wide", "config.json", "d_model", "wide"),
        ("d_model", 64, "model.safetensors", "model.shared.weight", "32)"),
        ("encoder_layers", 1, "model.safetensors", None, "model.encoder.layers.1."),
    ],
)
def test_what_does_not_belong_together(name, value, place, argument, received, made, tmp_path):
    folder = changed(made, tmp_path / "model", name, value)
    with refused(argument, received, folder / place):
        build(hugging_face.read(folder))


def test_a_layer_that_the_weights_do_not_have(made, tmp_path):
    folder = changed(made, tmp_path / "model", "encoder_layers", 3)
    with pytest.raises(InputError) as error:
        build(hugging_face.read(folder))
    assert error.value.argument.startswith("model.encoder.layers.2.")
    assert error.value.place == str(folder / "model.safetensors")


def changed(made, folder, name, value):
    """A copy of a model with another option."""
    shutil.copytree(made.folder, folder)
    (folder / "generation_config.json").unlink()
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, name: value}))
    return folder


def test_tokens(made, tmp_path):
    import_model(made.folder, tmp_path / "model")
    ours = ours_of(hugging_face.read(made.folder))[0]
    vocabularies = VocabularyPair.load(tmp_path / "model")
    texts = [
        *SOURCES,
        "漢字 bücher xyz",
        ">>de<< the old woman",
        ">>fr<<the",
        "  two  spaces ",
        "a\nb",
    ]
    for text, ids in zip(texts, vocabularies.source.encode(texts), strict=True):
        there = [ours[i] for i in made.tokenizer(text).input_ids]
        assert [*ids, EOS_ID] == there, text
    lengths = [len(ids) + 1 for ids in vocabularies.target.encode(TARGETS)]
    there = made.tokenizer(text_target=TARGETS).input_ids
    assert lengths == [len(row) for row in there]


def sentences(count, seed):
    rng = np.random.default_rng(seed)
    pairs = []
    for _ in range(count):
        words = rng.integers(len(WORDS), size=rng.integers(2, 6))
        likely = rng.random(len(words)) < 0.75
        target = [LIKELY[w] if sure else SYNONYMS[w] for w, sure in zip(words, likely, strict=True)]
        pairs.append((" ".join(WORDS[w] for w in words), " ".join(target[::-1])))
    return pairs


def write_tokenizer(folder, variant, pairs):
    """Writes the vocabulary of M2M-100 or NLLB-200, and returns Hugging Face's tokenizer of it."""
    whole_words = {"model_type": "bpe", "vocab_size": 80, "hard_vocab_limit": False}
    texts = [[text for pair in pairs for text in pair]]
    name = "sentencepiece.bpe.model"
    marian_files.train_sentencepiece(folder, [name], texts=texts, **whole_words)
    if variant == "NLLB-200":
        languages = list(hugging_face_files.NLLB_LANGUAGES)
        tokenizer = transformers.NllbTokenizer.from_pretrained(
            folder, extra_special_tokens=languages
        )
    else:
        model = sentencepiece.SentencePieceProcessor(model_file=str(folder / name))
        pieces = [model.id_to_piece(i) for i in range(3, model.get_piece_size())]
        pieces = ["<s>", "<pad>", "</s>", "<unk>", *pieces]
        (folder / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(pieces)}))
        tokenizer = transformers.M2M100Tokenizer(str(folder / "vocab.json"), str(folder / name))
    tokenizer.save_pretrained(folder)
    return tokenizer


@pytest.fixture(scope="module", params=["M2M-100", "NLLB-200"])
def multilingual(request, tmp_path_factory):
    """A model that has learned two languages from German: the target's token tells it which."""
    folder = tmp_path_factory.mktemp("multilingual")
    codes = ("de", "en", "fr")
    if request.param == "NLLB-200":
        codes = ("deu_Latn", "eng_Latn", "ace_Arab")
    source_language, *targets = codes
    pairs = sentences(4000, seed=2)
    tokenizer = write_tokenizer(folder, request.param, pairs)
    tokenizer.src_lang = source_language
    target_ids = tokenizer.convert_tokens_to_ids(
        targets if request.param == "NLLB-200" else [f"__{code}__" for code in targets]
    )
    torch.manual_seed(4)
    config = transformers.M2M100Config(
        vocab_size=len(tokenizer) + (3 if request.param == "NLLB-200" else 108),
        d_model=64,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        dropout=0.0,
        attention_dropout=0.0,
        encoder_layerdrop=0.0,
        decoder_layerdrop=0.0,
        init_std=0.1,
        max_position_embeddings=128,
    )
    model = transformers.M2M100ForConditionalGeneration(config)
    adam = torch.optim.Adam(model.parameters(), lr=3e-3)
    for start in range(0, 16000, 64):
        batch = [pairs[i % len(pairs)] for i in range(start, start + 64)]
        language = start // 64 % 2
        # The second language is the first one's words in the order of the source.
        texts = [" ".join(text.split()[::-1]) if language else text for _, text in batch]
        inputs = tokenizer([text for text, _ in batch], return_tensors="pt", padding=True)
        rows = [tokenizer(text, add_special_tokens=False).input_ids for text in texts]
        longest = max(map(len, rows))
        labels = torch.full((len(rows), longest + 2), -100)
        for label, row in zip(labels, rows, strict=True):
            label[: len(row) + 2] = torch.tensor([target_ids[language], *row, 2])
        loss = model(**inputs, labels=labels).loss
        adam.zero_grad()
        loss.backward()
        adam.step()
    model.eval().save_pretrained(folder)
    import_model(folder, folder / "model")
    return types.SimpleNamespace(
        model=model,
        tokenizer=tokenizer,
        folder=folder / "model",
        source=source_language,
        targets=targets,
        target_ids=target_ids,
    )


@pytest.mark.parametrize("beams", [1, 4])
def test_translations_into_two_languages(multilingual, beams, tmp_path):
    """Both engines write what Hugging Face's search does, with its scores."""
    texts = [text for text, _ in sentences(40, seed=9)]
    sources = multilingual.tokenizer(texts, return_tensors="pt", padding=True)
    wanted, coded = [], []
    for language, forced in zip(multilingual.targets, multilingual.target_ids, strict=True):
        # Without a length penalty, scores are log-probabilities, in which a forced token has none.
        settings = {"length_penalty": 0.0, "early_stopping": "never"} if beams > 1 else {}
        with torch.no_grad():
            found = multilingual.model.generate(
                **sources,
                forced_bos_token_id=forced,
                num_beams=beams,
                do_sample=False,
                max_new_tokens=50,
                output_scores=True,
                return_dict_in_generate=True,
                **settings,
            )
        decoded = multilingual.tokenizer.batch_decode(
            found.sequences[:, 2:], skip_special_tokens=True
        )
        scores = found.sequences_scores.tolist() if beams > 1 else [None] * len(decoded)
        wanted += zip(decoded, scores, strict=True)
        coded += [f">>{language}<< >>{multilingual.source}<< {text}" for text in texts]
    assert len({text for text, _ in wanted}) > 40, "the languages differ"

    export_dir = tmp_path / "export"
    stored = open_model(ModelPath(multilingual.folder)).restore()
    export_ctranslate2(stored.model, stored.vocabularies, export_dir, stored.card)
    for path, engine in ((multilingual.folder, "tensorflow"), (export_dir, "ctranslate2")):
        translator = load(path, engine=engine, beam_size=beams, alpha=0.0)
        ours = [answers[0] for answers in translator.translate(coded)]
        texts_equal = [answer.text == text for answer, (text, _) in zip(ours, wanted, strict=True)]
        assert all(texts_equal) if beams == 1 else np.mean(texts_equal) > 0.95
        for answer, (text, score) in zip(ours, wanted, strict=True):
            if score is not None and answer.text == text:
                np.testing.assert_allclose(answer.log_prob, score, atol=1e-3)
        scores = translator.score(coded, [answer.text for answer in ours])
        for answer, score in zip(ours, scores, strict=True):
            assert score.tokens == answer.tokens
            np.testing.assert_allclose(score.log_prob, answer.log_prob, atol=1e-3)


@pytest.mark.parametrize(
    "settings",
    [
        {"activation": "swish", "decoder_layers": 1, "attention_bias": True},
        {"scale_embeddings": False, "tie_embeddings": False, "source_vocab_size": 290},
    ],
)
def test_transformers_loads_what_is_written(settings, tmp_path):
    vocabularies = []
    for side, texts in (("source", SOURCES), ("target", [*SOURCES, *TARGETS])):
        size = settings.get("source_vocab_size", 300) if side == "source" else 300
        texts = texts if size == 290 else [*SOURCES, *TARGETS]
        vocabularies.append(learn_subwords(texts * 20, "bpe", size, tmp_path, 1, name=side))
    pair = VocabularyPair(*vocabularies)
    shape = {"vocab_size": 300, "norm_epsilon": 1e-5, "logits_bias": True}
    model = small_model(scale=1.0, **shape, **settings, dropout=0.0)
    bias = np.zeros(300, np.float32)
    bias[:EOS_ID] = -30  # as training makes it for padding and BOS
    model.logits_embedding.bias.assign(bias)
    card = card_of(model.config, DecodingConfig(), languages=["en", "de"])
    export_hugging_face(model, pair, tmp_path / "there", card)

    there, report = transformers.MarianMTModel.from_pretrained(
        tmp_path / "there", output_loading_info=True
    )
    assert not report["unexpected_keys"] and not report["mismatched_keys"]
    tokenizer = transformers.MarianTokenizer.from_pretrained(tmp_path / "there")
    inputs = tokenizer(SOURCES, text_target=TARGETS, return_tensors="pt", padding=True)
    ids = [pair.source.encode(SOURCES), pair.target.encode(TARGETS)]
    for rows, name in zip(ids, ("input_ids", "labels"), strict=True):
        for row, found in zip(rows, inputs[name].tolist(), strict=True):
            assert found[: len(row) + 1] == [*row, EOS_ID]
    targets = inputs["labels"].where(inputs["labels"] != -100, 0)
    starts = torch.ones([len(SOURCES), 1], dtype=torch.long)
    decoder_ids = torch.cat([starts, targets[:, :-1]], dim=1)
    with torch.no_grad():
        kept = {name: inputs[name] for name in ("input_ids", "attention_mask")}
        theirs = there.eval()(**kept, decoder_input_ids=decoder_ids).logits.numpy()
        written = there.generate(**kept, num_beams=1, do_sample=False, max_new_tokens=12)
    source, target = (tensor.numpy().astype("int32") for tensor in (kept["input_ids"], decoder_ids))
    ours = np.array(model({"source": source, "target": target}))
    real = targets.numpy() != 0
    np.testing.assert_allclose(ours[real], theirs[real], atol=1e-4)

    again = tmp_path / "again"
    import_model(tmp_path / "there", again)
    translator = load(
        again, engine="tensorflow", beam_size=1, max_source_length=64, extra_length=30
    )
    answers = translator.translate(SOURCES, aligned=True)
    for (answer,), row in zip(answers, written[:, 1:], strict=True):
        pieces = tokenizer.convert_ids_to_tokens(row[row != 0])[:11]  # it forces EOS at the end
        assert answer.pair.target_pieces[: len(pieces)] == pieces
