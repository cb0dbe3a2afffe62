"""README, BUILD_NOTES, CONTRIBUTING, guides, reference, diary: they name what exists."""

import ast
import doctest
import importlib
import posixpath
import re
import shlex

import pytest
from absl import flags

import keras_transformer
from bin.__main__ import PROGRAM_FILES
from docs.site import pages
from keras_transformer.core import presets
from tests.program_fixtures import BIN, documented_fields, loaded

ROOT = BIN.parent
DOCUMENTS = [*pages.documents()]
GUIDES = [name for name in DOCUMENTS if name.startswith("docs/guides/")]
REFERENCE = [name for name in DOCUMENTS if name.startswith("docs/reference/")]
# Of saved_model_cli, TensorFlow Serving, TensorBoard, the benchmarks and Python.
OTHER_FLAGS = {
    *("dir", "tensorflow_intra_op_parallelism", "opennmt_python", "logdir"),
    *("flagfile", "directory"),
}


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def anchors(text):
    """The anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def program_calls(text):
    """(program, arguments) of every command of a program in the document's shell blocks."""
    blocks = "\n".join(re.findall(r"```bash\n(.*?)```", text, re.DOTALL)).replace("\\\n", " ")
    for line in blocks.splitlines():
        words = shlex.split(line, comments=True)
        starts = [number for number, word in enumerate(words) if re.match(r"bin/\w+\.py$", word)]
        for start in starts:
            yield words[start].removeprefix("bin/").removesuffix(".py"), words[start + 1 :]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_somewhere(name):
    for link in re.findall(r"\]\(([^)\s]+)\)", text_of(name)):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        path = (ROOT / name).parent / path if path else ROOT / name
        assert path.exists(), link
        if anchor:
            assert anchor in anchors(path.read_text(encoding="utf-8")), link


@pytest.mark.parametrize("name", DOCUMENTS)
def test_named_files_exist(name):
    """A path is that of the repository or of the library: `bin/train.py`, `training/step.py`."""
    named = set(re.findall(r"(?<![\w./])[a-z_]+/[\w/]+\.(?:py|json|html|png|svg)\b", text_of(name)))
    made = {path for path in named if path.startswith("runs/")}
    for path in named - made:
        assert (ROOT / path).exists() or (ROOT / "keras_transformer" / path).exists(), path


def test_named_tests_exist():
    """A test is named by its file and function: `tests/core/training/test_step.py::test_...`."""
    named = set()
    for name in DOCUMENTS:
        named.update(re.findall(r"(tests/[\w/]+\.py)::(\w+)", text_of(name)))
    assert named
    missing = {(path, test) for path, test in named if f"def {test}(" not in text_of(path)}
    assert not missing


@pytest.fixture(scope="module")
def flags_of():
    """Program -> its flags."""
    found = {}
    for name in PROGRAM_FILES:
        with loaded(name):
            found[name] = {*flags.FLAGS}
    return found


@pytest.mark.parametrize("name", DOCUMENTS)
def test_flags_of_the_commands_exist(name, flags_of):
    for program, words in program_calls(text_of(name)):
        given = {word[2:].partition("=")[0] for word in words if word.startswith("--")}
        assert given <= flags_of[program] | {"help"}, (program, words)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_flags_in_the_text_exist(name, flags_of):
    prose = re.sub(r"```.*?```", "", text_of(name), flags=re.DOTALL)
    known = set().union(*flags_of.values()) | OTHER_FLAGS
    assert set(re.findall(r"`[^`\n]*?--([a-z]\w+)", prose)) <= known


def test_make_targets_exist():
    targets = set(re.findall(r"^([\w-]+):", text_of("Makefile"), re.M)) | {"test-hard"}
    for name in DOCUMENTS:
        assert set(re.findall(r"(?:^|`)make ([\w-]+)", text_of(name), re.M)) <= targets


def test_the_public_names_are_listed():
    text = text_of("docs/guides/library.md")
    table = re.search(r"^\| model \|.*?\n\n", text, re.M | re.DOTALL)[0]
    assert sorted(re.findall(r"`(\w+)`[,| ]", table)) == sorted(keras_transformer.__all__)


def test_results_of_every_program_are_described():
    """Tests that run a program compare its result with these fields."""
    described = documented_fields()
    assert set(described) == set(PROGRAM_FILES)
    folders = ("bin", "keras_transformer", "pipelines")
    files = [file for folder in folders for file in (ROOT / folder).rglob("*.py")]
    words = set(re.findall(r"\w+", "".join(file.read_text(encoding="utf-8") for file in files)))
    fields = re.findall(r"^\| (`.*?) \|", text_of("docs/reference/results.md"), re.M)
    for field in re.findall(r"`(\w+)`", "".join(fields)):
        assert field in words or field.removeprefix("validation_") in words, field


@pytest.mark.tensorflow
def test_every_link_leads_to_a_page():
    found = {page: text_of(document) for document, page in pages.documents().items()}
    found |= pages.api_pages()
    for document, page in pages.documents().items():
        for link in re.findall(r"\]\(([^)\s]+)\)", pages.with_links(document)):
            target, _, anchor = link.partition("#")
            target = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
            made = ("tutorials/", "programs.md", "tables.md")  # not from a document
            if (
                target.endswith(".md")
                and not link.startswith("https:")
                and not target.startswith(made)
            ):
                is_module = f"\n::: {anchor}\n" in found[target]
                assert not anchor or is_module or anchor in anchors(found[target]), (page, link)


def test_the_guide_to_presets_counts_right():
    text = text_of("docs/guides/presets.md")
    numbers = re.search(r"^\| parameters \(counted\) (\|.*)\|$", text, re.M)[1]
    sizes = re.search(r"^\| vocabulary (\|.*)\|$", text, re.M)[1]
    rows = [[int(cell.replace(",", "")) for cell in row.split("|")[1:]] for row in (sizes, numbers)]
    for name, vocab_size, parameters in zip(("tiny", "base", "big"), *rows, strict=True):
        assert keras_transformer.preset(name, vocab_size)[0].parameters == parameters


def test_the_citation_names_this_version():
    assert f"version = {{{keras_transformer.__version__}}}," in text_of("README.md")


def test_every_guide_is_listed():
    for document in [*GUIDES, *REFERENCE]:
        assert f"]({document})" in text_of("README.md")
        assert is_reached(document), document


def is_reached(document):
    """Whether a document's page is in the navigation of the site, or in the guide to documents."""
    page = pages.documents()[document]
    entrance = f"]({posixpath.basename(page)}" in text_of("docs/guides/documents.md")
    return f"- {page}\n" in text_of("mkdocs.yml") or entrance


def test_the_navigation_is_short():
    navigation = text_of("mkdocs.yml").partition("\nnav:\n")[2]
    assert len(re.findall(r"^ +- \S+\.md$", navigation, re.M)) <= 35


def test_the_search_prefers_guides():
    assert pages.with_boost("guides/documents.md", "# D").endswith("boost: 8\n---\n\n# D")
    assert "boost: 0.2\n" in pages.with_boost("guides/code.md", "# Map")  # it names all modules
    assert pages.with_boost("index.md", "# Start") == "# Start"
    assert pages.BOOSTS["api/"] < pages.BOOSTS["diary.md"] < 1 < pages.BOOSTS["guides/"]


def test_the_diary_is_listed():
    assert "](docs/diary.md)" in text_of("BUILD_NOTES.md")
    assert is_reached("docs/diary.md")


def test_a_link_without_a_page_is_refused():
    with pytest.raises(SystemExit, match=r"setup\.cfg"):
        pages.with_links("README.md", "[text](setup.cfg)")


@pytest.mark.parametrize("folder", ["keras_transformer", "pipelines"])
def test_public_modules_classes_and_functions_have_docstrings(folder):
    for path in sorted((ROOT / folder).rglob("*.py")):
        module = ast.parse(path.read_text(encoding="utf-8"))
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        public = [n for n in module.body if isinstance(n, kinds) and not n.name.startswith("_")]
        for node in [module, *public]:
            name = getattr(node, "name", "the module")
            assert ast.get_docstring(node), f"{path}: {name}"


@pytest.mark.parametrize("name", DOCUMENTS)
def test_samples_of_python_use_names_that_exist(name):
    for sample in re.findall(r"```python\n(.*?)```", text_of(name), re.DOTALL):
        for node in ast.walk(ast.parse(sample)):
            if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "kt":
                assert node.attr in keras_transformer.__all__


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("part", "name", "shape"),
    [
        ("logits = model", "logits", (1, 4, 8000)),
        ("return_attention_scores", "weights", (2, 8, 10, 10)),
    ],
)
def test_the_samples_of_the_model_and_of_layers_run(tmp_path, monkeypatch, part, name, shape):
    samples = re.findall(r"```python\n(.*?)```", text_of("docs/guides/library.md"), re.DOTALL)
    (sample,) = [sample for sample in samples if part in sample]
    small = {"num_layers": 1, "d_model": 16, "d_ff": 16, "num_heads": 2}
    monkeypatch.setitem(presets.PRESETS, "tiny", small)
    monkeypatch.chdir(tmp_path)
    found = {}
    exec(sample, found)
    assert found[name].shape == shape


@pytest.mark.tensorflow
def test_examples_of_docstrings_are_true():
    """Those of public names are run by tests/test_keras_objects.py."""
    module = importlib.import_module("keras_transformer.core.search.constraints")
    runner = doctest.DocTestRunner()
    for example in doctest.DocTestFinder().find(module):
        runner.run(example)
    assert runner.tries and not runner.failures


def functions_of_traces():
    """The functions that the map of the code follows, each with its file."""
    text = (ROOT / "docs" / "guides" / "code.md").read_text(encoding="utf-8")
    text = text[text.index("## One training step") :]
    file = None
    for item in re.findall(r"^\d+\. (.*?)(?=^\d+\. |^[A-Z]|\Z)", text, re.M | re.S):
        names = re.findall(r"`([\w./]+)`", item)
        if names[0].endswith(".py"):
            file = names.pop(0)
        yield file, names[0]


@pytest.mark.parametrize(("file", "function"), list(functions_of_traces()))
def test_the_traces_name_functions_that_exist(file, function):
    path = next(path for path in (ROOT / file, ROOT / "keras_transformer" / file) if path.is_file())
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            methods = [part.name for part in node.body if isinstance(part, ast.FunctionDef)]
            names.update(f"{node.name}.{method}" for method in methods)
    assert function in names
