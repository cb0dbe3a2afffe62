"""A model in the layout of training, by its path."""

from keras_transformer.use.store.model_path import ModelPath
from keras_transformer.use.store.opening import open_model


def restore(path, checkpoint=None, adapter=None, adapter_scale=None):
    """Returns the TrainedModel at a path; the arguments are those of ModelPath."""
    return open_model(ModelPath(path, checkpoint, adapter, adapter_scale)).restore()
