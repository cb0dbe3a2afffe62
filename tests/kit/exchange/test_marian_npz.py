"""Models in Marian's own format, beside Marian's equations in NumPy."""

import shutil

import numpy as np
import pytest
import yaml
from ctranslate2 import converters

from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.kit.exchange import marian
from keras_transformer.kit.exchange.foreign_model import build
from keras_transformer.kit.exchange.importing import import_model
from keras_transformer.kit.exchange.marian import export_marian
from tests.kit.exchange import marian_files
from tests.refusals import refused
from tests.restoring import restore


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    marian_files.write_vocabulary(folder)
    return folder


def assert_same_logits(made, **settings):
    kept = marian.read(made.folder)
    rng = np.random.default_rng(5)
    source, target = rng.integers(2, made.size + 2, size=(2, 1, 9), dtype=np.int32)
    target[0, 0] = 1
    ours = np.array(build(kept)({"source": source, "target": target}))[0]
    source_there = kept.source.rows[source[0]]
    target_there = [None, *kept.target.rows[target[0, 1:]]]
    theirs = marian_files.marian_logits(
        made.options, made.weights, source_there, target_there, **settings
    )
    np.testing.assert_allclose(ours[:, 2:], theirs[:, kept.target.rows[2:]], atol=1e-4)
    assert (ours[:, :2] < -1e4).all()  # padding and BOS


@pytest.mark.parametrize("variant", marian_files.VARIANTS)
def test_logits(variant, texts, tmp_path):
    made = marian_files.write_model(texts, tmp_path / "model", variant)
    assert_same_logits(made)
    # The reference tells such models from those of Hugging Face, whose sinusoids are others.
    with pytest.raises(AssertionError):
        assert_same_logits(made, steps=marian_files.D_MODEL // 2)


def test_a_bias_of_logits_may_be_left_out(texts, tmp_path):
    made = marian_files.write_model(texts, tmp_path / "model", "untied")
    changed_weight("decoder_ff_logit_out_b", None)(made.folder)
    made.weights["decoder_ff_logit_out_b"][:] = 0
    assert_same_logits(made)


def test_one_sentencepiece_model_as_vocabulary(tmp_path):
    """Marian's own vocabularies: *.spm, whose ids are those of its pieces."""
    ids = {"bos_id": -1, "eos_id": 0, "unk_id": 1}
    marian_files.train_sentencepiece(tmp_path, ["vocab.spm"], **ids)
    options, weights = marian_files.draw("post", "relu", (1, 1), [48], True)
    marian_files.save(tmp_path, options, weights)
    kept = marian.read(tmp_path)
    assert kept.source.names == kept.target.names
    assert kept.source.rows[:4].tolist() == [-1, -1, 0, 1]
    assert build(kept).config.vocab_size == 48 + 2  # padding and BOS are new
    import_model(tmp_path, tmp_path / "imported")
    source, target = VocabularyPair.load(tmp_path / "imported")
    assert len(source.encode(["the dog"])[0]) > 1
    assert source.encode(["the dog"]) == target.encode(["the dog"])


def changed_option(name, value):
    def change(folder):
        with np.load(folder / "model.npz") as content:
            weights = dict(content)
        options = yaml.safe_load(weights.pop("special:model.yml").tobytes()[:-1])
        marian_files.save(folder, {**options, name: value}, weights)

    return change


def changed_weight(name, value):
    def change(folder):
        with np.load(folder / "model.npz") as content:
            weights = dict(content)
        weights.pop(name, None)
        more = {} if value is None else {name: value}
        np.savez(folder / "model.npz", **weights, **more)

    return change


def removed(name):
    return lambda folder: (folder / name).unlink()


def shortened(name):
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:300])


def yaml_of_options(text):
    """A model whose options are this text."""
    return changed_weight("special:model.yml", np.frombuffer(text.encode(), np.int8))


@pytest.fixture(scope="module")
def opus(texts, tmp_path_factory):
    return marian_files.write_model(texts, tmp_path_factory.mktemp("opus") / "model").folder


@pytest.mark.parametrize(
    ("change", "place", "argument", "received"),
    [
        (removed("model.npz"), None, "path", "model"),
        (shortened("model.npz"), "model.npz", None, None),
        (shortened("source.spm"), "source.spm", None, None),
        (shortened("vocab.yml"), "vocab.yml", None, None),
        (removed("vocab.yml"), "", None, "none"),
        (changed_option("type", "amun"), "model.npz", "type", '"amun"'),
        (
            changed_option("transformer-postprocess", "dhn"),
            "model.npz",
            "transformer-postprocess",
            '"hn"',
        ),
        (
            changed_option("transformer-decoder-autoreg", "rnn"),
            "model.npz",
            "transformer-decoder-autoreg",
            '"rnn"',
        ),
        (
            changed_option("transformer-ffn-activation", "tanh"),
            "model.npz",
            "transformer-ffn-activation",
            '"tanh"',
        ),
        (changed_option("transformer-heads", 5), "model.npz", "d_k", None),
        (changed_weight("Wemb", np.array(["a"])), "model.npz", "Wemb", "<U1"),
        (changed_weight("Wpos", np.zeros((9, 12))), "model.npz", None, "Wpos"),
        (changed_weight("encoder_l2_self_Wq", None), "model.npz", "encoder_l2_self_Wq", None),
        (changed_weight("Wemb", np.zeros((9, 12))), "model.npz", "Wemb", "(9, 12)"),
    ],
)
def test_what_cannot_be_imported(change, place, argument, received, opus, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(opus, folder)
    change(folder)
    with refused(argument, received, None if place is None else folder / place):
        import_model(folder, tmp_path / "imported")
    assert not (tmp_path / "imported").exists()


BOMB = "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 30))


@pytest.mark.parametrize(
    ("text", "received"),
    [
        ("type: " + "[" * 100_000, "50 levels"),
        ("type: " + "{a: " * 100_000, "50 levels"),
        ("- " * 100_000, "50 levels"),
        ("a0: &a0 [x, x]\n" + BOMB, "an alias, *a0"),
        ("- type", "a list"),
        ("9" * 5000, "limit"),
        ("dim-emb: " + "9" * 5000, "limit"),
    ],
)
def test_yaml_that_would_take_all_stack_or_memory(text, received, opus, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(opus, folder)
    yaml_of_options(text)(folder)
    with refused(None, received, folder / "model.npz"):
        marian.read(folder)
    yaml_of_options("type: transformer")(folder)
    (folder / "vocab.yml").write_text(text)
    with refused(None) as error:
        marian.read(folder)
    assert "vocab.yml" in str(error.value)


def test_gelu_of_versions_before_the_exact_one(texts, tmp_path):
    """Until 1.12.2, Marian's gelu was x sigmoid(1.702 x), about 0.02 beside the exact one."""
    made = marian_files.write_model(texts, tmp_path / "model", "untied")
    changed_option("version", "v1.12.2 a23cc77e 2023-02-27 21:53:41 +0000")(made.folder)
    with pytest.raises(AssertionError):
        assert_same_logits(made)
    made.options["transformer-ffn-activation"] = "former gelu"
    assert_same_logits(made)
    assert marian.read(made.folder).config.activation == "swish"
    for version, received in ((None, "null"), ("new", '"new"')):
        changed_option("version", version)(made.folder)
        with refused("version", received, made.folder / "model.npz", about="1.12.3"):
            marian.read(made.folder)


@pytest.fixture(scope="module")
def two_vocabularies(tmp_path_factory):
    """A model from English to German with a vocabulary for each."""
    folder = tmp_path_factory.mktemp("two")
    ids = {"bos_id": -1, "eos_id": 0, "unk_id": 1}
    marian_files.train_sentencepiece(folder, ["vocab.en.spm", "vocab.de.spm"], **ids)
    options, weights = marian_files.draw("post", "relu", (1, 1), [48, 48], True)
    marian_files.save(folder, options, weights)
    return folder


def sides(folder):
    kept = marian.read(folder)
    names = {file.read_bytes(): file.name for file in folder.glob("*.spm")}
    return tuple(names[side.sentencepiece_model] for side in (kept.source, kept.target))


def renamed(two_vocabularies, folder, source, target):
    shutil.copytree(two_vocabularies, folder)
    (folder / "vocab.en.spm").rename(folder / source)
    (folder / "vocab.de.spm").rename(folder / target)
    return folder


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("vocab.src.spm", "vocab.trg.spm"),
        ("source-vocab.spm", "a-target-vocab.spm"),
        ("srcvocab.ende.spm", "TGTvocab.ende.spm"),
    ],
)
def test_names_of_vocabularies_tell_their_sides(two_vocabularies, source, target, tmp_path):
    folder = renamed(two_vocabularies, tmp_path / "model", source, target)
    assert sides(folder) == (source, target)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("vocab.en.spm", "vocab.de.spm"),
        ("vocab.src.spm", "vocab.de.spm"),
        ("src-trg.vocab.spm", "b.vocab.spm"),
    ],
)
def test_names_of_vocabularies_that_do_not_tell(two_vocabularies, source, target, tmp_path):
    folder = renamed(two_vocabularies, tmp_path / "model", source, target)
    with refused(None, ", ".join(sorted([source, target])), folder, about="src and trg"):
        marian.read(folder)


@pytest.mark.parametrize("name", ["decoder.yml", "model.npz.decoder.yml"])
def test_decoder_file_tells_the_sides(two_vocabularies, name, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(two_vocabularies, folder)
    content = {"models": ["model.npz"], "vocabs": ["/train/vocab.en.spm", "vocab.de.spm"]}
    (folder / name).write_text(yaml.safe_dump(content))
    assert sides(folder) == ("vocab.en.spm", "vocab.de.spm")
    (folder / "vocab.en.spm").rename(folder / "en.spm")
    (folder / name).write_text(yaml.safe_dump({"vocabs": ["en.spm", "vocab.de.spm"]}))
    assert sides(folder) == ("en.spm", "vocab.de.spm")


@pytest.mark.parametrize(
    ("content", "argument", "received"),
    [
        ({"vocabs": ["vocab.en.spm"]}, "vocabs", '["vocab.en.spm"]'),
        ({"models": []}, "vocabs", "null"),
        ({"vocabs": ["a.spm", "vocab.de.spm"]}, "vocabs", '"a.spm"'),
        ({"vocabs": [["a"], ".."]}, "vocabs", "['a']"),
        ([], None, "a list"),
    ],
)
def test_decoder_files_that_name_no_pair(two_vocabularies, content, argument, received, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(two_vocabularies, folder)
    (folder / "decoder.yml").write_text(yaml.safe_dump(content))
    with refused(argument, received, folder / "decoder.yml"):
        marian.read(folder)


@pytest.mark.parametrize("variant", ["OPUS-MT", "pre-norm"])
def test_what_is_written_is_what_was_read(variant, texts, tmp_path):
    """CTranslate2's converter makes the same model of both."""
    made = marian_files.write_model(texts, tmp_path / "there", variant)
    made.options |= {
        "transformer-no-projection": False,
        "transformer-guided-alignment-layer": "last",
    }
    marian_files.save(made.folder, made.options, made.weights)
    import_model(made.folder, tmp_path / "model")
    trained = restore(tmp_path / "model")
    export_marian(trained.model, trained.vocabularies, tmp_path / "again", trained.card)
    found = []
    for folder, names in (
        (made.folder, ["vocab.yml"]),
        (tmp_path / "again", ["source.vocab.yml", "target.vocab.yml"]),
    ):
        files = [str(folder / name) for name in names]
        spec = converters.MarianConverter(str(folder / "model.npz"), files)._load()
        spec.validate()
        found.append((spec._vocabularies, spec.config.to_dict(), spec.variables()))
    (*facts, arrays), (*other_facts, others) = found
    assert facts == other_facts and arrays.keys() == others.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array.numpy(), others[name].numpy(), err_msg=name)


def test_a_trained_start_of_targets_is_refused(texts, tmp_path):
    made = marian_files.write_model(texts, tmp_path / "there")
    import_model(made.folder, tmp_path / "model")
    trained = restore(tmp_path / "model")
    embedding = trained.model.target_embedding.embeddings
    embedding.assign(embedding + 1)
    with refused("model", "BOS", about="zeros"):
        export_marian(trained.model, trained.vocabularies, tmp_path / "again", trained.card)
    assert not (tmp_path / "again").exists()
