"""The page of an export's signatures: names, dtypes and shapes, from the graphs themselves.

The letters of the shapes and the words are here, and `page` compares them with every signature: a
new input or output, or one of another rank, ends it with an error.
"""

import dataclasses
import inspect
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from docs.site.fields import table

# Name of an input -> its axes, and what it is.
INPUTS = {
    "text": ("B", "texts"),
    "source": ("B", "source texts"),
    "target": ("B", "a translation of each"),
}
INPUTS_OF_IDS = {
    "source": ("B S", "each row ends in EOS and then padding"),
    "target": ("B T", "each row ends in EOS and then padding"),
    "prefix": ("B P", "padded, without EOS, P at least 1: what each target begins with"),
    "phrases": ("B P M", "padded, without EOS: what each target contains"),
    "guaranteed": ("", "how many of the K targets must be the best ones"),
    "alpha": ("", "of the length penalty (section 6.1)"),
}
# Name of an output -> its axes, and what it is. Where a signature gives all beams, those of
# PER_TRANSLATION have the axis K, too.
PER_TRANSLATION = {
    "translation": ("B", "UTF-8"),
    "score": ("B", "log-probability / length penalty, best first"),
    "log_prob": ("B", "natural logarithm of the probability, EOS included"),
    "length": ("B", "subwords, EOS counted"),
    "unfinished": ("B", "whether the translation reached its length limit before EOS"),
}
OUTPUTS = {
    "truncated": ("B", "whether a text was longer than the limit, and its end was cut off"),
    "perplexity": ("B", "exp(-log_prob / length)"),
    "log_probs": ("B T", "natural logarithm of the probability of each, 0 at padding"),
    "token_log_prob": ("B K T", "natural logarithm of the probability of each, 0 at padding"),
    "alignment": ("B T", "a source position for each, from 0"),
    "encoder": ("B N H S S", "self-attention of the encoder; the last axis sums to 1"),
    "decoder": ("B N H T T", "self-attention of the decoder; column t is what was read there"),
    "memory": ("B N H T S", "cross-attention"),
    "ids": ("B K T", "those of the targets, with EOS, padded"),
    "is_finite": ("B K", "False where logits are NaN, as those of weights that are not finite"),
}
# Outputs that are something else in one signature.
ELSEWHERE = {
    ("aligned_search_ids", "alignment"): ("B K T", "a source position for each, from 0"),
    ("aligned_greedy_ids", "alignment"): ("B K T", "a source position for each, from 0"),
}


@dataclasses.dataclass(frozen=True)
class Tensor:
    """An input or output of a signature, as TensorFlow knows it."""

    name: str
    dtype: str
    shape: tuple[int | None, ...]


@dataclasses.dataclass(frozen=True)
class Signature:
    """A signature of an export."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


def page(signatures: Mapping[str, Signature]) -> str:
    """The page; `signatures` are all that an export of a single model can have."""
    text = "# Signatures of an export\n\n`export` writes a SavedModel with these signatures; "
    text += "[the guide](../guides/serving.md#export) shows how to call one. Axes of shapes:\n\n"
    text += "- B: texts, from 0 to any number. One text may be given as a scalar.\n"
    text += "- K: beams, the `beam_size` of the export. N: layers. H: heads.\n"
    text += "- S, T: subwords of a source and of a target. P: phrases, or the longest prefix. M: "
    text += "subwords of a phrase.\n\n"
    text += "Texts are UTF-8, and those longer than the limits are cut. Where "
    text += 'there are fewer than K translations, `""` with score -inf follows.\n'
    of_texts = [name for name in signatures if not is_of_ids(name)]
    of_ids = [name for name in signatures if is_of_ids(name)]
    for names in (of_texts, of_ids):
        if names is of_ids:
            text += "\nThe following ones take and return ids; `kt.load` uses them.\n"
        for name in names:
            text += f"\n## {name}\n\n{summary(name)}\n\n{signature_table(name, signatures[name])}"
    return text


def is_of_ids(name: str) -> bool:
    return name.endswith("_ids")


def summary(name: str) -> str:
    """The first sentence of the docstring, and what an export must be to have the signature."""
    from keras_transformer.core.search.engines.graphs import SearchGraphs
    from keras_transformer.kit.exchange.text_graphs import TextGraphs

    graphs = SearchGraphs if is_of_ids(name) else TextGraphs
    first, _, _ = inspect.getdoc(getattr(graphs, name).python_function).partition("\n\n")
    text = " ".join(first.split())
    if name == "constrain_ids":
        text += " Only with `export --constraints`."
    if name in ("greedy_ids", "aligned_greedy_ids"):
        text += " Only where the export has one beam."
    if name == "attention_ids":
        text += " Not of an ensemble."
    return text


def signature_table(name: str, signature: Signature) -> str:
    inputs = INPUTS | INPUTS_OF_IDS if is_of_ids(name) else INPUTS
    rows = []
    for tensor in sorted(signature.inputs, key=lambda tensor: [*inputs].index(tensor.name)):
        rows.append(row(tensor, inputs[tensor.name], "input"))
    outputs = PER_TRANSLATION | OUTPUTS
    for tensor in sorted(signature.outputs, key=lambda tensor: [*outputs].index(tensor.name)):
        axes, meaning = outputs[tensor.name]
        if tensor.name in PER_TRANSLATION and len(tensor.shape) == 2:
            axes = "B K"
        described = ELSEWHERE.get((name, tensor.name), (axes, meaning))
        rows.append(row(tensor, described, "output"))
    return table(["", "Name", "dtype", "Shape", "What it is"], rows)


def row(tensor: Tensor, described: tuple[str, str], kind: str) -> list[str]:
    axes, meaning = described
    letters = axes.split()
    if len(letters) != len(tensor.shape):
        raise ValueError(f"{tensor.name} must have the axes {axes}. Received: {tensor.shape}")
    return [kind, f"`{tensor.name}`", tensor.dtype, f"[{', '.join(letters)}]", meaning]


def traced() -> dict[str, Signature]:
    """Traces the graphs of a tiny model."""
    from keras_transformer.core.config import TransformerConfig
    from keras_transformer.core.model.transformer import Transformer
    from keras_transformer.core.search.compiled_model import compile_model
    from keras_transformer.core.search.config import DecodingConfig, SearchSettings
    from keras_transformer.core.search.engines.graphs import SearchGraphs
    from keras_transformer.core.search.ensemble import ensemble_of
    from keras_transformer.core.vocabulary.pair import VocabularyPair
    from keras_transformer.core.vocabulary.wordpiece import SPECIAL_WORDPIECES
    from keras_transformer.kit.exchange.text_graphs import TextGraphs

    with tempfile.TemporaryDirectory() as folder:
        words = [*SPECIAL_WORDPIECES, *"abcdefgh"]
        Path(folder, "vocabulary.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
        vocabularies = VocabularyPair.load(folder)
        sizes = {"num_layers": 1, "d_model": 4, "d_ff": 4, "num_heads": 2}
        model = Transformer(TransformerConfig(vocabularies.target.vocab_size, **sizes))
        compiled = ensemble_of([compile_model(model)])
        graphs = SearchGraphs(compiled, SearchSettings(DecodingConfig(beam_size=3)))
        texts = TextGraphs(graphs, vocabularies)
        greedy = SearchGraphs(compiled, SearchSettings(DecodingConfig(beam_size=1)))
        found = {**texts.named, **greedy.exported, **graphs.exported}
        return {name: signature_of(graph.get_concrete_function()) for name, graph in found.items()}


def signature_of(function: Callable[..., Any]) -> Signature:
    """The inputs and outputs of a graph, or of a signature of an export that was loaded."""
    positional, named = function.structured_input_signature
    inputs = [*positional, *named.values()]
    return Signature(
        tuple(tensor_of(spec.name, spec) for spec in inputs),
        tuple(tensor_of(name, spec) for name, spec in function.structured_outputs.items()),
    )


def tensor_of(name: str, spec: Any) -> Tensor:
    return Tensor(name, spec.dtype.name, tuple(spec.shape.as_list()))
