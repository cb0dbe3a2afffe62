"""The program and the sample on the page about formats, with a model that reverses word order."""

import re
from pathlib import Path

import keras_transformer
from keras_transformer.kit.documents.formats import FORMATS, read_document
from tests.kit.documents.doubles import with_words_reversed

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "formats.md"
TRANSLATED = """\
---
layout: page
---
# *STARTED* GETTING

> `keras-transformer --help`. RUN THEN ,
> IT [INSTALL](install.md "How to") FIRST

| OPTION  | MEANING                          |
|---------|----------------------------------|
| `alpha` | EMPTY \\| SHORT FOR **PENALTY** A |

![DOG A](https://example.com/dog.png)

```bash
make quickstart  # stays as it is
```
"""


class Translator:
    def translate_document(self, text, format):
        return with_words_reversed(read_document(text, format, "en"))


def test_the_program_translates_the_page(tmp_path, monkeypatch):
    guide = GUIDE.read_text(encoding="utf-8")
    programs = re.findall(r"^```python\n(.*?)^```", guide, re.M | re.DOTALL)
    (program,) = [each for each in programs if "markdown" in each]
    (page,) = re.findall(r"^````markdown\n(.*?)^````", guide, re.M | re.DOTALL)
    (tmp_path / "guide.md").write_text(page, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    # setattr would read the current attribute, and so import TensorFlow.
    monkeypatch.setitem(vars(keras_transformer), "load", lambda path: Translator())
    exec(program, {})
    assert (tmp_path / "guide.de.md").read_text(encoding="utf-8") == TRANSLATED


def test_the_formats_of_the_guide_are_there_with_their_endings():
    guide = GUIDE.read_text(encoding="utf-8")
    sections = re.findall(
        r'^`format="(\w+)"`, for files that end in ([^:]*?)(?:, needs|, a page)', guide, re.M
    )
    found = {name: tuple(re.findall(r"`(\.\w+)`", endings)) for name, endings in sections}
    assert found == {name: FORMATS[name].endings for name in ("markdown", "html")}
