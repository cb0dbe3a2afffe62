"""The tutorials: docs/notebooks/*.py, notebooks as plain text (jupytext's percent format).

    python docs/site/notebooks.py    # make notebooks
    python docs/site/notebooks.py train_your_own

The text is what is edited. It is written as a notebook without outputs, docs/notebooks/NAME.ipynb,
and run in full; the outputs are kept in runs/notebooks, for the site. If the code has not changed
since then, it does not run again, unless you remove that file. NOTEBOOK_STEPS in the environment
makes the trainings shorter.

Notebooks have no outputs: with them, git grew by up to 1.2 MB at a time, and showed those of
earlier code.
"""

import os
import re
import sys
import tempfile
from pathlib import Path

import jupytext
import nbformat
from latex2mathml.converter import convert
from nbclient import NotebookClient
from nbconvert import MarkdownExporter

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "notebooks"
OUTPUTS = ROOT / "runs" / "notebooks"
CELL_SECONDS = 900
EQUATION = re.compile(r"\$\$(.+?)\$\$|\$([^$\n]+?)\$", re.DOTALL)


def names() -> list[str]:
    """The names of all tutorials."""
    return sorted(path.stem for path in FOLDER.glob("*.py"))


def read(name: str) -> nbformat.NotebookNode:
    """The notebook of a tutorial's text, without outputs."""
    notebook = jupytext.read(FOLDER / f"{name}.py", fmt="py:percent")
    notebook.metadata["kernelspec"] = {
        "name": "python3",
        "display_name": "Python 3",
        "language": "python",
    }
    notebook.metadata["language_info"] = {"name": "python"}
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"  # the same text gives the same file
    return notebook


def run(notebook: nbformat.NotebookNode, folder: str | os.PathLike) -> nbformat.NotebookNode:
    """Runs all cells from top to bottom in a new kernel, which works in `folder`.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell has failed.
    """
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    os.environ |= {"PYTHONPATH": path, "TF_CPP_MIN_LOG_LEVEL": "3"}
    client = NotebookClient(
        notebook, timeout=CELL_SECONDS, resources={"metadata": {"path": str(folder)}}
    )
    client.execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # when it ran
    return notebook


def _code(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def without_logs(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook without what libraries wrote to stderr."""
    for cell in _code(notebook):
        cell.outputs = [shown for shown in cell.outputs if shown.get("name") != "stderr"]
    return notebook


def with_outputs(name: str) -> nbformat.NotebookNode | None:
    """The tutorial with the outputs of its last run; None without a run of its present code."""
    notebook, kept = read(name), OUTPUTS / f"{name}.ipynb"
    if not kept.exists():
        return None
    cells = _code(nbformat.read(kept, as_version=4))
    if [cell.source for cell in cells] != [cell.source for cell in _code(notebook)]:
        return None
    for cell, with_output in zip(_code(notebook), cells, strict=True):
        cell.update({**with_output, "id": cell["id"]})
    return notebook


def page(name: str) -> dict[str, str | bytes]:
    """The files of a tutorial's page: its Markdown, with MathML, its pictures, and the notebook."""
    notebook = with_outputs(name)
    hint = ""
    if notebook is None:
        notebook, hint = read(name), " `make notebooks` adds the outputs, which this build lacks."
    whole = nbformat.writes(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = with_formulas(cell.source)
    resources = {"unique_key": name, "output_files_dir": f"{name}_files"}
    text, found = MarkdownExporter().from_notebook_node(notebook, resources)
    title, _, text = text.partition("\n")
    text = (
        f"{title}\n\n[This page as a notebook]({name}.ipynb), for Jupyter and Colab.{hint}\n{text}"
    )
    return {f"{name}.md": text, f"{name}.ipynb": whole, **found["outputs"]}


def with_formulas(text: str) -> str:
    """The text with its equations as MathML."""
    return EQUATION.sub(_mathml, text)


def _mathml(equation: re.Match) -> str:
    if equation[1]:
        return convert(equation[1].strip(), display="block")
    # Markdown takes <math> at the beginning of a line for a block of HTML, which ends a paragraph.
    return f"<span>{convert(equation[2].strip(), display='inline')}</span>"


def main(chosen: list[str]) -> None:
    """Writes the chosen tutorials, or all, as notebooks, and runs those whose code has changed."""
    OUTPUTS.mkdir(parents=True, exist_ok=True)
    for name in chosen or names():
        nbformat.write(read(name), FOLDER / f"{name}.ipynb")
    for name in chosen or names():
        notebook = with_outputs(name)
        if notebook is None:
            with tempfile.TemporaryDirectory() as folder:
                notebook = without_logs(run(read(name), folder))
        nbformat.write(notebook, OUTPUTS / f"{name}.ipynb")
        print(OUTPUTS / f"{name}.ipynb")


if __name__ == "__main__":
    main(sys.argv[1:])
