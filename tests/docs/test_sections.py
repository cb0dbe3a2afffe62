"""What docs/site/sections.py adds to docstrings."""

import pytest

griffe = pytest.importorskip("griffe", reason="no griffe; install: pip install '.[docs]'")

from docs.site.sections import Sections  # noqa: E402

CODE = '''
class Example:
    """A class with each kind of description."""

    one: int = 1  # at the end of the line
    # In the lines
    # above it.
    two: str | None = None

    three: float = 0.5
    four: int = option(
        4, "The help of an option, "
        "in two parts."
    )


class Layer:
    """A layer.

    Call arguments:
        inputs: float [B, D].
    """
'''


@pytest.fixture
def module(tmp_path):
    (tmp_path / "example.py").write_text(CODE, encoding="utf-8")
    extensions = griffe.load_extensions(Sections())
    return griffe.load("example", search_paths=[tmp_path], extensions=extensions)


def test_fields_are_described_by_what_stands_beside_them(module):
    assert module["Example"].docstring.value == (
        "A class with each kind of description.\n\nAttributes:\n"
        "    one: at the end of the line\n"
        "    two: In the lines above it.\n"
        "    four: The help of an option, in two parts.\n"
    )


def test_call_arguments_are_a_list(module):
    lines = module["Layer"].docstring.value.splitlines()
    assert lines[2:] == ["Call arguments:", "    - `inputs`: float [B, D]."]
