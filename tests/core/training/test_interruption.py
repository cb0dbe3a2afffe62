import os
import signal
import threading

import pytest

from keras_transformer.core.training.interruption import in_thread, is_in_thread, listening


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_heard_and_nothing_ends(number):
    done = []
    with listening() as interruption:
        assert interruption.signal is None
        signal.raise_signal(number)
        done.append("step")
        assert interruption.signal == number
    assert done == ["step"]


def test_earlier_handlers_are_restored():
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with listening():
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)  # a second one does not wait
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_validation_ends_where_it_is():
    done = []

    def validate():
        done.append("begun")
        try:
            signal.raise_signal(signal.SIGTERM)
        except Exception:
            done.append("handled")  # as a library would that expects errors
        done.append("ended")

    with listening() as interruption:
        assert interruption.unless_interrupted(lambda: "whole") == "whole"
        assert interruption.unless_interrupted(validate) is None
        assert interruption.unless_interrupted(lambda: "too late") is None
        signal.raise_signal(signal.SIGTERM)  # between validations, again: only noted
    assert done == ["begun"]


def test_errors_of_a_validation_are_not_swallowed():
    def fail():
        raise ValueError("broken")

    with listening() as interruption:
        with pytest.raises(ValueError, match="broken"):
            interruption.unless_interrupted(fail)
        assert interruption.unless_interrupted(lambda: {}) == {}


def test_another_thread_hears_nothing_and_changes_nothing():
    before, heard = signal.getsignal(signal.SIGTERM), []

    def listen():
        with listening() as interruption:
            heard.append((interruption.signal, signal.getsignal(signal.SIGTERM) is before))

    thread = threading.Thread(target=listen)
    thread.start()
    thread.join()
    assert heard == [(None, True)]


def test_a_signal_ends_the_wait_for_a_thread():
    begun, ended = threading.Event(), threading.Event()

    def compile_for_long():
        begun.set()
        assert ended.wait(60)

    def send_signal():
        begun.wait()
        os.kill(os.getpid(), signal.SIGTERM)

    with listening() as interruption:
        threading.Thread(target=send_signal).start()
        assert interruption.unless_interrupted(lambda: in_thread(compile_for_long)) is None
        assert interruption.signal == signal.SIGTERM and is_in_thread()
        (thread,) = (each for each in threading.enumerate() if "interruptible" in each.name)
        ended.set()
        thread.join()
        assert not is_in_thread()


def test_results_and_errors_of_a_thread():
    def fail():
        raise ValueError("broken")

    assert in_thread(lambda: 7) == 7
    with pytest.raises(ValueError, match="broken"):
        in_thread(fail)
