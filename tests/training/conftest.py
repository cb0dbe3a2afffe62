import pytest


@pytest.fixture(scope="session")
def traced_steps():
    """The steps that `steps_traced_once` has made: (step, its variables and their first values)."""
    return {}


@pytest.fixture(scope="module")
def steps_traced_once(traced_steps):
    """Lets calls of `train` with equal configurations share one traced step.

    Each call gets the variables of a new one. Tracing is most of what these short runs take; the
    tests of programs start processes, each of which traces its own.
    """
    from keras_transformer.training import loop
    from keras_transformer.training.step import TrainingStep

    made = traced_steps

    def step_of(model_config, training_config, strategy):
        configs = (model_config, training_config)
        if configs not in made:
            step = TrainingStep(*configs, strategy)
            variables = [*step.model.variables, *step.optimizer.variables]
            made[configs] = step, [(variable, variable.numpy()) for variable in variables]
        step, initial = made[configs]
        for variable, value in initial:
            variable.assign(value)
        return step

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "TrainingStep", step_of)
        yield
