"""The same training step in PyTorch, eager: run by benchmarks/training.py.

nn.Transformer (post-norm), embeddings tied to the softmax, label smoothing, fused Adam. Attention
dropout, which nn.Transformer has and the paper has not, is switched off.
"""

import argparse
import json
import math
import statistics
import time

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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("d_model", "d_ff", "layers", "heads", "vocab_size", "sentences", "tokens"):
        parser.add_argument(name, type=int)
    parser.add_argument("--steps", type=int, default=8)
    known = parser.parse_args()
    model = Model(
        known.d_model, known.d_ff, known.layers, known.heads, known.vocab_size, known.tokens
    )
    optimizer = torch.optim.Adam(model.parameters(), 1e-4, (0.9, 0.98), 1e-9, fused=True)
    source, target = torch.randint(4, known.vocab_size, (2, known.sentences, known.tokens))
    shifted = torch.cat([torch.ones_like(target[:, :1]), target[:, :-1]], dim=1)

    def step():
        optimizer.zero_grad(set_to_none=True)
        logits = model(source, shifted)
        loss = nn.functional.cross_entropy(
            logits.flatten(0, 1), target.flatten(), label_smoothing=0.1
        )
        loss.backward()
        optimizer.step()
        return loss.item()

    for _ in range(3):
        step()
    seconds = []
    for _ in range(known.steps):
        begun = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - begun)
    tokens = known.sentences * known.tokens
    print(json.dumps({"tokens_per_second": round(tokens / statistics.median(seconds), 1)}))


if __name__ == "__main__":
    main()
