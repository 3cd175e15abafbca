"""Trainings: as the command's, interrupted, resumed."""

import signal
import warnings

import numpy as np
import pytest
from conftest import SMALL, command, waves

import lamo


def same_weights(one, other):
    one, other = one.to_torch(), other.to_torch()
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def test_four_lines_train_and_predict():
    data = lamo.Dataset.from_arrays(waves(20, 0.0), waves(20, 0.5))
    run = lamo.train(data, epochs=1, **SMALL)
    prediction = run.predict(waves(3, 0.1))
    assert prediction.shape == (3, 8, 6) and np.isfinite(prediction).all()
    assert run.path.parts[-2:] == ("runs", "arrays-lamo-1") and (run.path / "report.html").is_file()


def test_a_training_has_the_bits_of_the_command(data, run):
    settings = ["model.settings.width=16", "model.settings.depth=1", "train.epochs=2"]
    changes = [word for setting in settings for word in ("--set", setting)]
    done = command("train", data.folder, "--model", "lamo", "--seed", 3, *changes, "--out", "commanded")
    assert done.returncode == 0, done.stderr
    other = lamo.load("commanded")
    assert same_weights(run, other)
    assert run.receipt["evaluation"] == other.receipt["evaluation"]
    assert run.receipt["hashes"] == other.receipt["hashes"]


@pytest.fixture
def interrupts():
    """Ctrl-C is heard, also in a job that a shell put into the background and that ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
def test_a_training_that_ctrl_c_stops_resumes_to_the_same_bits(data, run):
    def press_ctrl_c(event):
        if event["event"] == "epoch" and event["epoch"] == 1:
            signal.raise_signal(signal.SIGINT)

    epochs = 1000  # the training must not end before it hears of the signal
    whole = lamo.train(data, epochs=epochs, out="whole", **SMALL)
    with pytest.raises(KeyboardInterrupt) as caught:
        lamo.train(data, epochs=epochs, out="stopped", progress=press_ctrl_c, **SMALL)
    stopped = caught.value
    assert isinstance(stopped, lamo.Interrupted) and "lamo.train(resume='stopped')" in str(stopped)
    assert stopped.run is not None and stopped.run.receipt is None
    resumed = lamo.train(resume=stopped.run)
    assert same_weights(resumed, whole)
    assert resumed.receipt["evaluation"] == whole.receipt["evaluation"]
    assert list(resumed.history["epoch"]) == list(range(1, epochs + 1))
    again = lamo.train(resume="stopped")  # nothing is left to do
    assert same_weights(again, whole)


def test_an_exception_of_the_listener_stops_the_training_and_is_raised(data):
    def fail(event):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        lamo.train(data, epochs=2, out="failed", progress=fail, **SMALL)


def test_the_listener_hears_the_run_its_epochs_and_its_checkpoints(data):
    events = []
    lamo.train(data, epochs=2, out="heard", progress=events.append, **SMALL)
    kinds = [event["event"] for event in events]
    assert {"data", "model", "run", "epoch", "checkpoint"} <= set(kinds)
    assert [event["epoch"] for event in events if event["event"] == "epoch"] == [1, 2]


def test_history_has_equal_columns_and_nan_where_nothing_was_tested(run):
    history = run.history
    assert list(history) == ["epoch", "step", "train", "validation", "test", "rate", "seconds"]
    assert {len(column) for column in history.values()} == {2}
    assert history["epoch"].dtype == np.int64 and np.isfinite(history["train"]).all()


def test_settings_have_two_underscores_for_a_dot(data):
    run = lamo.train(data, "fno", epochs=1, out="set", train__rate=2e-3, model__settings__width=8, seed=1)
    assert run.experiment["train"]["rate"] == 2e-3 and run.settings["width"] == 8 and run.experiment["seed"] == 1
    with pytest.raises(lamo.InputError, match="train.rate"):
        lamo.train(data, epochs=1, train__rates=1.0)
    with pytest.raises(lamo.InputError, match="expected a number, a text"):
        lamo.train(data, epochs=1, train__rate=object())


def test_a_resumed_run_takes_nothing_that_would_change_it(run):
    with pytest.raises(lamo.InputError, match="found epochs, train__rate"):
        lamo.train(resume=run, epochs=5, train__rate=1.0)
    with pytest.raises(lamo.InputError, match="expected data, a benchmark or resume"):
        lamo.train()


def test_a_training_starts_from_another_run(data, run):
    tuned = lamo.train(data, init=run, epochs=1, out="tuned")
    assert tuned.model == "lamo" and tuned.settings["width"] == 16


def test_a_folder_that_is_in_use_is_a_conflict(data, run):
    with pytest.raises(lamo.ConflictError, match="new or empty folder"):
        lamo.train(data, out=run.path, epochs=1)


def test_warnings_of_the_library_are_warnings_of_python_at_the_line_of_the_caller(data):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        lamo.train(data, epochs=1, out="warned", train__rate=1e-9, **SMALL)
    ours = [warning for warning in caught if issubclass(warning.category, lamo.LamoWarning)]
    assert any("learns nothing" in str(warning.message) for warning in ours)
    assert all(warning.filename == __file__ for warning in ours)


def test_a_benchmark_makes_its_data():
    run = lamo.train(
        "darcy", epochs=1, out="darcy", data__train=8, data__test=2, data__settings__resolution=16, train__batch=4,
        model__settings__width=16, model__settings__depth=1,
    )
    assert [entry["name"] for entry in run.inputs] == ["permeability"]
    assert run.evaluate().error == run.error
