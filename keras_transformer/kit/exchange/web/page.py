"""A folder with a page that translates in the browser: any web server can serve it.

The page is that of serving/, with translator.js in place of its server: worker.js runs the model,
two ONNX graphs, in ONNX Runtime's WebAssembly. `model.json` holds the model's facts for the page,
and lists its files.

SentencePiece's own code for the browser would be another WebAssembly module. 320 lines here give
the same ids, compared for 70,000 lines of text with seven vocabularies. The page uses one thread:
more need headers that GitHub Pages and others do not send.
"""

import base64
import dataclasses
import functools
import hashlib
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from keras_transformer.core.model.transformer import Transformer
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.kit.exchange.directory import write_export, write_files
from keras_transformer.kit.exchange.onnx import graph_files
from keras_transformer.kit.exchange.web.page_vocabulary import page_vocabulary
from keras_transformer.support.errors import import_extra, require
from keras_transformer.support.files.paths import to_path
from keras_transformer.use.store.card import ModelCard

PACKAGE = Path(__file__).parents[3]
# Files of the served page, by their names here; translator.js is the page's own.
SERVED = {
    "index.html": "kit/serving/page.html",
    "page.css": "kit/serving/page.css",
    "page.js": "kit/serving/page.js",
    "figure.css": "kit/figures/figure.css",
    "figure.js": "kit/figures/figure.js",
}
SERVICE_WORKER = "service_worker.js"
MOST_CHARACTERS = 100_000  # in a text: about ten minutes of work for a browser
# Browsers run no modules from file: URLs. This script is not a module.
SERVED_ONLY = """<script>
if (location.protocol === "file:") document.write("<p class=error>This page must come from a web " +
  "server. For example, run python -m http.server in its folder.</p>");
</script>
"""
# ONNX Runtime's files, and where the page fetches them unless they are in its folder. The
# single-threaded build needs no special headers from the server.
RUNTIME_ADDRESS = "https://cdn.jsdelivr.net/npm/onnxruntime-web@1.30.0/dist/"


class RuntimeFile(NamedTuple):
    """A file of the runtime: its original name, size and hash."""

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
    """The runtime: its entries in model.json, and the files to put into the folder."""

    described: dict[str, dict[str, Any]]
    contents: dict[str, bytes]


def runtime_files(folder: str | os.PathLike | None) -> RuntimeFiles:
    """Reads the runtime's files from a folder, or returns their public address.

    Args:
        folder: the dist folder of the npm package onnxruntime-web; None for a public address.

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
        rule = "must be the dist folder of the npm package onnxruntime-web"
        require(path.is_file(), "runtime", rule, f"{str(folder)!r}, which has no {file.name}")
        contents[name] = path.read_bytes()
    return RuntimeFiles(_described(contents), contents)


def export_web(
    model: Transformer,
    vocabularies: VocabularyPair,
    export_dir: str | os.PathLike,
    card: ModelCard,
    overwrite: bool = False,
    runtime: str | os.PathLike | None = None,
) -> dict[str, Any]:
    """Writes the folder of the page.

    Args:
        model, vocabularies, export_dir, overwrite: see formats.export.
        card: the model card; its `weights`, "float32" or "int8", is how the weights are stored.
        runtime: the folder of the runtime's files; see `runtime_files`.

    Returns:
        {"web": export_dir, "bytes"}.

    Raises:
        InputError: if the model does not translate, the page does not support its kind of
            vocabulary, the package onnx is not installed, or `export_dir` is not empty or not
            writable.
    """
    onnx = import_extra("onnx")
    files_of_runtime = runtime_files(runtime)
    task = card.description.task
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

    described = _described(of_model) | files_of_runtime.described
    version = _version({**shell, "card": _json(card.flat()), "files": _json(described)})
    content = {"version": version, "card": _shown(card), "files": described}
    shell["model.json"] = _json(content)
    kept = json.dumps(["./", *sorted(shell)])
    head = f'const VERSION = "{version}";\nconst SHELL = {kept};\n'.encode()
    files = {
        **of_model,
        **files_of_runtime.contents,
        **shell,
        SERVICE_WORKER: head + service_worker,
    }

    write = functools.partial(write_files, contents=files)
    size = write_export(write, export_dir, card, overwrite)
    return {"web": str(export_dir), "bytes": size}


def _shown(card: ModelCard) -> dict[str, Any]:
    """Returns the model's facts for the page, in the form of GET /model (serving/responses.py)."""
    limits = card.decoding.limits(card.config)
    return {
        **card.flat(),
        "in_browser": True,
        "file_formats": {".txt": "text"},
        "archives": [],
        "signatures": ["search_ids"],
        "max_source_length": limits.source,
        "max_target_length": limits.target,
        "limits": {"whole_text": MOST_CHARACTERS},
    }


def _described(contents: dict[str, bytes]) -> dict[str, dict[str, Any]]:
    """Returns the entries in model.json for files next to it."""
    described = {}
    for name, content in contents.items():
        digest = base64.b64encode(hashlib.sha384(content).digest()).decode("ascii")
        described[name] = {"url": name, "bytes": len(content), "integrity": f"sha384-{digest}"}
    return described


def _version(contents: dict[str, bytes]) -> str:
    """Returns a version name that changes with any of the contents."""
    digests = [f"{name} {hashlib.sha256(contents[name]).hexdigest()}" for name in sorted(contents)]
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()[:16]


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
