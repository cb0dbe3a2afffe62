"""Serves a model: a web page that translates and shows attention, and JSON endpoints.

GET /openapi.json describes the endpoints, which also work with LibreTranslate clients. Ctrl-C or
SIGTERM stops the server after the running requests.
"""

import contextlib
import dataclasses

from command.files import terms_of
from command.flags import define_flags, flag_values
from command.log import log_dates
from command.model import (
    check_memory_flag,
    define_engine_flag,
    define_memory_flag,
    define_model_flags,
    load_model_with_memory,
    open_model_flags,
)
from command.run import run

from absl import flags

from keras_transformer.kit.serving.limits import OWN_MACHINE, Limits
from keras_transformer.kit.serving.requests import check_cors_origin

FLAGS = flags.FLAGS
define_model_flags()
define_engine_flag()
flags.DEFINE_string("host", "127.0.0.1", "Address to listen on; 0.0.0.0 accepts other machines.")
flags.DEFINE_integer(
    "port", 8501, "Port to listen on; 0 picks a free one.", lower_bound=0, upper_bound=65535
)
define_flags(Limits, "limits")
flags.DEFINE_string(
    "cors_origin",
    None,
    "Origin whose pages may call the server (CORS), such as https://example.org; * for any.",
)
flags.DEFINE_list(
    "terminology",
    [],
    "Terminology files as for translate, separated by commas. A request selects one by its name "
    "without the suffix; the first is the default.",
)
define_memory_flag()
flags.DEFINE_string(
    "corrections",
    None,
    "File (.tmx) for corrections, which the page and programs add and remove, and which are used "
    "like a translation memory. It is created if there is none. Everyone who can reach the server "
    "can change them.",
)
flags.DEFINE_string(
    "adapter_dir",
    None,
    "Also learn the --corrections, into an adapter in this directory (as bin/adapt.py does). "
    "Removing it undoes that.",
)
flags.DEFINE_string(
    "data_dir",
    None,
    "With --adapter_dir: the model's training data, or similar data, of which a part is repeated "
    "with each correction.",
)


def main():
    from keras_transformer.kit.serving.application import Service
    from keras_transformer.kit.serving.server import (
        allowed_names,
        is_own_machine,
        listening_socket,
        serve,
    )

    log_dates()
    limits = Limits(**flag_values(Limits), prefix="--")
    check_cors_origin(FLAGS.cors_origin)
    check_memory_flag()
    check_corrections_flag()
    terminologies = read_terminologies()
    # These two lines fail early; loading the model takes a while.
    stored = open_model_flags()
    check_adapter_flags(stored)
    listening = listening_socket(FLAGS.host, FLAGS.port)
    if is_own_machine(listening):
        own = {name: value for name, value in OWN_MACHINE.items() if not FLAGS[name].present}
        limits = dataclasses.replace(limits, **own)
    learns = FLAGS.adapter_dir is not None
    translator = load_model_with_memory(stored, needs_tensorflow=learns or bool(terminologies))
    corrections = read_corrections(translator)
    if corrections is not None:
        translator = translator.with_corrections(corrections)
    names = allowed_names(FLAGS.host, listening)
    service = Service(translator, limits, names, FLAGS.cors_origin, terminologies, corrections)
    with learning(stored, service, corrections):
        return serve(service, listening, FLAGS.host)


def check_adapter_flags(stored):
    """Checks the flags for learning corrections before a model is loaded."""
    from keras_transformer.support.errors import require
    from pipelines.adaptation import check_base

    if FLAGS.adapter_dir is None:
        rule = "must be used with --adapter_dir"
        require(FLAGS.data_dir is None, "data_dir", rule, FLAGS.data_dir)
        return
    rule = "must be used with --corrections, which are learned"
    require(FLAGS.corrections is not None, "adapter_dir", rule, FLAGS.adapter_dir)
    require(FLAGS.data_dir is not None, "data_dir", "must be given with --adapter_dir", "none")
    rule = "must be auto or tensorflow with --adapter_dir"
    require(FLAGS.engine != "ctranslate2", "engine", rule, FLAGS.engine)
    check_base(stored)


@contextlib.contextmanager
def learning(stored, service, corrections):
    """Learns corrections in the block, while the service is idle, if --adapter_dir is given."""
    if FLAGS.adapter_dir is None:
        yield
        return
    from pipelines.adaptation import config_of, opened_adaptation
    from pipelines.background_learning import learning_in_background

    config = config_of(FLAGS.adapter_dir)
    idle_seconds = service.calls.idle_seconds
    with (
        opened_adaptation(stored, FLAGS.adapter_dir, FLAGS.data_dir, config) as adaptation,
        learning_in_background(adaptation, service.translator, corrections, idle_seconds),
    ):
        yield


def check_corrections_flag():
    """Checks that --corrections can be a file of corrections before a model is loaded."""
    from keras_transformer.kit.documents.memory.corrections import check_corrections
    from keras_transformer.support.errors import require
    from keras_transformer.support.files.paths import resolved

    path = FLAGS.corrections
    if path is not None:
        check_corrections(path)
        is_memory = FLAGS.memory is not None and resolved(FLAGS.memory) == resolved(path)
        require(not is_memory, "corrections", "must not be the same file as --memory", repr(path))


def read_corrections(translator):
    """Reads the file of corrections; None if there is no flag for it."""
    from keras_transformer.kit.documents.memory.corrections import Corrections

    path = FLAGS.corrections
    return None if path is None else Corrections(path, translator.card.languages)


def read_terminologies():
    """Reads all terminology files: {name: {source phrase: target phrase}}."""
    from keras_transformer.support.errors import require
    from keras_transformer.support.files.reading import uncompressed_name

    terminologies = {}
    for path in FLAGS.terminology:
        name = uncompressed_name(path).stem
        rule = "must be files with different names"
        require(name not in terminologies, "terminology", rule, repr(path))
        terminologies[name] = terms_of(path, "terminology")
    return terminologies


if __name__ == "__main__":
    run(main)
