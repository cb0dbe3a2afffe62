"""Models with random weights in Hugging Face's format, written without its libraries."""

import json
import re

import h5py
import numpy as np
import sentencepiece
from safetensors.numpy import save_file

from tests.kit.exchange import marian_files

CARD = "---\nlanguage:\n- de\n- en\nlicense: cc-by-4.0\n---\n\n# German to English\n"
# Among them two of one language.
NLLB_LANGUAGES = ("ace_Arab", "ace_Latn", "arb_Arab", "deu_Latn", "eng_Latn", "zho_Hans")
SHARED = "model.shared"  # the layer and the scope of the embeddings
# Parts of Hugging Face's names, by the parts of Marian's.
LAYERS = {
    r"self_Wo_ln_.+": "self_attn_layer_norm.",
    r"context_Wo_ln_.+": "encoder_attn_layer_norm.",
    r"ffn_ffn_ln_.+": "final_layer_norm.",
    r"self_[Wb]o": "self_attn.out_proj.",
    r"context_[Wb]o": "encoder_attn.out_proj.",
    r"self_[Wb](\w)": r"self_attn.\1_proj.",
    r"context_[Wb](\w)": r"encoder_attn.\1_proj.",
    r"ffn_[Wb](\d)": r"fc\1.",
}


def write_model(folder, kind):
    """Writes a German-English model; returns its options, weights and number of ids.

    Args:
        folder: a folder that exists.
        kind: "safetensors" or "h5".
    """
    marian_files.train_sentencepiece(folder)
    pieces = [*marian_files.pieces_of(folder), "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(pieces)}))
    options, weights = marian_files.draw("post", "swish", (2, 1), [len(pieces)], tied=True)
    pad_id = len(pieces) - 1
    write_config(
        folder,
        model_type="marian",
        activation_function="swish",
        eos_token_id=0,
        pad_token_id=pad_id,
        decoder_start_token_id=pad_id,
    )
    (folder / "README.md").write_text(CARD)
    write_languages(folder, "de", "en")
    tensors = pytorch_tensors(weights)
    if kind == "safetensors":
        save_file(tensors, folder / "model.safetensors")
    else:
        write_tf_model(folder / "tf_model.h5", tensors)
    return options, weights, len(pieces)


def write_m2m100(folder, variant):
    """Writes a model of M2M-100's kind; returns its options, weights and number of pieces.

    The ids of the languages follow the pieces, and those of two further tokens.

    Args:
        folder: a folder that exists.
        variant: "SMaLL-100", "M2M-100" or "NLLB-200".
    """
    texts = [[*marian_files.SOURCES, *marian_files.TARGETS]]
    marian_files.train_sentencepiece(folder, ["sentencepiece.bpe.model"], texts)
    model = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece.bpe.model"))
    pieces = [model.id_to_piece(i) for i in range(3, model.get_piece_size())]
    pieces = ["<s>", "<pad>", "</s>", "<unk>", *pieces]
    count = len(pieces)
    languages = len(NLLB_LANGUAGES) if variant == "NLLB-200" else 100
    size = count + languages + 2
    if variant == "NLLB-200":
        tokens = [*NLLB_LANGUAGES, "<mask>"]
        added = [{"id": i, "content": token} for i, token in enumerate(tokens, start=count)]
        (folder / "tokenizer.json").write_text(json.dumps({"added_tokens": added}))
    else:
        (folder / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(pieces)}))
    if variant == "SMaLL-100":
        (folder / "tokenization_small100.py").write_text("raise SystemExit('nothing runs this')\n")
    write_config(
        folder,
        model_type="m2m_100",
        activation_function="relu",
        eos_token_id=2,
        pad_token_id=1,
        decoder_start_token_id=2,
        vocab_size=size,
    )
    options, weights = marian_files.draw("pre", "relu", (2, 1), [size], tied=True)
    weights["decoder_ff_logit_out_b"][:] = 0
    tensors = pytorch_tensors(weights)
    del tensors["final_logits_bias"]
    save_file(tensors, folder / "model.safetensors")
    return options, weights, count


def write_config(folder, **options):
    """Writes config.json, with the sizes of the models in marian_files.py."""
    sizes = {
        "d_model": marian_files.D_MODEL,
        "encoder_layers": 2,
        "decoder_layers": 1,
        "encoder_attention_heads": marian_files.HEADS,
        "decoder_attention_heads": marian_files.HEADS,
        "encoder_ffn_dim": marian_files.D_FF,
        "decoder_ffn_dim": marian_files.D_FF,
        "scale_embedding": True,
    }
    (folder / "config.json").write_text(json.dumps({**sizes, **options}))


def write_languages(folder, source, target):
    content = json.dumps({"source_lang": source, "target_lang": target})
    (folder / "tokenizer_config.json").write_text(content)


def pytorch_tensors(weights):
    """Returns Marian's weights under PyTorch's names, with its transposed matrices."""
    tensors = {
        "model.shared.weight": weights["Wemb"],
        "final_logits_bias": weights["decoder_ff_logit_out_b"],
    }
    for name, weight in weights.items():
        match = re.fullmatch(r"(encoder|decoder)_top_ln_(scale|bias)", name)
        if match:
            kind = {"scale": "weight", "bias": "bias"}[match[2]]
            tensors[f"model.{match[1]}.layer_norm.{kind}"] = weight[0]
        match = re.fullmatch(r"(encoder|decoder)_l(\d+)_(.+)", name)
        if match:
            stack, layer, rest = match.groups()
            prefix = f"model.{stack}.layers.{int(layer) - 1}."
            kind = "bias" if re.search("bias|_b.$", rest) else "weight"
            pattern = next(pattern for pattern in LAYERS if re.fullmatch(pattern, rest))
            is_matrix = kind == "weight" and "_ln_" not in rest
            tensor = weight.T if is_matrix else weight[0]
            tensors[prefix + re.sub(pattern, LAYERS[pattern], rest) + kind] = tensor
    return {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}


def write_tf_model(file, tensors):
    """Writes tensors as TFMarianMTModel of Transformers 4.57 does, with its sinusoids."""
    layers = "model/tf_marian_mt_model/model"
    with h5py.File(file, "w") as stored:
        stored.attrs["backend"] = "tensorflow"
        stored.attrs["layer_names"] = ["model", "final_logits_bias"]
        for name, tensor in tensors.items():
            stored[tf_path(name, layers)] = tensor.T if is_matrix(name) else tensor
        for stack in ("encoder", "decoder"):
            sinusoids = np.zeros([1024, marian_files.D_MODEL], np.float32)
            stored[f"{layers}/{stack}/embed_positions/embeddings:0"] = sinusoids


def is_matrix(name):
    """Whether TensorFlow's matrix is the transpose of PyTorch's."""
    return name.endswith(("_proj.weight", "fc1.weight", "fc2.weight"))


def tf_path(name, layers):
    """Returns where the file of a TensorFlow model has a tensor."""
    if name == "final_logits_bias":
        return "final_logits_bias/final_logits_bias:0"
    if name == "model.shared.weight":
        return f"model/{SHARED}/{SHARED}/embeddings:0"
    _, stack, _, number, *rest, kind = name.split(".")
    if rest[-1].endswith("norm"):
        kind = {"weight": "gamma", "bias": "beta"}[kind]
    elif kind == "weight":
        kind = "kernel"
    return f"{layers}/{stack}/layers.{number}/{'/'.join(rest)}/{kind}:0"
