"""The trained model that a program uses: its flags, those of its search, and its memory."""

import dataclasses
import functools
import typing
from typing import Annotated, Any

from command.files import FILES_OF_LINES, lines_of_file
from command.flags import define_flag
from command.help import ADVANCED

from absl import flags, logging

from keras_transformer.core.search.config import DecodingConfig
from keras_transformer.support.errors import require
from keras_transformer.support.fields import one_of, options_of
from keras_transformer.support.files.paths import to_path
from keras_transformer.use.store.model_path import DEVICES, ENGINES, XLA

flags.disclaim_key_flags()  # the flags defined here belong to the calling program

# Exports do not have this option, and no result reports it.
WITHOUT_EFFECT = ("batch_tokens",)


def define_model_flags(takes_exports: bool = True) -> None:
    """Defines the flags for a program that uses a trained model.

    Args:
        takes_exports: whether the program also accepts --saved_model in place of --model_dir.
    """
    define = functools.partial(define_flag, default=None, heading="model")
    help = (
        "Trained model (bin/train.py), or a .keras file next to its vocabulary. Several, separated "
        "by commas, form an ensemble."
    )
    define("model_dir", str, help=help, required=not takes_exports)
    if takes_exports:
        define("saved_model", str, help="Export (bin/export.py), in place of --model_dir.")
    help = (
        "latest, best, average:K, or the path of a checkpoint; several, separated by commas, are "
        "averaged. Default: the average written by average_checkpoints, or else the latest."
    )
    define("checkpoint", str, help=help)
    help = "Adapter (bin/train.py with --lora_rank) to add to its base, --model_dir."
    define("adapter", str, help=help)
    help = "Scale of the adapter's updates, 1 by default; a smaller one stays closer to the base."
    define("adapter_scale", float, help=help, lower_bound=0)
    if takes_exports:
        help = (
            "cuda: translate on an NVIDIA GPU; cpu: on the processor; auto: on a GPU, if there is "
            "one."
        )
        define("device", Annotated[str, one_of(*DEVICES)], default="auto", help=help)
        help = (
            "on: XLA compiles searches, which takes seconds for each shape of a batch; auto: where "
            "searches become faster, in the background; off: never."
        )
        define("xla", Annotated[str, one_of(*XLA)], default="auto", help=help)
        ADVANCED.add("xla")
    kinds = typing.get_type_hints(DecodingConfig, include_extras=True)
    for name, field in search_fields().items():
        if takes_exports or name not in WITHOUT_EFFECT:
            kind = str if name in FILES_OF_LINES else kinds[name]
            define_flag(name, kind, None, field.metadata["help"], "search")


def define_engine_flag() -> None:
    """Defines --engine for a program that translates."""
    help = (
        "auto: translate with CTranslate2 if it is installed and can do what is asked, and else "
        "with TensorFlow. CTranslate2 starts faster and needs less memory; its first start "
        "converts the model."
    )
    define_flag("engine", Annotated[str, one_of(*ENGINES)], "auto", help, "model")


def search_fields() -> dict[str, dataclasses.Field]:
    """Returns the search options that are flags, by name."""
    return options_of(DecodingConfig)


def given_search_flags() -> dict[str, Any]:
    """Returns the search flags that were given, with the values as typed."""
    return {
        name: flags.FLAGS[name].value
        for name in search_fields()
        if name not in WITHOUT_EFFECT and flags.FLAGS[name].present
    }


def search_options() -> dict[str, Any]:
    """Returns the given search options as keras_transformer.load takes them."""
    options = {}
    for name in search_fields():
        is_given = name in flags.FLAGS and flags.FLAGS[name].value is not None
        if is_given and name in FILES_OF_LINES:
            lines = lines_of_file(flags.FLAGS[name].value, name)
            options[name] = tuple(line for line in lines if line.strip())
        elif is_given:
            options[name] = flags.FLAGS[name].value
    return options


def open_model_flags(fixed_in_export: tuple[str, ...] = ()):
    """Opens the model that the flags name, without TensorFlow, and checks the other model flags.

    Args:
        fixed_in_export: further program flags that an export with a built-in search does not take.

    Returns:
        A StoredModel; see keras_transformer.use.store.opening.
    """
    from keras_transformer.use.store.export import require_unset
    from keras_transformer.use.store.model_path import ModelPath
    from keras_transformer.use.store.opening import open_model

    values = flags.FLAGS
    names = [name for name in ("model_dir", "saved_model") if name in values]
    used = [name for name in names if values[name].value is not None]
    rule = "must be given, or --saved_model, but not both"
    require(len(used) == 1, "model_dir", rule, " and ".join(used) or "neither")
    (flag,) = used
    path = values[flag].value
    weights = {name: values[name].value for name in ("checkpoint", "adapter", "adapter_scale")}
    computed = {name: values[name].value for name in ("device", "xla", "engine") if name in values}
    if flag == "saved_model":
        require_unset(weights)
        stored = open_model(ModelPath(path, **computed, argument=flag))
        rule = "must be an export; this is a model directory or a .keras file: --model_dir"
        require(stored.is_export, flag, rule, path)
    else:
        stored = open_model(ModelPath(path.split(","), **weights, **computed, argument=flag))
        rule = "must be a model directory or a .keras file; this is an export: --saved_model"
        require(not stored.is_export, flag, rule, path)
    stored.check_options(search_options())
    if stored.contains_search:
        present = [name for name in fixed_in_export if values[name].present]
        require_unset({name: values[name].value for name in present})
    return stored


def load_model(stored, needs_tensorflow: bool = False, **options: Any):
    """Loads a model.

    Args:
        stored: the model, from `open_model_flags`.
        needs_tensorflow: whether --engine=auto means TensorFlow; see loading.translator_of.
        options: search options that are not flags of `define_model_flags`.

    Returns:
        A Translator; see keras_transformer.load.
    """
    logging.info("loading the model ...")  # with TensorFlow, this takes seconds
    from keras_transformer.core.search.engines.streams import share_cores
    from keras_transformer.loading import translator_of
    from keras_transformer.support.xla_cache import default_folder, keep_programs

    share_cores(stored.where.device)
    if stored.where.xla != "off":
        keep_programs(default_folder())
    translator = translator_of(stored, {**search_options(), **options}, needs_tensorflow)
    if translator.card.hardly_trained is not None:
        logging.warning("%s", translator.card.hardly_trained)
    return translator


def define_memory_flag() -> None:
    """Defines --memory."""
    flags.DEFINE_string(
        "memory",
        None,
        "Translation memory (.tmx, .tsv, .jsonl, .po, .xliff). Sentences found in it, ignoring "
        "white space and placeholders, are not translated by the model.",
    )


def check_memory_flag() -> None:
    """Checks that --memory is a file of sentence pairs before a model is loaded."""
    from pipelines.sources.pair_files import check_pair_file

    path = flags.FLAGS.memory
    if path is not None:
        check_pair_file(path, "memory")
        require(to_path(path).is_file(), "memory", "must be a file", repr(path))


def define_language_flags(to_help: str) -> None:
    """Defines --from and --to; `to_help` is the help of --to."""
    flags.DEFINE_string("to", None, to_help)
    flags.DEFINE_string(
        "from",
        None,
        "Source language, such as en, of a model that reads it, too: M2M-100 or NLLB-200.",
    )


def language_flags(stored) -> str | None:
    """Returns the languages of --from and --to, as the `to` of a Translator.

    Args:
        stored: the model, from `open_model_flags`.
    """
    from keras_transformer.core.vocabulary.language_codes import source_languages_of
    from keras_transformer.use.store.languages import find_language

    options = {} if stored.description is None else stored.description.task_options
    sources = source_languages_of(options)
    source, target = flags.FLAGS["from"].value, flags.FLAGS["to"].value
    known = ", ".join(sources)
    if source is None:
        is_clear = target is None or len(sources) <= 1
        rule = f"must be given with --to for this model, which reads the source language: {known}"
        require(is_clear, "from", rule, "none")
        return target
    rule = "must only be given for a model that reads the source language, too"
    require(sources, "from", rule, source)
    rule = f"must be one of the model's source languages: {known}"
    require(find_language(sources, source) is not None, "from", rule, source)
    require(target is not None, "to", "must be given with --from", "none")
    return f"{source}-{target}"


def load_model_with_memory(stored, needs_tensorflow: bool = False, **options: Any):
    """Loads a model, and the --memory file; see `load_model`."""
    from keras_transformer.use.store.languages import ModelLanguages
    from pipelines.sources.pair_files import read_memory

    translator = load_model(stored, needs_tensorflow, **options)
    path = flags.FLAGS.memory
    if path is not None:
        task = translator.card.description.task
        require(task == "translation", "memory", "must be used with a translation model", task)
        languages = translator.card.languages or ModelLanguages((), ())
        memory = read_memory(path, "memory", languages.directions, languages.coded)
        translator = translator.with_memory(memory)
    return translator
