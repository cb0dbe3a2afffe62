"""The tutorials, of which the one for newcomers runs; `make notebooks` runs all of them in full."""

import itertools
import re
import shutil

import pytest

for package in ("ipykernel", "jupytext", "latex2mathml", "nbclient", "nbconvert"):
    pytest.importorskip(package, reason=f"no {package}; install: pip install '.[docs]'")

from docs.site import notebooks  # noqa: E402

NAMES = notebooks.names()
RUN = "train_your_own"  # the tutorial for newcomers
CELL_LINES = 25  # what a reader sees at once
# In place of what makes full runs long. Tracing a training step takes longer than a few eager ones.
SHORTER = {
    r"kt\.sample_pairs\(split\)": "kt.sample_pairs(split)[:25_000]",
    r'("validation", tokens_per_batch=4000\))': r"\1.take(1)",
    r"side\[:\d+\]": "side[:10]",  # an untrained model translates to the largest length
    r'_layers": 2': '_layers": 1',
    "jit_compile=False": "run_eagerly=True",
    r"(--export_dir=.*)\]": r'\1, "--signatures=serving_default,search_ids,align_ids"]',
}


@pytest.mark.parametrize("name", NAMES)
def test_cells_are_short_and_described(name):
    cells = notebooks.read(name).cells
    assert cells[0].cell_type == "markdown" and cells[0].source.startswith("# ")
    for before, cell in itertools.pairwise(cells):
        assert len(cell.source.splitlines()) <= CELL_LINES, cell.source
        assert "markdown" in (before.cell_type, cell.cell_type), f"no words before: {cell.source}"


@pytest.mark.parametrize("name", NAMES)
def test_no_line_begins_with_a_formula_of_its_text(name):
    for cell in notebooks.read(name).cells:
        if cell.cell_type == "markdown":
            text = notebooks.with_formulas(cell.source)
            assert not re.search(r'^<math [^>]*display="inline"', text, re.M), cell.source


def shortened(notebook):
    """The notebook with a smaller model and less text."""
    for pattern, replacement in SHORTER.items():
        for cell in notebook.cells:
            cell.source = re.sub(pattern, replacement, cell.source)
    return notebook


def test_every_shorter_form_has_its_place():
    sources = [cell.source for cell in notebooks.read(RUN).cells]
    for pattern in SHORTER:
        assert any(re.search(pattern, source) for source in sources), pattern


@pytest.mark.slow  # a notebook
def test_a_tutorial_runs(tmp_path, monkeypatch):
    """In a clean kernel; what its cells assert is true."""
    monkeypatch.setenv("NOTEBOOK_STEPS", "10")
    notebook = notebooks.run(shortened(notebooks.read(RUN)), tmp_path)
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    errors = [output for output in shown if output.get("name") == "stderr"]
    assert not any("Traceback" in output.text for output in errors)
    pictures = sum("image/png" in output.get("data", {}) for output in shown)
    assert pictures >= sum(cell.source.count("plt.show()") for cell in notebook.cells) > 0


@pytest.mark.parametrize("name", NAMES)
def test_the_notebook_is_its_text_without_outputs(name):
    """`make notebooks` was run after the last change."""
    written = (notebooks.FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")
    assert written == notebooks.nbformat.writes(notebooks.read(name)) + "\n"
    assert '"outputs": [\n' not in written


def test_equations_become_mathml_in_text_only():
    text = notebooks.EQUATION.sub(notebooks._mathml, "with $d_k$:\n\n$$\\sqrt{x}$$")
    assert text.count("<math") == 2 and 'display="block"' in text and "$" not in text


def test_new_words_take_over_the_outputs(tmp_path, monkeypatch):
    folder = shutil.copytree(notebooks.FOLDER, tmp_path / "notebooks")
    monkeypatch.setattr(notebooks, "FOLDER", folder)
    monkeypatch.setattr(notebooks, "OUTPUTS", tmp_path)
    runs = []

    def run(notebook, folder):
        runs.append(notebook)
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.outputs = [notebooks.nbformat.v4.new_output("stream", text="shown here\n")]
        return notebook

    monkeypatch.setattr(notebooks, "run", run)
    shown = notebooks.page("decode")["decode.md"]
    assert "`make notebooks` adds the outputs" in shown and "shown here" not in shown
    notebooks.main(["decode"])
    text = (folder / "decode.py").read_text(encoding="utf-8")
    text = text.replace("# # Decode", "# Words before.\n\n# %% [markdown]\n# # Decode")
    (folder / "decode.py").write_text(text, encoding="utf-8")
    notebooks.main(["decode"])
    assert len(runs) == 1, "new words need no new run"
    notebook = notebooks.with_outputs("decode")
    notebooks.nbformat.validate(notebook)
    assert notebook.cells[0].source == "Words before."
    assert [cell.id for cell in notebook.cells] == [f"cell-{n}" for n in range(len(notebook.cells))]
    assert sum(bool(cell.get("outputs")) for cell in notebook.cells) > 10
    assert "shown here" in notebooks.page("decode")["decode.md"]
    assert "shown here" not in (folder / "decode.ipynb").read_text(encoding="utf-8")
    (folder / "decode.py").write_text(text.replace("import time", "import times"), encoding="utf-8")
    assert notebooks.with_outputs("decode") is None
