"""The messages of the library, read aloud: one line, about an argument or a file, one form."""

import ast
import re
from pathlib import Path

import pytest
import tensorflow as tf

from keras_transformer.support.errors import InputError, reason, require

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("keras_transformer", "pipelines", "bin")
VALUE = "X"  # in place of what an f-string puts in


def spoken(node):
    """The text of a string in code, with VALUE for what is put in; None for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = (VALUE if isinstance(p, ast.FormattedValue) else p.value for p in node.values)
        return "".join(parts)
    if isinstance(node, ast.IfExp):
        return spoken(node.body)
    return None


def errors_in(path):
    """Every error of a module: (line, argument, rule), as far as they are written as strings.

    A rule that is a name is what the function has assigned to that name last before.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree))
    for call in nodes:
        name = getattr(call.func, "id", None) if isinstance(call, ast.Call) else None
        if name not in ("require", "InputError"):
            continue
        parts = call.args[name == "require" :]
        if len(parts) < 2 or isinstance(parts[0], ast.Starred):
            continue
        argument, rule = parts[:2]
        if isinstance(rule, ast.Name):
            assigned = [
                node
                for node in nodes
                if isinstance(node, ast.Assign)
                and getattr(node.targets[0], "id", None) == rule.id
                and node.lineno < call.lineno
            ]
            rule = max(assigned, key=lambda node: node.lineno).value if assigned else rule
        yield call.lineno, argument, spoken(rule)


MODULES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
ERRORS = [(path.relative_to(ROOT), *error) for path in MODULES for error in errors_in(path)]


def test_every_message_reads_as_one_sentence_about_its_argument():
    assert len(ERRORS) > 350
    for path, line, argument, rule in ERRORS:
        place = f"{path}:{line}: {rule}"
        if rule is not None:
            assert re.match(r"must\b", rule) or rule.startswith(VALUE), place
            assert "\n" not in rule and "  " not in rule and not rule.endswith("."), place
            assert "Received" not in rule, place
            assert path.parts[0] == "bin" or not re.search(" --[a-z]", rule), place
        name = spoken(argument)
        if name is not None:
            assert re.fullmatch(r"(--)?[\w.\[\] ]+", name.replace(VALUE, "x")), f"{place}: {name}"


@pytest.mark.parametrize(
    ("parts", "line"),
    [
        (("alpha", "must be positive", -1), "alpha must be positive. Received: -1"),
        (("alpha", "must be given"), "alpha must be given"),
        (
            ("sizes[2]", "must be given", "none", "a.json"),
            "a.json: sizes[2] must be given. Received: none",
        ),
        ((None, "must be UTF-8", "0xff", "a.en:7"), "a.en:7 must be UTF-8. Received: 0xff"),
        (("texts", "must be short", "a\nb"), "texts must be short. Received: a b"),
    ],
)
def test_the_message_is_made_of_the_parts(parts, line):
    error = InputError(*parts)
    assert str(error) == line
    assert (error.argument, error.rule) == parts[:2]
    assert " --x must" in f" {error.message('--x')}"
    assert str(type(error)(*error.args)) == line  # as when it is pickled


def test_the_caller_adds_the_place_that_it_knows():
    error = InputError("alpha", "must be positive", -1, "line 7").replaced(place="a.json:7")
    assert str(error) == "a.json:7: alpha must be positive. Received: -1"


def test_a_condition_that_does_not_hold_is_an_error_with_the_value_even_if_that_is_none():
    require(True, "alpha", "must be positive", -1)
    with pytest.raises(InputError) as caught:
        require(False, "alpha", "must be a number", None)
    assert caught.value.argument == "alpha" and str(caught.value).endswith("Received: None")


@pytest.mark.parametrize(
    ("fail", "said"),
    [
        (
            lambda: tf.strings.to_number(["a"]),
            "StringToNumberOp could not correctly convert string",
        ),
        (lambda: tf.reshape(tf.zeros(3), [2]), "Input to reshape is a tensor with 3 values, but"),
    ],
)
def test_names_of_operations_of_tensorflow_are_no_reasons(fail, said):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\{\{function_node") as error:
        fail()
    text = reason(error.value)
    assert text.startswith(said) and "{{" not in text and "[Op:" not in text


def test_a_reason_is_the_first_line_or_the_type():
    assert reason(ValueError("one\ntwo")) == "one"
    assert reason(ValueError()) == "ValueError"
    assert reason(KeyError("{{a}} must be {b}")) == "'{{a}} must be {b}'"
