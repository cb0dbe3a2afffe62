"""The Transformer as a functional keras.Model (Figure 1), and its parts for decoding.

`build_transformer` composes the layers. `encode`, `project_memory`, `empty_cache` and `decode_step`
run the same layers, with the same weights, one target position at a time.
"""

import dataclasses

import keras
from keras import ops

from keras_transformer.config import BOS_ID, TransformerConfig
from keras_transformer.model.decoder import Decoder
from keras_transformer.model.decoder_cache import DecoderCache, scatter
from keras_transformer.model.embedding import Logits, TokenEmbedding
from keras_transformer.model.encoder import Encoder
from keras_transformer.model.masks import padding_mask
from keras_transformer.model.positions import PositionalEncoding


class PaddingMask(keras.layers.Layer):
    """int ids [B, S] -> bool [B, 1, 1, S], True at real tokens, for all heads and queries."""

    def call(self, ids):
        return padding_mask(ids)[:, None, None, :]

    def compute_output_spec(self, ids):
        return keras.KerasTensor((ids.shape[0], 1, 1, ids.shape[1]), "bool")


def build_transformer(
    config: TransformerConfig, precision: str = "float32", rematerialize: bool = False
) -> keras.Model:
    """Builds the model of section 3.

    Args:
        config: the model's configuration.
        precision: "float32", or "bfloat16" or "float16" for activations of that type over float32
            variables. Sinusoids, layer normalisation, softmax and logits are float32 in any case.
        rematerialize: whether training computes each layer again in its backward pass.

    Returns:
        A functional keras.Model from {"source": int32 [B, S], "target": int32 [B, T]} to logits,
        float32 [B, T, V]. Targets begin with BOS: logits at position t predict token t of the
        target without it. Zeros are padding. Its layers are named as in Figure 1.
    """
    policy = precision if precision == "float32" else f"mixed_{precision}"
    source = keras.Input((None,), dtype="int32", name="source")
    target = keras.Input((None,), dtype="int32", name="target")

    source_embedding = TokenEmbedding(config, dtype=policy, name="embedding")
    target_embedding = source_embedding
    if not config.tie_embeddings:
        target_embedding = TokenEmbedding(config, dtype=policy, name="target_embedding")
    source_positions = PositionalEncoding(config, dtype=policy, name="source_positions")
    target_positions = PositionalEncoding(config, dtype=policy, name="target_positions")
    encoder = Encoder(config, rematerialize, dtype=policy, name="encoder")
    decoder = Decoder(config, rematerialize, dtype=policy, name="decoder")
    shared = target_embedding if config.tie_embeddings else None
    logits = Logits(config, shared, dtype=policy, name="logits")

    memory_mask = PaddingMask(name="source_mask")(source)
    memory = encoder(source_positions(source_embedding(source)), memory_mask)
    states = decoder(target_positions(target_embedding(target)), memory, memory_mask)
    inputs = {"source": source, "target": target}
    model = keras.Model(inputs, logits(states), name="transformer")
    model.config = config
    return model


def states_model(model: keras.Model) -> keras.Model:
    """The same model without its last product: to the decoder's states [B, T, D].

    Training computes loss and logits together, a block of positions at a time (training/losses).
    """
    return keras.Model(model.input, model.get_layer("decoder").output, name="transformer_states")


def inference_model(model: keras.Model) -> keras.Model:
    """The same model with its matrices laid out for decoding; it computes the same numbers.

    On CPUs, multiplying a few states by the transpose of the embedding matrix takes far longer than
    by a matrix stored transposed, and joining kernels for each target position takes time too.

    Args:
        model: from build_transformer.

    Returns:
        A model of `layout="inference"` with copies of the variables: `model` can go.
    """
    config = dataclasses.replace(model.config, layout="inference")
    policy = model.get_layer("decoder").dtype_policy
    copy = build_transformer(config, policy.compute_dtype)
    weights = {variable.path: ops.convert_to_tensor(variable) for variable in model.variables}
    for variable in copy.trainable_variables:
        folder, _, name = variable.path.rpartition("/")
        if variable.path in weights:
            value = weights[variable.path]
        else:
            parts = name.removesuffix("_kernel").split("_")
            value = ops.concatenate([weights[f"{folder}/{part}_kernel"] for part in parts], axis=1)
        transposed = variable is copy.get_layer("logits").matrix
        variable.assign(ops.transpose(value) if transposed else value)
    return copy


def shift_right(target):
    """Makes the decoder's input of a target: BOS first, the last column gone (Figure 1).

    Args:
        target: int32 [B, T], each row ending in EOS and padding.

    Returns:
        int32 [B, T].
    """
    return ops.pad(target[:, :-1], ((0, 0), (1, 0)), constant_values=BOS_ID)


def encode(model: keras.Model, source):
    """Runs the encoder.

    Args:
        model: from build_transformer.
        source: int32 [B, S].

    Returns:
        memory [B, S, D], and bool [B, S], True at real tokens.
    """
    embeddings = model.get_layer("embedding")(source)
    inputs = model.get_layer("source_positions")(embeddings)
    memory = model.get_layer("encoder")(inputs, model.get_layer("source_mask")(source))
    return memory, padding_mask(source)


def project_memory(model: keras.Model, memory):
    """Computes the keys and values that the decoder's layers have of the memory, once a sentence.

    Args:
        memory: [B, S, D].

    Returns:
        A list, an entry a layer, of (keys [B, H, S, d_k], values [B, H, S, d_v]).
    """
    layers = model.get_layer("decoder").layers
    return [tuple(layer.memory_attention.project_keys_values(memory)) for layer in layers]


def empty_cache(model: keras.Model, batch, beams: int) -> DecoderCache:
    """The decoder's cache before the first position; `reserve` makes room in it.

    Args:
        batch: B, an int or int scalar tensor.
        beams: K.
    """
    config, decoder = model.config, model.get_layer("decoder")
    shape = (batch, config.num_heads, 0, beams)
    keys = ops.zeros((*shape, config.d_k), decoder.compute_dtype)
    values = ops.zeros((*shape, config.d_v), decoder.compute_dtype)
    return DecoderCache(ops.zeros((batch, beams, 0), "int32"), [(keys, values)] * config.num_layers)


def decode_step(
    model: keras.Model, ids, position, cache, projected_memory, source_mask, write=scatter
):
    """Computes the logits of one target position for every beam.

    Args:
        ids: int32 [B, K], the tokens at this position: BOS at position 0.
        position: int32 scalar, less than what the cache has room for.
        cache: the DecoderCache of the earlier positions.
        projected_memory: `project_memory`'s.
        source_mask: bool [B, S], True at real tokens.
        write: puts a position's entries into the cache; see decoder_cache.scatter.

    Returns:
        logits of the next token, float32 [B, K, V], and the new cache.
    """
    tied = model.config.tie_embeddings
    embeddings = model.get_layer("embedding" if tied else "target_embedding")(ids)  # [B, K, D]
    # Every beam is a sequence of one position here.
    inputs = model.get_layer("target_positions")(
        ops.reshape(embeddings, (-1, 1, model.config.d_model)), start=position
    )
    states, cache = model.get_layer("decoder").step(
        inputs[:, 0], position, cache, projected_memory, source_mask[:, None, None, :], write
    )
    logits = model.get_layer("logits")(states)  # [B K, V]
    return ops.reshape(logits, (-1, ids.shape[1], logits.shape[1])), cache
