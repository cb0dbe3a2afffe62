"""The guide's "Build and train a model": its two scripts as they stand, with smaller numbers."""

import re

import keras
import pytest

from tests.processes import ROOT, run_python

SMALLER = {
    "20_000": "1_000",
    "num_layers=2, d_model=64, d_ff=128": "num_layers=1, d_model=32, d_ff=32",
    "warmup_steps=200": "warmup_steps=50",
    "steps_per_epoch=300, epochs=8": "steps_per_epoch=25, epochs=2",
}


def scripts():
    guide = (ROOT / "docs" / "guides" / "library.md").read_text(encoding="utf-8")
    section = re.search(r"^## Build and train a model\n(.*)", guide, re.M | re.DOTALL)[1]
    return re.findall(r"```python\n(.*?)```", section, re.DOTALL)[:2]


@pytest.mark.slow  # a training, and a new interpreter
def test_a_model_is_trained_saved_loaded_elsewhere_and_translates(tmp_path, monkeypatch, capfd):
    train, use = scripts()
    assert len((train + use).splitlines()) <= 25
    for text, smaller in SMALLER.items():
        assert text in train
        train = train.replace(text, smaller)
    monkeypatch.chdir(tmp_path)
    keras.utils.set_random_seed(1)
    found = {}
    exec(train, found)
    losses = found["model"].history.history["loss"]
    assert losses[1] < losses[0]

    elsewhere = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{use}"
    code, output, errors = run_python("-c", elsewhere, folder=tmp_path, cwd=tmp_path)
    assert code == 0, errors
    import keras_transformer as kt

    sentence = re.search(r'translate\(\["(.*?)"\]', use)[1]
    expected = kt.load("runs/library/model.keras").translate([sentence])[0][0].text
    assert expected and output.splitlines()[-1] == expected
