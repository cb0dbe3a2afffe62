"""The Transformer of Figure 1 as a functional keras.Model.

Its weights are in Keras' own layers, or subclasses of them, so LoRA, quantization and initializers
come with them.
Every layer gets the padding mask of the source explicitly: Keras' implicit masks would hide an id 0
in the middle of a target, unlike the search. The causal mask hides the padding of targets.
"""

import dataclasses

import keras
from keras import ops

from keras_transformer.core import presets
from keras_transformer.core.config import BOS_ID, TransformerConfig, replace_model_settings
from keras_transformer.core.model.composite import enable_lora, quantize_parts, quantized_parts
from keras_transformer.core.model.decoder import Decoder, DecoderLayer, RecurrentDecoderLayer
from keras_transformer.core.model.embedding import TokenEmbedding
from keras_transformer.core.model.encoder import Encoder, EncoderLayer
from keras_transformer.core.model.masks import source_mask
from keras_transformer.core.model.packing import packed_inputs
from keras_transformer.core.model.positional_encoding import PositionalEncoding


@keras.saving.register_keras_serializable(package="keras_transformer")
class Transformer(keras.Model):
    """The model described in section 3.

    A functional model from {"source": int32 [B, S], "target": int32 [B, T]} to logits, float32
    [B, T, V]. Targets begin with BOS (see `shift_right`): the logits at position t predict the
    token at position t + 1. Zeros are padding, and follow the tokens. With `decoder_reads_code`,
    the first id of each source, its language code, is inserted after BOS in the decoder's input,
    and the encoder does not read it.

    Args:
        config: the model's configuration, a TransformerConfig or a dict of its fields.
        rematerialize: whether training recomputes each layer in the backward pass, which saves
            memory.
        dtype: a Keras dtype policy, "float32", "mixed_bfloat16" or "mixed_float16"; None for the
            global one. With any policy, variables are float32, and layer normalization, softmax and
            sinusoids are computed in float32. Logits are computed in the activations' type, and
            returned as float32.

    Attributes:
        config: a TransformerConfig.
        embedding: the TokenEmbedding of the source.
        target_embedding: the TokenEmbedding of the target; the same layer as `embedding` if the
            embeddings are tied and source and target share a vocabulary.
        logits_embedding: the TokenEmbedding whose matrix computes the logits; the same layer as
            `target_embedding` if the embeddings are tied.
        source_positions, target_positions: the PositionalEncodings.
        encoder, decoder: the two stacks.

    Raises:
        InputError: if a value in the configuration breaks its field's rule.

    Example:
        >>> model = Transformer.from_preset("tiny", vocab_size=8000)
        >>> source, target = np.array([[5, 6, 2]]), np.array([[1, 7, 8, 9]])
        >>> keras.ops.shape(model({"source": source, "target": target}))
        (1, 4, 8000)
    """

    def __init__(
        self,
        config: TransformerConfig | dict,
        rematerialize: bool = False,
        dtype=None,
        name: str = "transformer",
        **kwargs,
    ):
        if isinstance(config, dict):
            config = TransformerConfig(**config)
        self.config = config
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        self._make_embeddings(config, policy)
        self._make_positions(config, policy)
        self._make_stacks(config, policy, rematerialize)

        inputs = {
            "source": keras.Input((None,), dtype="int32", name="source"),
            "target": keras.Input((None,), dtype="int32", name="target"),
        }
        logits = self.logits_embedding(self.states(inputs), reverse=True)
        super().__init__(inputs, logits, name=name, **kwargs)
        self.rematerialize = rematerialize
        self.dtype_policy = policy

    def _make_embeddings(self, config: TransformerConfig, policy) -> None:
        """Makes one, two or three TokenEmbeddings: section 3.4 ties their weights."""
        shared = config.shares_all_embeddings
        self.embedding = TokenEmbedding(
            config.source_vocab_size or config.vocab_size,
            config.d_model,
            scale=config.scale_embeddings,
            use_bias=config.logits_bias and shared,
            dtype=policy,
            name="embedding",
        )
        self.target_embedding = self.embedding
        if not shared:
            self.target_embedding = TokenEmbedding(
                config.vocab_size,
                config.d_model,
                scale=config.scale_embeddings,
                use_bias=config.logits_bias and config.tie_embeddings,
                dtype=policy,
                name="target_embedding",
            )
        self.logits_embedding = self.target_embedding
        if not config.tie_embeddings:
            self.logits_embedding = TokenEmbedding(
                config.vocab_size,
                config.d_model,
                use_bias=config.logits_bias,
                dtype=policy,
                name="logits_embedding",
            )

    def _make_positions(self, config: TransformerConfig, policy) -> None:
        arguments = {
            "positions": config.positions,
            "max_positions": config.max_positions,
            "dropout": config.dropout,
            "dtype": policy,
        }
        self.source_positions = PositionalEncoding(**arguments, name="source_positions")
        self.target_positions = PositionalEncoding(**arguments, name="target_positions")

    def _make_stacks(self, config: TransformerConfig, policy, rematerialize: bool) -> None:
        layer_arguments = {
            "num_heads": config.num_heads,
            "key_dim": config.d_k,
            "d_ff": config.d_ff,
            "value_dim": config.d_v,
            "norm": config.norm,
            "activation": config.activation,
            "dropout": config.dropout,
            "attention_dropout": config.attention_dropout,
            "activation_dropout": config.activation_dropout,
            "attention_window": config.attention_window,
            "attention_bias": config.attention_bias,
            "norm_epsilon": config.norm_epsilon,
            "positions": config.positions,
            "dtype": policy,
        }
        stack_arguments = {
            "last_norm": config.norm == "pre",
            "norm_epsilon": config.norm_epsilon,
            "rematerialize": rematerialize,
            "dtype": policy,
        }
        encoder_layers = [
            EncoderLayer(**layer_arguments, name=f"layer_{number}")
            for number in range(config.num_layers)
        ]
        is_recurrent = config.decoder_self_attention == "ssru"
        decoder_layer = RecurrentDecoderLayer if is_recurrent else DecoderLayer
        decoder_layers = [
            decoder_layer(**layer_arguments, name=f"layer_{number}")
            for number in range(config.num_decoder_layers)
        ]
        self.encoder = Encoder(encoder_layers, **stack_arguments, name="encoder")
        self.decoder = Decoder(decoder_layers, **stack_arguments, name="decoder")

    def __setattr__(self, name, value):
        # Model.__init__ takes the layers' outputs, so the layers become attributes before the call.
        # PyTorch rejects modules as attributes until then.
        if keras.backend.backend() == "torch" and "_layers" not in vars(self):
            object.__setattr__(self, name, value)
        else:
            super().__setattr__(name, value)

    @classmethod
    def from_preset(cls, name: str, vocab_size: int, **settings) -> "Transformer":
        """Builds the untrained model of a preset, such as "base" or "tiny".

        Args:
            name: a key of keras_transformer.PRESETS.
            vocab_size: V.
            settings: fields of TransformerConfig that replace the preset's.

        Raises:
            InputError: for an unknown preset, an unknown setting, or a value that breaks its
                field's rule.
        """
        config, _ = presets.preset(name, vocab_size)
        return cls(replace_model_settings(config, settings))

    def encode(self, source, training=None):
        """Runs the encoder.

        Args:
            source: int32 [B, S], what the encoder reads; zeros are padding.
            training: whether to apply dropout.

        Returns:
            The memory [B, S, D] and its mask, bool [B, S], False at padding, and at EOS if the
            encoder does not read it.
        """
        mask = source_mask(source, self.config.encoder_reads_eos)
        return self._encode(source, mask=mask, training=training), mask

    def states(self, inputs, training=None):
        """Computes the decoder's output, from which the logits are computed.

        Training computes the loss from it for a few positions at a time (training/losses.py), so
        that the logits for all positions are never in memory together.

        Args:
            inputs: the model's inputs.
            training: whether to apply dropout.

        Returns:
            [B, T, D].
        """
        source, target = inputs["source"], inputs["target"]
        if self.config.decoder_reads_code:
            source, target = source[:, 1:], with_code(target, source)
        memory, memory_mask = self.encode(source, training)
        states = self._decode(target, memory, memory_mask=memory_mask, training=training)
        return states[:, 1:] if self.config.decoder_reads_code else states

    def packed_states(self, source, target, training=None):
        """Computes the same for packed rows (packing.py): [B, T, D].

        Args:
            source: int32 [B, S].
            target: int32 [B, T], not yet shifted right; see `packing.packed_inputs`.
            training: whether to apply dropout.
        """
        source_segments, segments, target_inputs = packed_inputs(
            source, target, self.config.decoder_reads_code, self.config.encoder_reads_eos
        )
        memory = self._encode(source, segments=source_segments, training=training)
        return self._decode(
            target_inputs,
            memory,
            segments=segments,
            memory_segments=source_segments,
            training=training,
        )

    def _encode(self, source, mask=None, segments=None, training=None):
        x = self.embedding(source)
        x = self.source_positions(x, segments=segments, training=training)
        return self.encoder(x, mask=mask, segments=segments, training=training)

    def _decode(self, target, memory, segments=None, training=None, **memory_masks):
        x = self.target_embedding(target)
        if self.config.starts_with_zeros:
            is_first = ops.equal(target, BOS_ID)[..., None]
            x = ops.where(is_first, ops.zeros_like(x), x)
        x = self.target_positions(x, segments=segments, training=training)
        return self.decoder(x, memory, segments=segments, training=training, **memory_masks)

    def enable_lora(self, rank: int) -> None:
        """Freezes the matrices of all layers, and adds trainable low-rank matrices.

        Biases and layer normalizations remain trainable. Saving merges the low-rank matrices.

        Raises:
            InputError: for a rank below 1.
        """
        enable_lora(self, rank)

    def get_config(self):
        return {
            "config": dataclasses.asdict(self.config),
            "rematerialize": self.rematerialize,
            "dtype": self.dtype_policy.name,
            "name": self.name,
            "trainable": self.trainable,
            "quantized": quantized_parts(self),
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        config = dict(config)
        modes = config.pop("quantized", {})
        model = cls(**config)
        quantize_parts(model, modes)
        return model


def shift_right(target):
    """Makes the decoder's input from a target: prepends BOS and drops the last column (Figure 1).

    Args:
        target: int32 [B, T]; each row ends in EOS and then padding.

    Returns:
        int32 [B, T].
    """
    return ops.pad(target[:, :-1], ((0, 0), (1, 0)), constant_values=BOS_ID)


def with_code(target, source):
    """Puts the first id of each source after BOS, for decoders that read it.

    Args:
        target: int32 [B, T]; each row begins with BOS.
        source: int32 [B, S].

    Returns:
        int32 [B, T + 1].
    """
    return ops.concatenate([target[:, :1], source[:, :1], target[:, 1:]], axis=1)


def teacher_forcing(source, target=None):
    """Makes the inputs and labels for `Transformer.fit`, with `dataset.map(teacher_forcing)`.

    Args:
        source: int32 [B, S]; each row ends in EOS and then padding. Or a dict with both, {"source",
            "target"}, as of a dataset of dicts.
        target: int32 [B, T]; like the source.

    Returns:
        The inputs {"source", "target"}, with the target shifted right, and the labels, which are
        the target itself.
    """
    if target is None:
        source, target = source["source"], source["target"]
    return {"source": source, "target": shift_right(target)}, target
