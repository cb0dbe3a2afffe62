"""Writes the pages of docs/reference, from the code that they describe.

Like the other documents they can be read in the repository, and are pages of the site. A test
compares them with what this makes (tests/docs/test_reference.py).

    python docs/site/reference.py
"""

import dataclasses
import inspect
import json
import os
import re
import sys
import typing
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
FOLDER = ROOT / "docs" / "reference"

from docs.site import results, signatures  # noqa: E402
from docs.site.fields import (  # noqa: E402
    argument_texts,
    comments,
    default_of,
    linked,
    table,
    type_and_rule,
)
from keras_transformer.support.fields import options_of  # noqa: E402

NOTICE = "<!-- Written by docs/site/reference.py: change what it describes, not this page. -->"
# What the presets are counted for: the guide's small vocabulary, and section 5.1's.
VOCABULARY_SIZES = (8000, 37000)
PRESET_OF = {
    "tiny": "a small model, for two cores",
    "student": "six layers in the encoder, two in the decoder: for fast translation",
    "modern": "`base` with rotary positions, gated networks and normalization before sublayers",
    "own_text": "the size of `tiny`, rotary positions, and the guide's recipe for small data sets",
    "base": "Table 3, base",
    "big": "Table 3, big; English-German",
    "big_en_fr": "section 5.4; English-French",
    "E": "Table 3 (E), learned positions",
    "parsing_wsj": "section 6.3, WSJ only",
    "parsing_semi_supervised": "section 6.3, semi-supervised",
}


def main() -> None:
    """Writes all pages."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    text = with_notice(signatures.page(signatures.traced()))
    (FOLDER / "signatures.md").write_text(text, encoding="utf-8")


def pages() -> dict[str, str]:
    """All pages but that of the signatures, which are traced first."""
    texts = {
        "configuration.md": configuration_page(),
        "preparation.md": preparation_page(),
        "translator.md": translator_page(),
        "http.md": http_page(),
        "results.md": results.page(),
    }
    return {name: with_notice(text) for name, text in texts.items()}


def with_notice(page: str) -> str:
    """A page that says below its title who writes it: MkDocs looks for that in the first line."""
    title, _, text = page.partition("\n")
    return f"{title}\n\n{NOTICE}\n{text}"


# Configurations and presets.


def configuration_page() -> str:
    from keras_transformer.core.config import TrainingConfig, TransformerConfig

    text = "# Configuration and presets\n\n"
    text += "`train --config NAME=VALUE`, `kt.train(..., NAME=VALUE)` and the two dataclasses take "
    text += "these fields. Sections, equations and tables are those of the paper. A value of "
    text += "another type, or one that breaks its rule, ends with one line that names the field; "
    text += "so do values that do not go together. What else `train` takes are flags, which "
    text += "`--help` lists.\n"
    for kind in (TransformerConfig, TrainingConfig):
        summary = " ".join(inspect.getdoc(kind).split())
        text += f"\n## {kind.__name__}\n\n{summary}\n\n{fields_table(kind)}"
    text += (
        "\n`vocab_size` and `source_vocab_size` are the data's: `--config` does not take them.\n"
    )
    return text + presets_section()


def fields_table(kind: type) -> str:
    """The fields of a dataclass, each with what its comment says."""
    said = comments(kind)
    hints = typing.get_type_hints(kind, include_extras=True)
    rows = []
    for field in dataclasses.fields(kind):
        name, rule = type_and_rule(hints[field.name])
        rows.append([f"`{field.name}`", default_of(field), name, rule, linked(said[field.name])])
    return table(["Field", "Default", "Type or values", "Rule", "What it is"], rows)


def presets_section() -> str:
    from keras_transformer.core.presets import PRESETS, preset

    names = ["num_layers", "d_model", "d_ff", "num_heads", "d_k", "d_v", "dropout"]
    counted = [f"Parameters, V {size:,}" for size in VOCABULARY_SIZES]
    rows = []
    for name, settings in PRESETS.items():
        models = [preset(name, size)[0] for size in VOCABULARY_SIZES]
        others = [f"`{key}={settings[key]}`" for key in settings if key not in names]
        rows.append(
            [
                f"`{name}`",
                origin_of(name),
                *(str(getattr(models[0], key)) for key in names),
                " ".join(others),
                *(f"{model.parameters:,}" for model in models),
            ]
        )
    head = ["Preset", "From", "N", "d_model", "d_ff", "h", "d_k", "d_v", "dropout", "Further"]
    return (
        "\n## Presets\n\n`train --preset=NAME`, `kt.preset(NAME, vocab_size)`. All else is as in "
        "`base`. Parameters are counted with one shared vocabulary of V ids, special ones "
        "included.\n\n" + table([*head, *counted], rows)
    )


def origin_of(preset_name: str) -> str:
    """Where a preset comes from."""
    is_row = re.fullmatch(r"[A-E]\d?", preset_name)
    known = f"Table 3 ({preset_name[0]})" if is_row else "not of the paper"
    return PRESET_OF.get(preset_name, known)


# What keras_transformer.prepare takes.


def preparation_page() -> str:
    from pipelines.prepare.preparation_config import PreparationConfig
    from pipelines.sources.source_options import SOURCES

    text = "# What `kt.prepare` takes\n\n"
    text += "`kt.prepare(data_dir, dataset=..., NAME=VALUE)` and `prepare_data --data_dir=... "
    text += "--dataset=... --NAME=VALUE` take the options of their data set, and those of the "
    text += "preparation. On the command line, the items of a list are separated by commas, as in "
    text += "`de,cs`, and so are those of a dict, as in `en:train.en,de:train.de`.\n"
    for dataset, options in SOURCES.items():
        summary = " ".join(inspect.getdoc(options).split())
        text += f"\n## `dataset={dataset}`\n\n{summary}\n\n{help_table(options)}"
    text += "\n## The preparation\n\n"
    text += "How the pairs of any data set are selected, encoded and stored. With "
    text += "`dataset=treebank`, pairs cannot be selected or changed.\n\n"
    return text + help_table(PreparationConfig)


def help_table(kind: type) -> str:
    """The fields of a dataclass that are flags, each with its help text."""
    rows = [
        [f"`{name}`", default_of(field), linked(field.metadata["help"])]
        for name, field in options_of(kind).items()
    ]
    return table(["Option", "Default", "What it is"], rows)


# What keras_transformer.load returns.


def translator_page() -> str:
    from keras_transformer.core.search.config import DecodingConfig, SamplingConfig
    from keras_transformer.kit.documents.text_translator import TextTranslator
    from keras_transformer.kit.parsing.parser import Parse, Parser
    from keras_transformer.loading import load
    from keras_transformer.use.store.export import FREE_IN_SAVED_MODEL
    from keras_transformer.use.translate import answers
    from keras_transformer.use.translate.translator import Translator

    text = "# What `kt.load` takes and returns\n\n"
    text += f"```python\nkt.load{signature_of(load)}\n```\n\n"
    arguments = argument_texts(load.__doc__)
    for name in inspect.signature(load).parameters:
        text += f"- `{name}`: {arguments[name]}\n"
    text += "\n`kt.load_parser` takes the same arguments and refuses a translation model. "
    text += "Type checkers know that it returns a `Parser`.\n"
    text += "\n## Options\n\nFor a SavedModel, only "
    text += " and ".join(f"`{name}`" for name in FREE_IN_SAVED_MODEL)
    text += " can be given; the others were fixed when it was made.\n\n"
    text += options_table(DecodingConfig)
    text += "\n`sampling` takes a `SamplingConfig` of `keras_transformer.core.search.config`:\n\n"
    text += options_table(SamplingConfig)
    text += "\n## Methods and attributes\n\n"
    text += "Of a `Translator` "
    text += "([reference](../../keras_transformer/use/translate/translator.py)):\n\n"
    text += members(Translator)
    text += "\nA model that translates has a `TextTranslator`, a `Translator` "
    text += "([reference](../../keras_transformer/kit/documents/text_translator.py)) with:\n\n"
    text += members(TextTranslator)
    text += "\nA parsing model has a `Parser` "
    text += "([reference](../../keras_transformer/kit/parsing/parser.py)), which has:\n\n"
    text += members(Parser)
    text += "\n## Answers\n"
    of_translation = {name: said for name, said in comments(answers.Translation).items() if said}
    kinds = [answers.Translation, answers.AlignedPair]
    for kind in [*kinds, answers.TargetScore, answers.PairAttention, Parse]:
        text += f"\n### {kind.__name__}\n\n{' '.join(inspect.getdoc(kind).split())}\n\n"
        text += answer_table(kind, {"text": "the translation", **of_translation})
    return text


def signature_of(function: Any) -> str:
    """The arguments of a function without their types, which the reference of the module has."""
    parameters = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == "self":
            continue
        shown = str(parameter.replace(annotation=inspect.Parameter.empty))
        parameters.append(shown)
    return f"({', '.join(parameters)})"


def options_table(kind: type) -> str:
    """The fields of a configuration of decoding, with the defaults of each task."""
    from keras_transformer.core.search.config import TASKS, DecodingConfig

    said = argument_texts(kind.__doc__)
    hints = typing.get_type_hints(kind, include_extras=True)
    rows = []
    for field in dataclasses.fields(kind):
        name, rule = type_and_rule(hints[field.name])
        default = default_of(field)
        if kind is DecodingConfig:
            default = default_of_tasks(field.name, TASKS)
        what = field.metadata.get("help") or said[field.name]
        rows.append([f"`{field.name}`", default, name, rule, what])
    return table(["Option", "Default", "Type or values", "Rule", "What it is"], rows)


def default_of_tasks(name: str, tasks: dict[str, Any]) -> str:
    translation, parsing = (getattr(tasks[task], name) for task in ("translation", "parsing"))
    if name == "max_source_length":  # see store/decoding.py
        return f"that of the model's data; parsing: at least `{parsing}`"
    return f"`{translation!r}`" + (f"; parsing: `{parsing!r}`" if parsing != translation else "")


def members(kind: type) -> str:
    """A list of what a class defines, each with the first paragraph of its docstring."""
    listed = ""
    for name, member in vars(kind).items():
        # What overrides a method and has no docstring does what that says.
        if name.startswith("_") or not member.__doc__:
            continue
        shown = f"{name}{signature_of(member)}" if inspect.isfunction(member) else name
        summary, _, _ = inspect.getdoc(member).partition("\n\n")
        listed += f"- `{shown}`: {' '.join(summary.split())}\n"
    attributes = re.search(r"^Attributes:\n(.*?)(?:\n\n|\Z)", inspect.getdoc(kind), re.M | re.S)
    described = attributes[1] if attributes else ""
    for name, text in re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", described, re.M):
        listed += f"- `{name}`: {' '.join(text.split())}\n"
    return listed


def answer_table(kind: type, of_translation: dict[str, str]) -> str:
    """The fields of an answer, each with its comment, or that of the same field elsewhere."""
    said = comments(kind)
    hints = typing.get_type_hints(kind)
    rows = []
    is_dataclass = dataclasses.is_dataclass(kind)
    for name in kind.__dataclass_fields__ if is_dataclass else kind._fields:
        meaning = said.get(name) or of_translation.get(name, "")
        rows.append([f"`{name}`", type_and_rule(hints[name])[0], meaning])
    rows += [
        [f"`{name}`", "property", inspect.getdoc(member)]
        for name, member in vars(kind).items()
        if isinstance(member, property)
    ]
    return table(["Field", "Type", "What it is"], rows)


# The server.


def http_page() -> str:
    from keras_transformer.kit.serving.limits import OWN_MACHINE, Limits
    from keras_transformer.kit.serving.openapi import openapi_document
    from keras_transformer.kit.serving.responses import ErrorAnswer
    from keras_transformer.kit.serving.routes import REFUSALS, ROUTES

    document = openapi_document(ROUTES, REFUSALS, ErrorAnswer, Limits().rule)
    schemas = document["components"]["schemas"]
    text = "# Requests and answers of `serve`\n\nA server describes itself at `/openapi.json`, in "
    text += "OpenAPI's format; this page shows the same. Bodies are JSON in UTF-8. By default, "
    text += f"{Limits().rule}, or {OWN_MACHINE['max_characters']} if only the server's own machine "
    text += "can reach it; flags of `serve` change that. What is "
    text += "LibreTranslate's is for clients of that server; so is a request to `/translate` with "
    text += "the field `q`. [The guide](../guides/serving.md#json-over-http) has examples.\n"
    files = []
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            (content_type,) = operation["responses"]["200"]["content"]
            if content_type.startswith("text/"):
                files.append(f"`{path}`")
            else:
                text += f"\n## {method.upper()} {path}\n\n{operation['summary']}\n\n"
                text += operation_text(operation)
    text += f"\n## The page\n\nGET {', '.join(files)}: the page, and what it loads.\n"
    text += "\n## Refusals\n\nA request that is refused, or at which the model fails, is answered "
    text += "with one of these statuses and an [ErrorAnswer](#erroranswer). An unknown path is "
    text += "answered with 404, and a wrong method with 405.\n\n"
    rows = [[str(status), meaning] for status, meaning in REFUSALS.items()]
    text += table(["Status", "What it means"], rows)
    text += "\n## Bodies\n"
    for name in schemas:
        text += f"\n### {name}\n\n{schema_text(name, schemas[name])}"
    return text


def operation_text(operation: dict[str, Any]) -> str:
    """A request's bodies, its answer, and the statuses that it may be refused with."""
    text = ""
    for parameter in operation.get("parameters", ()):
        text += f"- In the path: `{parameter['name']}`. {parameter['description']}\n"
    bodies = operation.get("requestBody", {}).get("content", {})
    shown: dict[str, list[str]] = {}
    for content_type, body in bodies.items():
        shown.setdefault(type_text(body["schema"]), []).append(f"`{content_type}`")
    for schema, content_types in shown.items():
        text += f"- Body: {schema}, as {' or '.join(content_types)}\n"
    ((content_type, answer),) = operation["responses"]["200"]["content"].items()
    is_json = content_type == "application/json"
    shown_answer = type_text(answer["schema"]) if is_json else f"`{content_type}`"
    text += f"- Answer: {shown_answer}\n"
    statuses = [status for status in operation["responses"] if status != "200"]
    text += f"- Refusals: {', '.join(statuses)}\n"
    for body in bodies.values():
        if "example" in body:
            example = json.dumps(body["example"], ensure_ascii=False)
            text += f"\n```json\n{example}\n```\n"
    return text


def schema_text(name: str, schema: dict[str, Any]) -> str:
    """Describes a body and its fields."""
    rows = []
    for field_name, field in schema["properties"].items():
        needed = "yes" if field_name in schema["required"] else "no"
        rows.append([f"`{field_name}`", type_text(field), needed, field["description"]])
    described = " ".join(inspect.cleandoc(schema["description"]).split())
    closed = " No other fields are taken." if "additionalProperties" in schema else ""
    needed = "Required" if name.endswith("Request") else "Always there"
    return f"{described}{closed}\n\n" + table(["Field", "Type", needed, "What it is"], rows)


def type_text(schema: dict[str, Any]) -> str:
    """A schema in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(type_text(kind) for kind in schema["anyOf"])
    if schema["type"] == "array":
        return f"list of ({type_text(schema['items'])})"
    if "contentMediaType" in schema:
        return "file"
    return schema["type"]


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    main()
