"""The Transformer of Figure 1 as a functional keras.Model, with methods for decoding."""

import dataclasses

import keras
from keras import ops

from keras_transformer import presets
from keras_transformer.config import BOS_ID, TransformerConfig
from keras_transformer.model.decoder import Decoder
from keras_transformer.model.decoder_cache import DecoderCache, scatter
from keras_transformer.model.embedding import TokenEmbedding
from keras_transformer.model.encoder import Encoder
from keras_transformer.model.masks import padding_mask
from keras_transformer.model.positions import PositionalEncoding


@keras.saving.register_keras_serializable(package="keras_transformer")
class Transformer(keras.Model):
    """The model of section 3.

    A functional model from {"source": int32 [B, S], "target": int32 [B, T]} to logits, float32
    [B, T, V]. Targets begin with BOS: the logits at position t predict token t of the target
    without it (`shift_right` makes such a target). Zeros are padding, and follow the tokens.

    Args:
        config: the model's configuration, a TransformerConfig or a dict of its fields.
        rematerialize: whether training computes each layer again in its backward pass, which saves
            memory.
        dtype: a Keras dtype policy, "float32", "mixed_bfloat16" or "mixed_float16"; None for the
            global one. Variables, sinusoids, layer normalisation, softmax and logits are float32
            in any case.

    Attributes:
        config: a TransformerConfig.
        embedding: the TokenEmbedding of the source.
        target_embedding: of the target; the same layer if both are tied and of one vocabulary.
        logits_embedding: the one whose matrix makes logits; the target's where they are tied.
        source_positions, target_positions: the PositionalEncodings.
        encoder, decoder: the two stacks.

    Example:
        >>> model = Transformer.from_preset("tiny", vocab_size=8000)
        >>> source, target = np.array([[5, 6, 2]]), np.array([[1, 7, 8, 9]])
        >>> model({"source": source, "target": target}).shape
        (1, 4, 8000)
    """

    encoder_class = Encoder
    decoder_class = Decoder

    def __init__(
        self,
        config: TransformerConfig | dict,
        rematerialize: bool = False,
        dtype=None,
        name: str = "transformer",
        **kwargs,
    ):
        config = TransformerConfig(**config) if isinstance(config, dict) else config
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        sizes = {"vocab_size": config.vocab_size, "d_model": config.d_model, "dtype": policy}
        sizes |= {"scale": config.scale_embeddings, "use_bias": config.logits_bias}
        of_source = {**sizes, "vocab_size": config.source_vocab_size or config.vocab_size}
        positions = {
            "positions": config.positions,
            "max_positions": config.max_positions,
            "dropout": config.dropout,
            "dtype": policy,
        }
        stack = {
            "num_layers": config.num_layers,
            "num_heads": config.num_heads,
            "key_dim": config.d_k,
            "value_dim": config.d_v,
            "d_ff": config.d_ff,
            "norm": config.norm,
            "attention_window": config.attention_window,
            "dropout": config.dropout,
            "attention_dropout": config.attention_dropout,
            "activation_dropout": config.activation_dropout,
            "activation": config.activation,
            "attention_bias": config.attention_bias,
            "norm_epsilon": config.norm_epsilon,
            "rematerialize": rematerialize,
            "dtype": policy,
        }
        tied = config.tie_embeddings
        shared = tied and config.source_vocab_size is None
        self.embedding = self.make_embedding(shared, **of_source, name="embedding")
        self.target_embedding = self.embedding
        if not shared:
            self.target_embedding = self.make_embedding(tied, **sizes, name="target_embedding")
        self.logits_embedding = self.target_embedding
        self.source_positions = PositionalEncoding(**positions, name="source_positions")
        self.target_positions = PositionalEncoding(**positions, name="target_positions")
        self.encoder = self.encoder_class(**stack, name="encoder")
        stack["num_layers"] = config.decoder_layers or config.num_layers
        self.decoder = self.decoder_class(**stack, name="decoder")
        if not tied:  # last: checkpoints know variables by this order
            self.logits_embedding = self.make_embedding(True, **sizes, name="logits")

        source = keras.Input((None,), dtype="int32", name="source")
        target = keras.Input((None,), dtype="int32", name="target")
        inputs = {"source": source, "target": target}
        logits = self.logits_embedding(self.states(inputs), reverse=True)
        super().__init__(inputs, logits, name=name, **kwargs)
        self.config = config
        self.rematerialize = rematerialize
        self.dtype_policy = policy

    def __setattr__(self, name, value):
        # PyTorch refuses modules as attributes before Module.__init__, which comes after them here.
        if keras.backend.backend() == "torch" and "_layers" not in vars(self):
            object.__setattr__(self, name, value)
        else:
            super().__setattr__(name, value)

    @staticmethod
    def make_embedding(makes_logits, use_bias, **options):
        return TokenEmbedding(use_bias=makes_logits and use_bias, **options)

    @classmethod
    def from_preset(cls, name: str, vocab_size: int, **settings) -> "Transformer":
        """Builds the untrained model of a preset, such as "base" or "tiny".

        Args:
            name: a key of keras_transformer.PRESETS.
            vocab_size: V.
            settings: fields of TransformerConfig that replace the preset's.

        Raises:
            InputError: for an unknown preset, or a value that a field cannot hold.
        """
        config, _ = presets.preset(name, vocab_size)
        return cls(dataclasses.replace(config, **settings))

    def states(self, inputs, training=None):
        """Computes the states [B, T, D] that logits are products of, from the model's inputs.

        Training computes loss and logits together, some positions at a time (training/losses).
        """
        memory, mask = self.encode(inputs["source"], training)
        embeddings = self.target_embedding(inputs["target"])
        embeddings = self.target_positions(embeddings, training=training)
        return self.decoder(embeddings, memory, memory_mask=mask, training=training)

    def encode(self, source, training=None):
        """Runs the encoder: int32 [B, S] -> memory [B, S, D] and its mask, False at padding."""
        mask = padding_mask(source)
        embeddings = self.source_positions(self.embedding(source), training=training)
        return self.encoder(embeddings, mask=mask, training=training), mask

    def project_memory(self, memory):
        """For each layer, makes keys [B, H, S, d_k] and values [B, H, S, d_v] of the memory."""
        layers = self.decoder.layers
        return [tuple(layer.cross_attention.project(memory, ("key", "value"))) for layer in layers]

    def empty_cache(self, batch, beams: int) -> DecoderCache:
        """Returns the cache of B x K hypotheses before the first position, without any room."""
        config, dtype = self.config, self.decoder.compute_dtype
        shape = (batch, config.num_heads, 0, beams)
        keys, values = [ops.zeros((*shape, width), dtype) for width in (config.d_k, config.d_v)]
        origins = ops.zeros((batch, beams, 0), "int32")
        return DecoderCache(origins, [(keys, values)] * len(self.decoder.layers))

    def decode_step(
        self, ids, position, cache, projected_memory, source_mask, write=scatter, kernel=None
    ):
        """Computes logits of the next token, float32 [B, K, V] for K beams, and the new cache.

        Args:
            ids: int32 [B, K], the tokens at this position: BOS at position 0.
            position: int32 scalar, less than what the cache has room for.
            cache: the DecoderCache of the earlier positions.
            projected_memory: what `project_memory` returned.
            source_mask: bool [B, S], False at padding.
            write: puts a position's entries into the cache; see decoder_cache.scatter.
            kernel: columns of the softmax matrix, [D, C], for logits of C tokens only.
        """
        embeddings = self.target_embedding(ids)  # [B, K, D]
        # Every beam is a sequence of one position here.
        rows = ops.reshape(embeddings, (-1, 1, self.config.d_model))
        inputs = self.target_positions(rows, start=position)[:, 0]
        states, cache = self.decoder.step(
            inputs, position, cache, projected_memory, source_mask, write
        )
        logits = self.logits_embedding(states, reverse=True, kernel=kernel)  # [B K, V]
        return ops.reshape(logits, (-1, ids.shape[1], ops.shape(logits)[1])), cache

    def get_config(self):
        return {
            "config": dataclasses.asdict(self.config),
            "rematerialize": self.rematerialize,
            "dtype": self.dtype_policy.name,
            "name": self.name,
            "trainable": self.trainable,
        }


def shift_right(target):
    """Makes the decoder's input of a target: BOS first, the last column gone (Figure 1).

    `target` and the result are int32 [B, T]; each row of `target` ends in EOS and padding.
    """
    return ops.pad(target[:, :-1], ((0, 0), (1, 0)), constant_values=BOS_ID)


def teacher_forcing(source, target):
    """Makes the inputs and labels of `Transformer.fit`, for `dataset.map(teacher_forcing)`.

    `source` [B, S] and `target` [B, T] are int32, and their rows end in EOS and padding. Returns
    ({"source", "target"}, labels): the target shifted right, and as it is.
    """
    return {"source": source, "target": shift_right(target)}, target
