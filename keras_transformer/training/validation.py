"""What a run measures and shows of its model between steps; it changes nothing that is saved."""

import keras

from keras_transformer.training.curves import Curves
from keras_transformer.training.data import TrainingData
from keras_transformer.training.summaries import CrossEntropy, perplexity_of


class Validation:
    """Measures the validation loss, translates a sample, and draws pictures.

    Args:
        model: what is trained.
        data: has what to measure and try it on.
        curves: where texts, pictures and histograms go.
        histograms: whether to write those of all parameters.
    """

    def __init__(self, model: keras.Model, data: TrainingData, curves: Curves, histograms: bool):
        self.model, self.data, self.curves = model, data, curves
        self.histograms = histograms
        self.cross_entropy = CrossEntropy(model)

    def run(self, step: int, scalars: dict[str, float]) -> None:
        """Adds what it measures to `scalars`."""
        data = self.data
        if data.validation is not None:
            loss, _ = self.cross_entropy(data.validation)
            scalars |= {"loss": loss, "perplexity": perplexity_of(loss)}
        if data.translate_sample is not None:
            scores, text = data.translate_sample(self.model)
            scalars |= scores
            self.curves.text("validation/translations", step, text)
        if data.draw_sample is not None:
            for name, picture in data.draw_sample(self.model).items():
                self.curves.picture(f"attention/{name}", step, picture)
        if self.histograms:
            self.curves.histograms(step, self.model)
