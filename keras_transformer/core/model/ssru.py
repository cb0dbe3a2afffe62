"""The SSRU, a recurrent unit in place of the decoder's self-attention, and its parallel scan."""

import keras
from keras import ops

from keras_transformer.core.model.composite import CompositeLayer
from keras_transformer.core.model.packing import positions_in_segments


@keras.saving.register_keras_serializable(package="keras_transformer")
class SSRU(CompositeLayer):
    """The simpler simple recurrent unit of Kim et al. 2019 (ACL Anthology D19-5632), section 3.1.

    At position t, with c_{-1} = 0,

        f_t = sigmoid(x_t W_f + b_f)
        c_t = f_t c_{t-1} + (1 - f_t) x_t W
        output_t = max(0, c_t)

    W is the kernel of the Dense sublayer `input_dense`, and W_f and b_f belong to `forget_dense`.
    One vector, c_t, holds all that a decoder needs of earlier positions. It is computed in float32.

    Call arguments:
        inputs: [B, T, D].
        segments: int [B, T], the segments of packed rows (model/packing.py), each of which begins
            with c = 0; None for one sentence a row.

    Returns:
        [B, T, D].

    Example:
        >>> layer = SSRU()
        >>> keras.ops.shape(layer(keras.random.normal((2, 10, 512))))
        (2, 10, 512)
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.input_dense = None  # their width D is known when the layer is built
        self.forget_dense = None

    def build(self, inputs_shape):
        d_model, policy = inputs_shape[-1], self.dtype_policy
        self.input_dense = keras.layers.Dense(d_model, use_bias=False, dtype=policy, name="input")
        self.input_dense.build(inputs_shape)
        self.forget_dense = keras.layers.Dense(d_model, dtype=policy, name="forget")
        self.forget_dense.build(inputs_shape)

    def call(self, inputs, segments=None):
        entries = ops.cast(self.input_dense(inputs), "float32")
        gates = ops.sigmoid(ops.cast(self.forget_dense(inputs), "float32"))
        kept = gates
        if segments is not None:
            is_first = ops.equal(positions_in_segments(segments), 0)
            kept = ops.where(is_first[..., None], ops.zeros_like(gates), gates)
        states = linear_recurrence(kept, (1 - gates) * entries)
        return ops.cast(ops.relu(states), self.compute_dtype)


@ops.custom_gradient
def linear_recurrence(factors, values):
    """Computes c_t = a_t c_{t-1} + v_t at all positions in log2(T) rounds, with c_{-1} = 0.

    The gradient is the same recurrence, from the last position to the first:

        dL/dv_t = dL/dc_t + a_{t+1} dL/dv_{t+1}
        dL/da_t = dL/dv_t c_{t-1}

    With factors from 0 to 1, nothing overflows, and nothing is divided.

    Args:
        factors: float [B, T, D], a.
        values: float [B, T, D], v.

    Returns:
        float [B, T, D], c.
    """
    states = _scan(factors, values)

    def gradient(*args, upstream=None):
        upstream = args[0] if upstream is None else upstream
        later_factors = ops.roll(ops.flip(factors, axis=1), 1, axis=1)  # the first one is not used
        to_values = ops.flip(_scan(later_factors, ops.flip(upstream, axis=1)), axis=1)
        earlier_states = ops.pad(states[:, :-1], ((0, 0), (1, 0), (0, 0)))
        return to_values * earlier_states, to_values

    return states, gradient


def _scan(factors, values):
    """Computes the states of `linear_recurrence`.

    Each round combines every position with the one `distance` before it, so that it covers twice as
    many positions. The factor at position 0 is set to 0. The products of all positions that the
    round finds nothing before are 0, too, and whatever they are multiplied by changes nothing.
    """
    length = ops.shape(values)[1]
    positions = ops.arange(length)
    is_first = ops.equal(positions, 0)[:, None]  # [T, 1]
    factors = ops.where(is_first, ops.zeros_like(factors), factors)

    def is_left(distance, factors, states):
        return distance < length

    def combine(distance, factors, states):
        earlier = ops.maximum(positions - distance, 0)
        states = states + factors * ops.take(states, earlier, axis=1)
        factors = factors * ops.take(factors, earlier, axis=1)
        return 2 * distance, factors, states

    _, _, states = ops.while_loop(is_left, combine, (1, factors, values))
    return states
