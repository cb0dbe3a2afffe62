"""Every model in the paper by name, and some newer ones: a literal table.

`base` and `big` are those of Table 3; A1 to E are its other rows. `parsing_*` are those of section
6.3, and `tiny` is for small data and two CPU cores. Not in the paper: `student` and `firefox`, for
fast translation; `modern`; and `own_text`, for small data sets. A preset sets the model and the
training settings that go with it; `vocab_size` comes from the data.
"""

from keras_transformer.core.config import TrainingConfig, TransformerConfig
from keras_transformer.support.errors import did_you_mean, require

PRESETS: dict[str, dict[str, int | float | str]] = {
    "tiny": {"num_layers": 4, "d_model": 128, "d_ff": 256, "num_heads": 4},
    "base": {},
    "big": {"d_model": 1024, "d_ff": 4096, "num_heads": 16, "dropout": 0.3},
    "big_en_fr": {"d_model": 1024, "d_ff": 4096, "num_heads": 16, "dropout": 0.1},
    # Not in the paper, for fast translation: six layers encode a sentence once, and only two layers
    # decode each token. It has the sizes of student.tiny11 in github.com/browsermt/students,
    # whose decoder uses SSRUs instead of self-attention (Kim et al. 2019,
    # aclanthology.org/D19-5632).
    "student": {"num_layers": 6, "decoder_layers": 2, "d_model": 256, "d_ff": 1536, "num_heads": 8},
    # The same with SSRUs, as Firefox's models are; kit/exchange/firefox.py can write it.
    "firefox": {
        **{"num_layers": 6, "decoder_layers": 2, "d_model": 256, "d_ff": 1536, "num_heads": 8},
        "decoder_self_attention": "ssru",
        "starts_with_zeros": True,
        "positions": "marian",
        "attention_bias": True,
        "logits_bias": True,
    },
    # Table 3 (A): heads, at the same amount of computation.
    "A1": {"num_heads": 1, "d_k": 512, "d_v": 512},
    "A2": {"num_heads": 4, "d_k": 128, "d_v": 128},
    "A3": {"num_heads": 16, "d_k": 32, "d_v": 32},
    "A4": {"num_heads": 32, "d_k": 16, "d_v": 16},
    # Table 3 (B): width of the keys.
    "B1": {"d_k": 16},
    "B2": {"d_k": 32},
    # Table 3 (C): size of the model.
    "C1": {"num_layers": 2},
    "C2": {"num_layers": 4},
    "C3": {"num_layers": 8},
    "C4": {"d_model": 256, "d_k": 32, "d_v": 32},
    "C5": {"d_model": 1024, "d_k": 128, "d_v": 128},
    "C6": {"d_ff": 1024},
    "C7": {"d_ff": 4096},
    # Table 3 (D): regularization.
    "D1": {"dropout": 0.0},
    "D2": {"dropout": 0.2},
    "D3": {"label_smoothing": 0.0},
    "D4": {"label_smoothing": 0.2},
    # Table 3 (E): learned positions instead of sinusoids.
    "E": {"positions": "learned"},
    # Section 6.3: 4 layers, d_model 1024, "all other parameters" as in base; 16k vocabulary (WSJ
    # only) and 32k (semi-supervised) are the data's. Dropout and learning rate were chosen on the
    # development set, and the paper does not say how: here they are as in the authors' code.
    "parsing_wsj": {
        "num_layers": 4,
        "d_model": 1024,
        "dropout": 0.2,
        "attention_dropout": 0.2,
        "warmup_steps": 16000,
    },
    "parsing_semi_supervised": {
        "num_layers": 4,
        "d_model": 1024,
        "dropout": 0.1,
        "attention_dropout": 0.1,
    },
    # Not in the paper: base with newer layers (docs/diary.md). Gated networks have as
    # many parameters with two thirds of d_ff, here rounded to a multiple of 16.
    "modern": {
        "d_ff": 1360,
        "norm": "pre",
        "positions": "rotary",
        "activation": "swiglu",
    },
    # Not in the paper: tiny with rotary positions and the best recipe measured on 29,000 pairs;
    # suggested for 10,000 to 300,000 (docs/guides/own-text.md). Its last checkpoint is as good as
    # an average.
    "own_text": {
        "num_layers": 4,
        "d_model": 128,
        "d_ff": 256,
        "num_heads": 4,
        "norm": "pre",
        "positions": "rotary",
        "dropout": 0.3,
        "warmup_steps": 1000,
        "learning_rate": 4e-3,
        "decay": "linear",
        "tokens_per_batch": 3000,
    },
}
"""Name -> settings that differ from those of `base`, the defaults of the two configurations."""


def preset(name: str, vocab_size: int) -> tuple[TransformerConfig, TrainingConfig]:
    """Returns the two configurations of preset `name` for a vocabulary of `vocab_size` ids.

    Raises:
        InputError: if no preset has that name.
    """
    rule = f"must be one of {', '.join(PRESETS)}"
    require(name in PRESETS, "preset", rule, repr(name) + did_you_mean(name, PRESETS))
    model_fields = TransformerConfig.__dataclass_fields__
    settings = PRESETS[name]
    model = {key: value for key, value in settings.items() if key in model_fields}
    training = {key: value for key, value in settings.items() if key not in model_fields}
    return TransformerConfig(vocab_size=vocab_size, **model), TrainingConfig(**training)
