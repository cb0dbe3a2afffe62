"""Runs the same training step in PyTorch, eager or compiled, for benchmarks/training.py.

The model is nn.Transformer (post-norm) with embeddings tied to the softmax, label smoothing and
fused Adam. Dropout on attention weights and on the inner activations of feed-forward networks,
which nn.Transformer has and the paper does not, is turned off. Attention keeps its biases, which
the paper's does not have. The timed step is zero_grad, forward pass, loss, backward pass, Adam, and
reading the loss. With "compile" as the second argument, torch.compile compiles the forward pass,
the loss and hence the backward pass, which needs a C++ compiler; sizes are static, the best case
for torch.compile.
"""

import math
import sys

import step_clock
import torch
from torch import nn


class Model(nn.Module):
    """nn.Transformer between tied embeddings."""

    def __init__(self, d_model, d_ff, layers, heads, vocab_size, tokens):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        nn.init.normal_(self.embedding.weight, std=d_model**-0.5)
        self.transformer = nn.Transformer(
            d_model, heads, layers, layers, d_ff, dropout=0.1, batch_first=True
        )
        for module in self.transformer.modules():
            if isinstance(module, nn.MultiheadAttention):
                module.dropout = 0.0
            if isinstance(module, (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)):
                module.dropout.p = 0.0  # on the inner activations
        self.dropout = nn.Dropout(0.1)
        self.scale = math.sqrt(d_model)
        self.register_buffer("positions", torch.randn(tokens, d_model))
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(tokens))

    def embed(self, ids):
        return self.dropout(self.embedding(ids) * self.scale + self.positions[: ids.shape[1]])

    def forward(self, source, target):
        states = self.transformer(
            self.embed(source), self.embed(target), tgt_mask=self.mask, tgt_is_causal=True
        )
        return states @ self.embedding.weight.T


def build(work):
    widths = (work.d_model, work.d_ff, work.num_layers, work.num_heads)
    model = Model(*widths, work.vocab_size, work.length)
    optimizer = torch.optim.Adam(model.parameters(), 1e-4, (0.9, 0.98), 1e-9, fused=True)
    source, target = torch.randint(4, work.vocab_size, (2, work.sentences, work.length))
    shifted = torch.cat([torch.ones_like(target[:, :1]), target[:, :-1]], dim=1)

    def forward():
        logits = model(source, shifted)
        return nn.functional.cross_entropy(
            logits.flatten(0, 1), target.flatten(), label_smoothing=0.1
        )

    if sys.argv[2:] == ["compile"]:
        forward = torch.compile(forward, dynamic=False)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = forward()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def multiply(size):
    matrix = torch.randn(size, size)
    return lambda: (matrix @ matrix).sum().item()


if __name__ == "__main__":
    step_clock.main(build, multiply)
