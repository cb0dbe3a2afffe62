"""The score of a target: its log probability divided by the length penalty (section 6.1).

    log P(Y) / lp(Y),    lp(Y) = ((5 + |Y|) / 6)^alpha     (Wu et al. 2016, equation 14)

|Y| is the number of tokens of the target Y, EOS included. Does not import TensorFlow.
"""

from typing import Any


def length_penalty(length: Any, alpha: Any) -> Any:
    """lp, for lengths that are numbers, NumPy arrays, or float tensors."""
    return ((5 + length) / 6) ** alpha


def penalized(log_prob: Any, length: Any, alpha: Any) -> Any:
    """Returns the scores of targets with these log probabilities and lengths."""
    return log_prob / length_penalty(length, alpha)
