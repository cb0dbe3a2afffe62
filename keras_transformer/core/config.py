"""The two configurations of an experiment: the model's, and its training's.

Both are frozen, checked on construction, and saved as plain JSON in every model directory. Each
field cites the paper's symbol and section.
"""

import dataclasses
import hashlib
import json
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from keras_transformer.core.model.positions import POSITIONS, PositionKind
from keras_transformer.support.errors import did_you_mean, require
from keras_transformer.support.fields import (
    Amount,
    Length,
    Positive,
    Rule,
    Seed,
    Share,
    Size,
    between,
    check_fields,
    from_text,
    one_of,
    option,
)

# The first four rows of every vocabulary, in this order.
PAD_ID, BOS_ID, EOS_ID, UNK_ID = 0, 1, 2, 3

# Kinds of vocabularies, and their file suffixes.
SUFFIXES = {"bpe": ".model", "wordpiece": ".txt", "pieces": ".pieces"}

Task = Annotated[str, one_of("translation", "parsing")]
NORMS = ("post", "pre")
# The deepest models trained have 1,000 layers (Wang et al. 2022, arXiv 2203.00555).
Depth = Annotated[int, between(1, 1000)]
# 256 GiB in float32: more than any device holds, and each device holds the whole model.
LARGEST_MODEL = 2**36
# Gated feed-forward networks, and their gate activations.
GATED = {"swiglu": "swish"}
DROPOUTS = ("dropout", "attention_dropout", "activation_dropout")  # used in training only
# Fields that fingerprints contain only if they differ from the default.
LATER_FIELDS = (
    "decoder_reads_code",
    "encoder_reads_eos",
    "decoder_self_attention",
    "starts_with_zeros",
)
VocabularySize = Annotated[
    int,
    Rule("exceed the 4 special ids, and be below 2^31", lambda size: UNK_ID + 1 < size < 2**31),
]


def vocabulary_kind(file: str | os.PathLike) -> str:
    """Returns the kind of a vocabulary file from its suffix.

    Unknown suffixes mean "bpe", as SentencePiece prescribes none.
    """
    kinds = {suffix: kind for kind, suffix in SUFFIXES.items()}
    return kinds.get(Path(file).suffix, "bpe")


@dataclasses.dataclass(frozen=True)
class TransformerConfig:
    """Everything that determines the model's parameters and what it computes.

    The defaults are the paper's base model. `d_k` and `d_v` are independent of `d_model` (Table 3,
    rows B); `None` means d_model / num_heads, as in section 3.2.2.
    """

    vocab_size: VocabularySize = 37000  # shared by source and target, section 5.1
    num_layers: Depth = 6  # N, layers in each stack, section 3.1
    d_model: Size = 512  # width of embeddings and sublayer outputs, section 3.1
    d_ff: Size = 2048  # inner width of the feed-forward network, section 3.3
    num_heads: Size = 8  # h, section 3.2.2
    d_k: Size | None = None  # width of a head's queries and keys, section 3.2.2
    d_v: Size | None = None  # width of a head's values, section 3.2.2
    dropout: Share = 0.1  # P_drop on sublayer outputs and embedding sums, section 5.4
    attention_dropout: Share = 0.0  # on attention weights; 0 in the translation presets
    activation_dropout: Share = 0.0  # on the FFN's inner activations; 0 in all presets
    # Sinusoids, section 3.5, or learned positions, Table 3's row E; "rotary" came after the paper
    # (arXiv 2104.09864), and "marian" and "m2m100" are for the sinusoids of such models.
    positions: Annotated[str, one_of(*POSITIONS)] = "sinusoidal"
    max_positions: Length = 1024  # rows of the learned position table; sinusoids need none
    attention_window: Length | None = None  # r of restricted self-attention, section 4; None: all
    # Layer normalization after each sublayer, section 3.1, or before it.
    norm: Annotated[str, one_of(*NORMS)] = "post"
    # One matrix for target and softmax, and for the source if it shares the vocabulary (section
    # 3.4).
    tie_embeddings: bool = True
    source_vocab_size: VocabularySize | None = None  # None if the source shares the vocabulary
    # For models from other toolkits, unlike the paper's (keras_transformer/kit/exchange).
    decoder_layers: Depth | None = None  # layers in the decoder; None for N
    # In equation 2; "swiglu" gates the network (arXiv 2002.05202).
    activation: Annotated[str, one_of("relu", "swish", "gelu", *GATED)] = "relu"
    attention_bias: bool = False  # biases in the attention projections
    logits_bias: bool = False  # a bias for every logit
    scale_embeddings: bool = True  # by sqrt(d_model), section 3.4
    norm_epsilon: Positive = 1e-6  # added to the variance in layer normalization
    # Whether the decoder reads the first id of each source after BOS, and the encoder only the rest
    # (M2M-100): the code of the target language. Otherwise the encoder reads all of it.
    decoder_reads_code: bool = False
    # Whether the encoder reads the EOS of sources; in OpenNMT it does not.
    encoder_reads_eos: bool = True
    # In the decoder: self-attention, section 3.2.3, or in its place a recurrent unit, the SSRU of
    # Kim et al. 2019 (model/ssru.py), whose state is one vector.
    decoder_self_attention: Annotated[str, one_of("attention", "ssru")] = "attention"
    # Whether the decoder's first input is a vector of zeros, as in Marian, in place of BOS's row.
    starts_with_zeros: bool = False

    def __post_init__(self):
        check_fields(self)
        if self.d_k is None:
            object.__setattr__(self, "d_k", self._head_width("d_k"))
        if self.d_v is None:
            object.__setattr__(self, "d_v", self._head_width("d_v"))
        rule = f"must be even for {self.positions} positions"
        if self.position_kind.even_width:
            require(self.d_model % 2 == 0, "d_model", rule, self.d_model)
        if self.position_kind.even_key_width:
            require(self.d_k % 2 == 0, "d_k", rule, self.d_k)
        if self.decoder_reads_code:
            rule = "must not be given with decoder_reads_code, as both sides read the code"
            has_own = self.source_vocab_size is not None
            require(not has_own, "source_vocab_size", rule, self.source_vocab_size)
            rule = "must be true with decoder_reads_code"
            require(self.encoder_reads_eos, "encoder_reads_eos", rule, self.encoder_reads_eos)
        rule = f"must, with the other sizes, give a model of at most {LARGEST_MODEL:,} weights"
        require(self.parameters <= LARGEST_MODEL, "d_model", rule, f"{self.parameters:,}")

    def _head_width(self, name: str) -> int:
        """Returns d_model / num_heads, for the field `name`."""
        width, rest = divmod(self.d_model, self.num_heads)
        rule = "must be given, as num_heads does not divide d_model"
        require(rest == 0, name, rule, f"{self.num_heads} and {self.d_model}")
        return width

    @property
    def num_decoder_layers(self) -> int:
        """The number of decoder layers: `decoder_layers`, or N if that is None."""
        return self.decoder_layers or self.num_layers

    @property
    def shares_all_embeddings(self) -> bool:
        """Whether source, target and softmax share one matrix, as in section 3.4."""
        return self.tie_embeddings and self.source_vocab_size is None

    @property
    def position_kind(self) -> PositionKind:
        """What `positions` computes."""
        return POSITIONS[self.positions]

    @property
    def parameters(self) -> int:
        """The number of trainable parameters, counted without building the model."""
        d_model, heads = self.d_model, self.num_heads
        # W^Q, W^K, W^V and W^O, section 3.2.2.
        attention = d_model * heads * (2 * self.d_k + self.d_v) + heads * self.d_v * d_model
        if self.attention_bias:
            attention += heads * (2 * self.d_k + self.d_v) + d_model
        self_attention = attention  # of the decoder
        if self.decoder_self_attention == "ssru":
            self_attention = 2 * d_model * d_model + d_model
        feed_forward = 2 * d_model * self.d_ff + self.d_ff + d_model  # equation 2
        if self.activation in GATED:  # three matrices, no biases
            feed_forward = 3 * d_model * self.d_ff
        norm = 2 * d_model
        last_norm = norm if self.norm == "pre" else 0
        encoder = self.num_layers * (attention + feed_forward + 2 * norm) + last_norm
        decoder_layer = self_attention + attention + feed_forward + 3 * norm
        decoder = self.num_decoder_layers * decoder_layer + last_norm
        rows = self.vocab_size * (1 if self.tie_embeddings else 2)  # target, softmax
        if not self.shares_all_embeddings:
            rows += self.source_vocab_size or self.vocab_size
        embedding = rows * d_model + self.logits_bias * self.vocab_size
        tables = 2 * self.position_kind.table_rows(self.max_positions)  # source and target
        return embedding + tables * d_model + encoder + decoder

    @property
    def longest_text(self) -> int | None:
        """The largest number of ids that the positions allow; None if unlimited."""
        rows = self.position_kind.table_rows(self.max_positions)
        return rows - self.decoder_reads_code if rows else None

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the fields that determine what the model computes, as JSON with sorted names.

        Checkpoints and exports store it, so that weights are only used with the configuration that
        they were trained with. It leaves out dropout, which only affects training: training can
        continue with a different rate, and checkpoints with different rates can be averaged.
        """
        fields = dataclasses.asdict(self)
        for name in DROPOUTS:
            del fields[name]
        for name in LATER_FIELDS:
            if fields[name] == getattr(TransformerConfig, name):
                del fields[name]
        return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """Everything that determines how training updates the parameters (section 5)."""

    # Steps during which the rate rises, eq. 3; with a decay to zero, at most a fifth of the run.
    warmup_steps: Size = 4000
    learning_rate_scale: Positive = 1.0  # a factor on eq. 3; the paper's is 1
    learning_rate: Amount = 0.0  # the peak rate, instead of that factor; 0 for eq. 3's
    # The rate after the warm-up: eq. 3's, one that decays to zero at the end of the run, or the
    # peak rate, for a run without an end.
    decay: Annotated[str, one_of("inverse_square_root", "linear", "cosine", "constant")] = (
        "inverse_square_root"
    )
    # Adam, section 5.3; or Muon for the matrices of the layers (training/muon.py), and Adam for the
    # rest.
    optimizer: Annotated[str, one_of("adam", "muon")] = "adam"
    adam_beta_1: Share = 0.9  # beta_1, section 5.3
    adam_beta_2: Share = 0.98  # beta_2, section 5.3
    adam_epsilon: Positive = 1e-9  # epsilon, section 5.3
    label_smoothing: Share = 0.1  # epsilon_ls, section 5.4
    tokens_per_batch: Length = option(
        25000,
        "Padded tokens per side in one optimizer step, section 5.1. Presets may change the "
        "default.",
    )
    accumulate_steps: Size = option(
        1,
        "Number of parts to split each step's gradient computation into, to save memory.",
        is_advanced=True,
    )
    clip_norm: Amount = option(
        0.0, "Clip gradients to this global norm; 0 disables clipping.", is_advanced=True
    )
    rematerialize: bool = False  # recompute layers in the backward pass, to save memory
    precision: Annotated[str, one_of("float32", "bfloat16", "float16")] = option(
        "float32", "Type of activations; variables stay float32."
    )
    seed: Seed = option(1, "Seed for the weights, dropout and the order of the data.")
    freeze: str = option(
        "", "Parts of the model to freeze, such as encoder,embedding.", is_advanced=True
    )
    lora_rank: Size | None = option(
        None,
        "Train an adapter of this rank (LoRA, arXiv 2106.09685) for the model of init_from, whose "
        "weights stay unchanged.",
        is_advanced=True,
    )
    lora_alpha: Positive | None = option(
        None,
        "LoRA alpha: updates are scaled by alpha / rank. The rank by default.",
        is_advanced=True,
    )

    def __post_init__(self):
        check_fields(self)
        if self.lora_rank is None:
            require(
                self.lora_alpha is None,
                "lora_alpha",
                "must be given with lora_rank",
                self.lora_alpha,
            )
        elif self.lora_alpha is None:
            object.__setattr__(self, "lora_alpha", float(self.lora_rank))
        rule = f"must be at most tokens_per_batch={self.tokens_per_batch}"
        require(
            self.accumulate_steps <= self.tokens_per_batch,
            "accumulate_steps",
            rule,
            self.accumulate_steps,
        )

    @property
    def dtype_policy(self) -> str:
        """The Keras dtype policy of `precision`: variables stay float32."""
        return self.precision if self.precision == "float32" else f"mixed_{self.precision}"

    @property
    def decays_to_zero(self) -> bool:
        """Whether the rate ends at zero with the run, which shortens the warm-up of a short one."""
        return self.decay in ("linear", "cosine")


def parse_settings(settings: list[str]) -> dict[str, Any]:
    """Parses each "KEY=VALUE" by the type of field KEY in either configuration."""
    fields = _fields_to_set()
    values = {}
    for setting in settings:
        require("=" in setting, "config", "must be KEY=VALUE", repr(setting))
        key, _, text = setting.partition("=")
        _require_known(key, fields, "config", "must be KEY=VALUE with a known KEY")
        kind = get_type_hints(fields[key], include_extras=True)[key]
        values[key] = from_text(kind, text, f"config {key}")
    return values


def replace_settings(
    model: TransformerConfig, training: TrainingConfig, settings: Mapping[str, Any]
) -> tuple[TransformerConfig, TrainingConfig]:
    """Returns both configurations with fields replaced from `settings`.

    See `replace_model_settings` for d_k and d_v.

    Raises:
        InputError: for an unknown field, or a value that breaks a rule of its field.
    """
    fields = _fields_to_set()
    changes: dict[type, dict[str, Any]] = {TransformerConfig: {}, TrainingConfig: {}}
    for name, value in settings.items():
        _require_known(name, fields, "settings", "must be fields of the configurations")
        changes[fields[name]][name] = value
    return (
        replace_model_settings(model, changes[TransformerConfig]),
        dataclasses.replace(training, **changes[TrainingConfig]),
    )


def _fields_to_set() -> dict[str, type]:
    """Returns the fields that settings may replace, each with its configuration."""
    fields = {
        field.name: kind
        for kind in (TransformerConfig, TrainingConfig)
        for field in dataclasses.fields(kind)
    }
    del fields["vocab_size"], fields["source_vocab_size"]  # determined by the data
    return fields


def replace_model_settings(
    model: TransformerConfig, settings: Mapping[str, Any]
) -> TransformerConfig:
    """Returns a model's configuration with fields replaced from `settings`.

    If d_k and d_v are d_model / num_heads, they follow a change to d_model or num_heads, unless
    `settings` sets them.

    Raises:
        InputError: for an unknown field, or a value that breaks a rule of its field.
    """
    fields = [field.name for field in dataclasses.fields(TransformerConfig)]
    for name in settings:
        _require_known(name, fields, "settings", "must be fields of TransformerConfig")
    even_heads = model.d_k * model.num_heads == model.d_v * model.num_heads == model.d_model
    if even_heads and settings.keys() & {"d_model", "num_heads"}:
        settings = {"d_k": None, "d_v": None, **settings}
    return dataclasses.replace(model, **settings)


def _require_known(name: str, fields: Collection[str], argument: str, rule: str) -> None:
    """Raises an InputError for an unknown field: with the most similar one, or else with all."""
    hint = did_you_mean(name, fields)
    rule = rule if hint else f"{rule}: {', '.join(fields)}"
    require(name in fields, argument, rule, f"{name!r}{hint}")
