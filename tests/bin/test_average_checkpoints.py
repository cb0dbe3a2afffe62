import shutil

import numpy as np

from tests.refusals import check_line


def test_average_is_a_checkpoint_of_its_own(call_program, untrained, tmp_path):
    from keras_transformer.training.checkpoint_weights import restore_model

    model_dir = shutil.copytree(untrained, tmp_path / "model")
    done = call_program("average_checkpoints", f"--model_dir={model_dir}", "--last=2")
    assert done.code == 0
    assert (done.result["averaged"], done.result["step"]) == (2, 20)
    weights = {
        name: [v.numpy() for v in restore_model(model_dir, name)[0].trainable_variables]
        for name in (done.result["checkpoint"], "step-00000010", "step-00000020")
    }
    mean, first, second = weights.values()
    for got, *parts in zip(mean, first, second, strict=True):
        np.testing.assert_allclose(got, np.mean(parts, axis=0), atol=1e-6)


def test_the_average_is_used_from_then_on(call_program, untrained, tmp_path):
    from tests.restoring import restore

    def loaded(*checkpoint):
        trained = restore(model_dir, *checkpoint)
        return trained.card.checkpoint.checkpoint, trained.model.trainable_variables[0].numpy()

    model_dir = shutil.copytree(untrained, tmp_path / "model")
    latest = loaded()
    assert latest[0] == "step-00000020"
    done = call_program("average_checkpoints", f"--model_dir={model_dir}", "--last=2")
    assert done.code == 0
    name, weights = loaded()
    assert name == "average:2"
    np.testing.assert_array_equal(weights, loaded(done.result["checkpoint"])[1])
    assert not np.array_equal(weights, latest[1])
    name, weights = loaded("latest")
    assert name == latest[0]
    np.testing.assert_array_equal(weights, latest[1])


def test_wrong_input(call_program, untrained, tmp_path):
    done = call_program("average_checkpoints", f"--model_dir={tmp_path}")
    assert done.code == 1
    check_line(done.errors, "--model_dir", tmp_path, "training")
    done = call_program("average_checkpoints", "--model_dir=")
    assert done.code == 1
    check_line(done.errors, "--model_dir", "''", "given")
    done = call_program("average_checkpoints", f"--model_dir={untrained}", "--last=0")
    assert done.code == 1
    check_line(done.errors, "--last", "0")
