"""Whether a model is hardly trained, from what is known of its weights. Does not import TensorFlow.

Two facts decide together, both measured in training:

- The validation loss, as a share of that of uniform guessing, which is the logarithm of the
  vocabulary's size: perplexities of different vocabularies then compare. With 8,000 subwords, the
  limit is a perplexity of 36. Models above it repeat the most frequent words (Multi30k, own_text:
  BLEU 2 at 251, 5 at 73, 13 at 36).
- The passes over the training data. After many, a high perplexity tells of too little or too
  difficult text, or of a model that learned it by heart: longer training would not help. A large
  corpus needs less than one pass, so a small number alone says nothing.

An imported model has neither, and is never called hardly trained. If one of them is unknown, as
without a validation split, a training that ended inside its warm-up counts.
"""

import math

from keras_transformer.core.config import TrainingConfig
from keras_transformer.core.training.checkpoint_files import CheckpointInfo

FEW_EPOCHS = 10
HIGH_LOSS = 0.4  # of the loss of uniform guessing


def hardly_trained(
    info: CheckpointInfo, vocab_size: int, training: TrainingConfig | None
) -> str | None:
    """Returns one line that says why a model is hardly trained; None if it is not known to be.

    Args:
        info: which weights the model has.
        vocab_size: the size of the target vocabulary.
        training: how it was trained; None if unknown.
    """
    loss = info.validation_loss
    if loss is not None and loss <= HIGH_LOSS * math.log(vocab_size):
        return None
    if loss is None or info.epochs is None:
        reason = _ended_in_warm_up(info.step, training)
    else:
        reason = _high_perplexity(loss, info.epochs)
    if reason is None:
        return None
    advice = "to continue, run train again with more train_minutes or train_steps"
    return f"this model is hardly trained ({reason}): {advice}"


def _high_perplexity(loss: float, epochs: float) -> str | None:
    if epochs >= FEW_EPOCHS:
        return None
    return f"validation perplexity {math.exp(loss):.0f} after {epochs:.1f} passes over its data"


def _ended_in_warm_up(step: int | None, training: TrainingConfig | None) -> str | None:
    """The reason if training ended inside its warm-up, which a decay to zero shortens."""
    if training is None or training.decays_to_zero or training.lora_rank is not None:
        return None
    if step is None or not 0 < step < training.warmup_steps:
        return None
    return f"it ended at step {step}, inside its warm-up of {training.warmup_steps} steps"
