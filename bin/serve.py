"""Serves a model: a web page that translates and shows attention, and JSON endpoints.

GET /openapi.json describes the endpoints; clients of LibreTranslate can use them, too. Ctrl-C or
SIGTERM ends it, after what it has begun.
"""

from command import check_model_flags, define_model_flags, flag_values, load_model, run  # isort: skip  (first: it makes the checkout importable)

from absl import flags

FLAGS = flags.FLAGS
define_model_flags(__name__)
flags.DEFINE_string("host", "127.0.0.1", "Where to listen; 0.0.0.0 lets other machines in.")
flags.DEFINE_integer(
    "port", 8501, "Where to listen; 0 is any free one.", lower_bound=0, upper_bound=65535
)
flags.DEFINE_float("timeout", 60.0, "Seconds that a request may take.")
flags.DEFINE_integer("max_sentences", 64, "Sentences of a request.")
flags.DEFINE_integer("max_characters", 20_000, "Characters of a request.")
flags.DEFINE_integer("max_waiting", 64, "Requests that may wait for the model.")
flags.DEFINE_string(
    "cors_origin",
    None,
    "Origin of other web pages that may use the server, such as https://example.org; * is all.",
)


def main():
    from keras_transformer.serving.requests import Limits, check_cors_origin
    from keras_transformer.serving.server import listening_socket, serve

    limits = Limits(**flag_values(Limits))
    check_cors_origin(FLAGS.cors_origin)
    check_model_flags()  # this and the next line fail at once; loading the model takes a while
    listening = listening_socket(FLAGS.host, FLAGS.port)
    return serve(load_model(), listening, FLAGS.host, limits, FLAGS.cors_origin)


if __name__ == "__main__":
    run(main)
