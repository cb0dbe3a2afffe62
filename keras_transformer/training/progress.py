"""The bar of a training run."""

from tqdm import tqdm

from keras_transformer.training.limits import Limits


class Progress(tqdm):
    """A bar over minutes where they are the limit, else over steps.

    Args:
        limits: what ends the run.
        step, seconds: where it stands.
        shown: False for none.
    """

    def __init__(self, limits: Limits, step: int, seconds: float, shown: bool = True):
        self._of_minutes = limits.train_minutes is not None
        total, done, form = limits.train_steps, step, None
        if self._of_minutes:
            total = limits.train_minutes * 60
            done = min(seconds, total)
            form = "{percentage:3.0f}%|{bar}| {elapsed} of {remaining} more {postfix}"
        words = {"desc": "training", "unit": "step", "disable": not shown}
        super().__init__(total=total, initial=done, bar_format=form, **words)

    def show(self, step: int, seconds: float, metrics: dict[str, float]) -> None:
        """Moves the bar, with the loss and the rate beside it."""
        loss, rate = metrics["loss"], metrics["tokens_per_second"]
        text = f"step {step} loss {loss:.3f} {rate:,.0f} tokens/s"
        self.set_postfix_str(text, refresh=False)
        done = seconds if self._of_minutes else step
        self.update(max(0, min(done, self.total) - self.n))
