"""Predictions: as the command's, from any array, from several threads."""

import pickle
import threading
import warnings

import numpy as np
import pytest
from conftest import SMALL, command, waves

import lamo


def test_a_prediction_has_the_bits_of_the_command(run):
    new = waves(5, 0.2)
    np.save("new.npy", new)
    done = command("predict", run.path, "--input", "new.npy", "--output", "answer.npy")
    assert done.returncode == 0, done.stderr
    assert np.array_equal(run.predict(new), np.load("answer.npy"))
    assert np.array_equal(run.predict(new), np.load("answer.npy"))  # by the compiled model of the first call


def test_a_pretrained_model_has_the_bits_of_the_command():
    model = lamo.pretrained("darcy")
    new = np.where(waves(2, 0.0, 85, 85) > 1.5, 12.0, 3.0)
    np.save("new.npy", new)
    done = command("predict", "darcy", "--input", "new.npy", "--output", "answer.npy")
    assert done.returncode == 0, done.stderr
    assert np.array_equal(model.predict(new), np.load("answer.npy"))


def test_an_array_gives_an_array_and_a_dictionary_a_dictionary(run):
    new = waves(2, 0.2)
    answer = run.predict({"a": new})
    assert list(answer) == ["u"] and np.array_equal(answer["u"], run.predict(new))


def test_one_sample_needs_no_axis_of_samples(run):
    new = waves(2, 0.2)
    assert run.predict(new[0]).shape == (8, 6)
    assert np.array_equal(run.predict(new[0]), run.predict(new[:1])[0])


@pytest.mark.parametrize("form", [
    lambda a: a.astype(np.float64), np.asfortranarray, lambda a: np.repeat(a, 2, axis=2)[:, :, ::2], lambda a: a.astype(">f4"),
    lambda a: a.tolist(), lambda a: a[::-1][::-1],
])
def test_types_and_orders_in_memory_do_not_matter(run, form):
    new = waves(2, 0.2)
    assert np.array_equal(run.predict(form(new)), run.predict(new))


def test_whole_numbers_and_truth_values_are_numbers(run):
    new = (waves(2, 0.2) > 1.5)
    assert np.array_equal(run.predict(new), run.predict(new.astype(np.int64)))


@pytest.mark.parametrize("values, words", [
    (np.full((1, 8, 6), np.nan), "finite numbers"),
    (np.full((1, 8, 6), 1e300), "values up to 3.4e38"),
    (np.ones(7), "samples of shape"),
    (np.ones((2, 2, 8, 6)), "samples of shape"),
    (np.ones((0, 8, 6)), "at least one sample"),
    (np.array([["a"]]), "expected numbers, found texts"),
    ([[1.0], [2.0, 3.0]], "expected numbers"),
    ({"b": np.ones((8, 6))}, "expected the inputs a, found b"),
    ({}, "expected the inputs a, found none"),
    (None, "expected numbers, found objects"),
    (np.ma.masked_greater(waves(1, 0.2), 2.0), "found [0-9]+ masked values"),
    ([np.ma.masked_greater(wave, 2.0) for wave in waves(2, 0.2)], "found [0-9]+ masked values"),
])
def test_what_is_no_input_is_refused_in_a_sentence(run, values, words):
    with pytest.raises(lamo.InputError, match=words) as caught:
        run.predict(values)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_a_mask_that_hides_nothing_changes_nothing(run):
    new = waves(2, 0.2)
    assert np.array_equal(run.predict(np.ma.masked_array(new)), run.predict(new))


def test_masked_values_are_no_data():
    masked = np.ma.masked_greater(waves(8, 0.0), 2.0)
    for inputs, outputs in [(masked, waves(8, 0.5)), (waves(8, 0.5), masked), (list(masked), waves(8, 0.5))]:
        with pytest.raises(lamo.InputError, match="masked values; give numbers for them"):
            lamo.Dataset.from_arrays(inputs, outputs)


def test_another_grid_and_a_longer_series_are_warned_about(run):
    with pytest.warns(lamo.LamoWarning, match="trained on a plane of 8 x 6 points and predicts on a plane of 12 x 9") as caught:
        run.predict(waves(2, 0.2, 12, 9))
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run.predict(waves(2, 0.2))


def test_an_unknown_device_is_refused(run):
    with pytest.raises(lamo.DeviceError, match="there are cpu, cuda"):
        run.predict(waves(1, 0.2), device="tpu")


def test_several_threads_predict_at_the_same_time(run):
    inputs = [waves(3, 0.1 * number) for number in range(8)]
    expected = [run.predict(each) for each in inputs]
    found = [None] * len(inputs)

    def work(number):
        for _ in range(5):
            found[number] = run.predict(inputs[number])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(inputs))]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert all(np.array_equal(one, other) for one, other in zip(found, expected))


def test_a_run_travels_to_another_process(run):
    copy = pickle.loads(pickle.dumps(run))
    new = waves(2, 0.2)
    assert np.array_equal(copy.predict(new), run.predict(new))


def test_the_prediction_belongs_to_python(run):
    answer = run.predict(waves(2, 0.2))
    assert answer.dtype == np.float32 and answer.flags.c_contiguous and answer.flags.writeable
    answer += 1  # and changes nothing else
    assert not np.array_equal(answer, run.predict(waves(2, 0.2)))


def test_clouds_of_different_sizes_are_lists():
    random = np.random.default_rng(0)
    clouds = [random.random((points, 2)) for points in (20, 24, 31, 22, 27, 25, 30, 21)]
    values = [1.0 + cloud.sum(axis=1) for cloud in clouds]
    data = lamo.Dataset.from_arrays(outputs={"p": values}, positions=clouds, test=2)
    assert data.grid == {"kind": "cloud", "points": 31} and "ragged" in data.manifest
    run = lamo.train(data, epochs=1, out="clouds", train__batch=2, **SMALL)
    new = [random.random((points, 2)) for points in (19, 33)]
    found = run.predict(new)
    assert [answer.shape for answer in found] == [(19,), (33,)]
    named = run.predict([{"positions": cloud} for cloud in new])
    assert all(np.array_equal(one["p"], other) for one, other in zip(named, found))
    for number, cloud in enumerate(new):
        np.save(f"new_{number}.npy", cloud)
    done = command("predict", run.path, "--input", "positions=new_*.npy", "--output", "out_*.npy")
    assert done.returncode == 0, done.stderr
    for number, answer in enumerate(found):
        assert np.array_equal(answer, np.load(f"out_new_{number}.npy"))


def test_weights_have_the_names_of_the_authors(run):
    weights = run.to_torch()
    assert sum(array.size for array in weights.values()) >= run.parameters
    assert all(array.dtype == np.float32 for array in weights.values())
    done = command("export-weights", run.path, "--out", "weights.safetensors")
    assert done.returncode == 0, done.stderr
    with open("weights.safetensors", "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = file.read(length).decode()
    assert all(f'"{name}"' in header for name in weights)


def test_a_time_series_is_continued():
    place = np.arange(40)[None, :, None] * 0.3 + np.arange(16)[None, None, :] * 0.4
    series = 1.5 + np.sin(place + np.arange(6)[:, None, None])  # [samples, snapshots, points]
    data = lamo.Dataset.from_arrays(
        outputs={"u": series}, grid=(16,), axes={"u": "ntx"}, window=4, horizon=3, step=3, out="series"
    )
    run = lamo.train(data, "fno", epochs=1, out="rolled", model__settings__width=8)
    assert run.predict(series[:2, :4].astype(np.float32)).shape == (2, 3, 16)
    assert run.predict(series[:2, :4].astype(np.float32), frames=5).shape == (2, 5, 16)
    with pytest.warns(lamo.LamoWarning, match="continues the last 4 of 6 snapshots"):
        assert run.predict(series[:2, :6]).shape == (2, 3, 16)
    with pytest.raises(lamo.InputError, match="at least 1"):
        run.predict(series[:2, :4], frames=0)
