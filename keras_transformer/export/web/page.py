"""A folder with a page that translates in the browser: any web server can serve it.

The page is the one of serving/, and translator.js stands in place of its server: worker.js holds
the model, two ONNX graphs that ONNX Runtime's WebAssembly computes. `model.json` says what the page
shows of the model, and which files belong to it.
"""

import base64
import dataclasses
import hashlib
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from keras_transformer.errors import require
from keras_transformer.export.directory import write_export
from keras_transformer.export.onnx import graph_files, load_onnx
from keras_transformer.export.web.page_vocabulary import page_vocabulary
from keras_transformer.files.paths import to_path
from keras_transformer.model.transformer import Transformer
from keras_transformer.model_card import ModelCard
from keras_transformer.vocabulary.pair import VocabularyPair

PACKAGE = Path(__file__).parents[2]
# What the page has beside its own translator.js: files of the served page, by the names here.
SERVED = {
    "index.html": "serving/page.html",
    "page.css": "serving/page.css",
    "page.js": "serving/page.js",
    "figure.css": "attention/figure.css",
    "figure.js": "attention/figure.js",
}
SERVICE_WORKER = "service_worker.js"
MOST_CHARACTERS = 100_000  # of a text: some ten minutes of a browser's work
# A browser runs no modules of files. This script is none.
SERVED_ONLY = """<script>
if (location.protocol === "file:") document.write("<p class=error>This page must come from a web " +
  "server. One for this machine: python -m http.server, in the folder of the page.</p>");
</script>
"""
# ONNX Runtime's files, and where the page fetches them unless they are in its folder: the build of
# one thread needs no headers that static servers do not send.
RUNTIME_ADDRESS = "https://cdn.jsdelivr.net/npm/onnxruntime-web@1.30.0/dist/"


class RuntimeFile(NamedTuple):
    """A file of the runtime: its name there, and the size and the hash that it has there."""

    name: str
    size: int
    integrity: str


RUNTIME = {
    "runtime.mjs": RuntimeFile(
        "ort.wasm.bundle.min.mjs",
        73054,
        "sha384-PLWz+nHEVHpjwBsO0YVdvQj6n5814Iv8E3b8FG0Rp/uIAtjFMCKOpP66iPzedrIG",
    ),
    "runtime.wasm": RuntimeFile(
        "ort-wasm-simd-threaded.wasm",
        14239897,
        "sha384-vjBJ1z7qrhkTyYsNqKeF6c7N+nOJSU94czEo+tvZcu8G75JparGq9kB+kTnEUNVM",
    ),
}


class RuntimeFiles(NamedTuple):
    """The runtime: what model.json says of its files, and those that are put into the folder."""

    described: dict[str, dict[str, Any]]
    contents: dict[str, bytes]


def runtime_files(folder: str | os.PathLike | None) -> RuntimeFiles:
    """Reads the files of the runtime from a folder, or says where the page finds them.

    Args:
        folder: the folder dist of the npm package onnxruntime-web; None for a public address.

    Raises:
        InputError: if the folder lacks a file.
    """
    if folder is None:
        described = {
            name: {
                "url": RUNTIME_ADDRESS + file.name,
                "bytes": file.size,
                "integrity": file.integrity,
            }
            for name, file in RUNTIME.items()
        }
        return RuntimeFiles(described, {})
    contents = {}
    for name, file in RUNTIME.items():
        path = to_path(folder) / file.name
        rule = "must be the folder dist of the npm package onnxruntime-web"
        require(path.is_file(), "runtime", rule, f"{str(folder)!r}, which has no {file.name}")
        contents[name] = path.read_bytes()
    return RuntimeFiles(_described(contents), contents)


def export_web(
    model: Transformer,
    vocabularies: VocabularyPair,
    export_dir: str | os.PathLike,
    card: ModelCard,
    runtime: RuntimeFiles,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Writes the folder of the page.

    Args:
        model: the Transformer.
        vocabularies: of its source and target, in files.
        export_dir: the directory to make.
        card: what is known of the model; its `weights` are float32 or int8, and are stored so.
        runtime: of `runtime_files`.
        overwrite: whether an earlier export in `export_dir` is replaced.

    Returns:
        {"web": export_dir, "bytes"}.

    Raises:
        InputError: if the model does not translate, its vocabulary is of a kind that the page does
            not know, the package onnx is not installed, or `export_dir` holds something or cannot
            be written.
    """
    onnx = load_onnx()
    task = card.origin.task
    require(task == "translation", "model", "must be a translation model", f"a {task} model")
    card = dataclasses.replace(card, onnx=onnx.__version__)
    of_model = graph_files(model, card.weights)
    of_model["vocabulary.json"] = _json(page_vocabulary(vocabularies.target))
    if vocabularies.own_source is not None:
        of_model["source_vocabulary.json"] = _json(page_vocabulary(vocabularies.own_source))

    shell = {name: (PACKAGE / file).read_bytes() for name, file in SERVED.items()}
    shell["index.html"] = shell["index.html"].replace(
        b"<main>\n", b"<main>\n" + SERVED_ONLY.encode()
    )
    for script in Path(__file__).parent.glob("*.js"):
        shell[script.name] = script.read_bytes()
    service_worker = shell.pop(SERVICE_WORKER)

    described = _described(of_model) | runtime.described
    version = _version({**shell, "card": _json(card.to_json()), "files": _json(described)})
    content = {"version": version, "card": _shown(card), "files": described}
    shell["model.json"] = _json(content)
    kept = json.dumps(["./", *sorted(shell)])
    head = f'const VERSION = "{version}";\nconst SHELL = {kept};\n'.encode()
    files = {**of_model, **runtime.contents, **shell, SERVICE_WORKER: head + service_worker}

    def write(folder: Path) -> None:
        for name, content in files.items():
            (folder / name).write_bytes(content)

    size = write_export(write, export_dir, card, overwrite)
    return {"web": str(export_dir), "bytes": size}


def _shown(card: ModelCard) -> dict[str, Any]:
    """The facts of the model for the page, in the words of GET /model (serving/responses.py)."""
    limits = card.decoding.limits(card.config)
    return {
        **card.to_json(),
        "in_browser": True,
        "formats": ["text"],  # of files that can be opened
        "signatures": ["search_ids"],
        "max_source_length": limits.source,
        "max_target_length": limits.target,
        "limits": {"whole_text": MOST_CHARACTERS},
    }


def _described(contents: dict[str, bytes]) -> dict[str, dict[str, Any]]:
    """The entries of model.json for files beside it."""
    described = {}
    for name, content in contents.items():
        digest = base64.b64encode(hashlib.sha384(content).digest()).decode("ascii")
        described[name] = {"url": name, "bytes": len(content), "integrity": f"sha384-{digest}"}
    return described


def _version(contents: dict[str, bytes]) -> str:
    """A name for contents, which changes with any of them."""
    digests = [f"{name} {hashlib.sha256(contents[name]).hexdigest()}" for name in sorted(contents)]
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()[:16]


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
