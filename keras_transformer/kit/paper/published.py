"""The paper's four tables as printed in arXiv 1706.03762, version 7: literal data, no opinions.

Figures that differ in version 1 are given as well. None is a blank cell.
"""

from typing import NamedTuple


class LayerType(NamedTuple):
    """A row of Table 1. n: length, d: width, k: kernel size, r: size of the neighbourhood."""

    layer: str
    paper_complexity: str  # per layer
    paper_sequential_operations: str
    paper_maximum_path: str


TABLE_1 = (
    LayerType("Self-Attention", "O(n^2 d)", "O(1)", "O(1)"),
    LayerType("Recurrent", "O(n d^2)", "O(n)", "O(n)"),
    LayerType("Convolutional", "O(k n d^2)", "O(1)", "O(log_k(n))"),
    LayerType("Self-Attention (restricted)", "O(r n d)", "O(1)", "O(n/r)"),
)


class System(NamedTuple):
    """A row of Table 2: BLEU on newstest2014 and training cost in FLOPs."""

    name: str
    bleu_de: float | None = None
    bleu_fr: float | None = None
    flops_de: float | None = None
    flops_fr: float | None = None
    bleu_de_v1: float | None = None  # where version 1 differs
    bleu_fr_v1: float | None = None


# In print, the single cost of each Transformer spans both columns.
TABLE_2 = (
    System("ByteNet", 23.75, bleu_de_v1=23.57),
    System("Deep-Att + PosUnk", None, 39.2, None, 1.0e20),
    System("GNMT + RL", 24.6, 39.92, 2.3e19, 1.4e20),
    System("ConvS2S", 25.16, 40.46, 9.6e18, 1.5e20),
    System("MoE", 26.03, 40.56, 2.0e19, 1.2e20, bleu_de_v1=26.3),
    System("Deep-Att + PosUnk Ensemble", None, 40.4, None, 8.0e20),
    System("GNMT + RL Ensemble", 26.30, 41.16, 1.8e20, 1.1e21),
    System("ConvS2S Ensemble", 26.36, 41.29, 7.7e19, 1.2e21),
    System("Transformer (base model)", 27.3, 38.1, 3.3e18, 3.3e18),
    System("Transformer (big)", 28.4, 41.8, 2.3e19, 2.3e19, bleu_fr_v1=41.0),
)


class Variation(NamedTuple):
    """A row of Table 3, on newstest2013. A blank setting is that of the base model."""

    paper_perplexity: float | None = None  # per wordpiece
    paper_bleu: float | None = None
    paper_parameters_millions: int | None = None
    num_layers: int | None = None  # N
    d_model: int | None = None
    d_ff: int | None = None
    num_heads: int | None = None  # h
    d_k: int | None = None
    d_v: int | None = None
    dropout: float | None = None  # P_drop
    label_smoothing: float | None = None  # epsilon_ls
    thousand_steps: int | None = None


# The columns of settings in Table 3 -> their names here.
SETTINGS = {
    "N": "num_layers",
    "d_model": "d_model",
    "d_ff": "d_ff",
    "h": "num_heads",
    "d_k": "d_k",
    "d_v": "d_v",
    "P_drop": "dropout",
    "eps_ls": "label_smoothing",
}
# The keys are names of presets. Row E says "positional embedding instead of sinusoids".
TABLE_3 = {
    "base": Variation(4.92, 25.8, 65, 6, 512, 2048, 8, 64, 64, 0.1, 0.1, 100),
    "A1": Variation(5.29, 24.9, num_heads=1, d_k=512, d_v=512),
    "A2": Variation(5.00, 25.5, num_heads=4, d_k=128, d_v=128),
    "A3": Variation(4.91, 25.8, num_heads=16, d_k=32, d_v=32),
    "A4": Variation(5.01, 25.4, num_heads=32, d_k=16, d_v=16),
    "B1": Variation(5.16, 25.1, 58, d_k=16),
    "B2": Variation(5.01, 25.4, 60, d_k=32),
    "C1": Variation(6.11, 23.7, 36, num_layers=2),
    "C2": Variation(5.19, 25.3, 50, num_layers=4),
    "C3": Variation(4.88, 25.5, 80, num_layers=8),
    "C4": Variation(5.75, 24.5, 28, d_model=256, d_k=32, d_v=32),
    "C5": Variation(4.66, 26.0, 168, d_model=1024, d_k=128, d_v=128),
    "C6": Variation(5.12, 25.4, 53, d_ff=1024),
    "C7": Variation(4.75, 26.2, 90, d_ff=4096),
    "D1": Variation(5.77, 24.6, dropout=0.0),
    "D2": Variation(4.95, 25.5, dropout=0.2),
    "D3": Variation(4.67, 25.3, label_smoothing=0.0),
    "D4": Variation(5.47, 25.7, label_smoothing=0.2),
    "E": Variation(4.92, 25.7),
    "big": Variation(4.33, 26.4, 213, 6, 1024, 4096, 16, dropout=0.3, thousand_steps=300),
}


class Parser(NamedTuple):
    """A row of Table 4: F1 on section 23 of the Wall Street Journal."""

    name: str
    training: str
    f1: float


TABLE_4 = (
    Parser("Vinyals & Kaiser et al. (2014)", "WSJ only, discriminative", 88.3),
    Parser("Petrov et al. (2006)", "WSJ only, discriminative", 90.4),
    Parser("Zhu et al. (2013)", "WSJ only, discriminative", 90.4),
    Parser("Dyer et al. (2016)", "WSJ only, discriminative", 91.7),
    Parser("Transformer (4 layers)", "WSJ only, discriminative", 91.3),
    Parser("Zhu et al. (2013)", "semi-supervised", 91.3),
    Parser("Huang & Harper (2009)", "semi-supervised", 91.3),
    Parser("McClosky et al. (2006)", "semi-supervised", 92.1),
    Parser("Vinyals & Kaiser et al. (2014)", "semi-supervised", 92.1),
    Parser("Transformer (4 layers)", "semi-supervised", 92.7),
    Parser("Luong et al. (2015)", "multi-task", 93.0),
    Parser("Dyer et al. (2016)", "generative", 93.3),
)
