"""Models with random weights that CTranslate2's own converters write, without PyTorch."""

import json
import types

import numpy as np
import sentencepiece
from ctranslate2.converters import marian, opennmt_py

from tests.kit.exchange import marian_files

D_MODEL, D_FF, HEADS = 12, 20, 3
UNLIKELY = -30  # for tokens that a trained model does not write


def opennmt_vocabulary(model):
    """Returns the tokens of OpenNMT-py for a SentencePiece model."""
    processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    pieces = [processor.id_to_piece(i) for i in range(3, processor.get_piece_size())]
    return ["<unk>", "<blank>", "<s>", "</s>", *pieces]


def write_opennmt(folder, activation="relu", quantization=None, shared=True, **options):
    """Writes a model of OpenNMT-py, with one vocabulary, as Argos' packages have, or two.

    Args:
        folder: a folder that exists, which gets its SentencePiece models, too.
        shared: whether embeddings and softmax are one matrix.
        options: further ones of OpenNMT-py.
    """
    names = ["sentencepiece.model"] if shared else ["src.spm.model", "tgt.spm.model"]
    texts = [marian_files.SOURCES, marian_files.TARGETS]
    texts = [[*texts[0], *texts[1]]] if shared else texts
    marian_files.train_sentencepiece(folder, names, texts, vocab_size=52 if shared else 48)
    vocabularies = [opennmt_vocabulary(folder / name) for name in names]
    source, target = vocabularies[0], vocabularies[-1]
    rng = np.random.default_rng(1)
    variables = {}

    def add(name, *shape):
        variables[f"{name}.weight"] = rng.normal(scale=0.9, size=shape).astype(np.float32)
        variables[f"{name}.bias"] = rng.normal(scale=0.4, size=shape[:1]).astype(np.float32)

    layers = {"encoder": ("transformer", 2), "decoder": ("transformer_layers", 1)}
    for stack, (name, depth) in layers.items():
        add(f"{stack}.layer_norm", D_MODEL)
        for layer in range(depth):
            at = f"{stack}.{name}.{layer}"
            for attention in ["self_attn"] if stack == "encoder" else ["self_attn", "context_attn"]:
                for part in ("linear_query", "linear_keys", "linear_values", "final_linear"):
                    add(f"{at}.{attention}.{part}", D_MODEL, D_MODEL)
            for norm in ("layer_norm", "layer_norm_1", "layer_norm_2", "feed_forward.layer_norm"):
                add(f"{at}.{norm}", D_MODEL)
            add(f"{at}.feed_forward.w_1", D_FF, D_MODEL)
            add(f"{at}.feed_forward.w_2", D_MODEL, D_FF)
        embeddings = f"{stack}.embeddings.make_embedding"
        add(f"{embeddings}.emb_luts.0", len(source if stack == "encoder" else target), D_MODEL)
        variables[f"{embeddings}.pe.pe"] = sinusoids(512)[:, None]
    add("generator", len(target), D_MODEL)
    variables["generator.bias"][:3] = UNLIKELY
    if shared:
        matrix = variables["generator.weight"]
        for stack in layers:
            variables[f"{stack}.embeddings.make_embedding.emb_luts.0.weight"] = matrix
    settings = {"enc_layers": 2, "dec_layers": 1, "heads": HEADS}
    opt = types.SimpleNamespace(**settings, pos_ffn_activation_fn=activation, **options)
    spec = opennmt_py._get_model_spec_seq2seq(opt, variables, [source], [target], 1)
    save(spec, folder, quantization)
    return spec


def write_package(folder, source, target):
    """Writes the folder of a package of Argos Translate, with such a model in int8."""
    (folder / "model").mkdir(parents=True)
    write_opennmt(folder / "model", quantization="int8")
    (folder / "model" / "sentencepiece.model").rename(folder / "sentencepiece.model")
    metadata = {"type": "translate", "from_code": source, "to_code": target}
    (folder / "metadata.json").write_text(json.dumps(metadata))


def write_marian(folder, there, activation="swish", quantization=None):
    """Writes a model of Marian; `there` is a folder for Marian's own files."""
    marian_files.write_vocabulary(there)
    size = len(marian_files.pieces_of(there))
    options, weights = marian_files.draw("post", activation, (2, 1), [size], True)
    options |= {
        "version": "v1.9.0",
        "transformer-no-projection": False,
        "transformer-guided-alignment-layer": "last",
    }
    weights["decoder_ff_logit_out_b"][0, 1:3] = UNLIKELY
    marian_files.save(there, options, weights)
    converter = marian.MarianConverter(str(there / "model.npz"), [str(there / "vocab.yml")])
    save(converter._load(), folder, quantization)
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes((there / name).read_bytes())


def save(spec, folder, quantization):
    spec.validate()
    spec.optimize(quantization)
    spec.save(str(folder))


def sinusoids(count):
    """OpenNMT-py's positions, float32 [count, D_MODEL]."""
    table = np.zeros((count, D_MODEL), np.float32)
    for column in range(0, D_MODEL, 2):
        angles = np.arange(count) * np.exp(-np.log(10000) * column / D_MODEL)
        table[:, column], table[:, column + 1] = np.sin(angles), np.cos(angles)
    return table
