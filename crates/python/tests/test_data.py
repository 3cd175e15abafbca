"""Data sets: from arrays, from folders, from solvers."""

import numpy as np
import pytest
from conftest import command, waves

import lamo


def test_arrays_become_the_data_set_that_the_command_imports(arrays):
    a, u = arrays
    np.save("a.npy", a)
    np.save("u.npy", u)
    done = command(
        "data", "import", "--input", "a=a.npy", "--output", "u=u.npy", "--grid", "8x6", "--unit", "u=m", "--seed", 5, "--test",
        6, "--out", "imported",
    )
    assert done.returncode == 0, done.stderr
    made = lamo.Dataset.from_arrays({"a": a}, {"u": u}, units={"u": "m"}, seed=5, test=6, name="imported", out="made")
    assert made.manifest == lamo.Dataset.from_folder("imported").manifest
    assert len(made) == 24 and len(made.train) == 18 and len(made.test) == 6


def test_values_are_mapped_from_the_files(data, arrays):
    assert np.array_equal(data["a"], arrays[0]) and isinstance(data["a"], np.memmap)
    assert data.fields == ["a", "u"] and data.grid == {"kind": "plane", "rows": 8, "columns": 6}
    assert data.check()["u"]["most"] == arrays[1].max()
    with pytest.raises(lamo.MissingError, match="expected one of the fields a, u, found `b`"):
        data["b"]


def test_equal_arrays_have_one_place_in_the_cache():
    one = lamo.Dataset.from_arrays(waves(12, 0.0), waves(12, 0.5))
    other = lamo.Dataset.from_arrays(waves(12, 0.0), waves(12, 0.5))
    third = lamo.Dataset.from_arrays(waves(12, 0.1), waves(12, 0.5))
    assert one.folder == other.folder != third.folder
    assert not list(one.folder.parent.glob(".arrays-*"))


@pytest.mark.parametrize("arguments, words", [
    (dict(inputs=waves(9, 0.0)), "outputs: expected at least one array"),
    (dict(inputs=waves(9, 0.0), outputs=waves(8, 0.0)), "9 samples|8 samples|expected"),
    (dict(inputs=waves(9, 0.0), outputs=np.full((9, 8, 6), np.nan)), "NaN"),
    (dict(inputs=waves(9, 0.0), outputs=waves(9, 0.0).reshape(9, 8, 6, 1, 1)), "grid"),
    (dict(inputs=waves(9, 0.0), outputs=waves(9, 0.0), grid=(4, 6)), "grid|points|expected"),
    (dict(inputs=waves(9, 0.0), outputs=waves(9, 0.0), grid="8 by 6"), "expected a number of points"),
    (dict(inputs=waves(9, 0.0), outputs=waves(9, 0.0), units={"x": "m"}), "expected names among input, output, found x"),
    (dict(inputs=waves(9, 0.0), outputs=waves(9, 0.0), window=2), "window and horizon"),
    (dict(inputs={"../a": waves(9, 0.0)}, outputs=waves(9, 0.0)), "expected a name of small letters"),
    (dict(inputs={"A": waves(9, 0.0)}, outputs=waves(9, 0.0)), "small letters"),
    (dict(inputs=np.array(["x"]), outputs=waves(9, 0.0)), "expected numbers, found texts"),
    (dict(outputs=[np.ones(4), np.ones(5)]), "expected|found"),
])
def test_what_is_no_data_set_is_refused_and_leaves_nothing(arguments, words, tmp_path):
    with pytest.raises(lamo.InputError, match=words) as caught:
        lamo.Dataset.from_arrays(out=tmp_path / "made", **arguments)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_points_may_lie_anywhere():
    random = np.random.default_rng(1)
    xy = random.random((12, 30, 2))
    data = lamo.Dataset.from_arrays({"load": xy[:, :, 0] + 1}, {"u": 1 + xy.sum(axis=2)}, positions=xy)
    assert data.grid == {"kind": "cloud", "points": 30}
    shared = lamo.Dataset.from_arrays({"load": xy[:, :, 0] + 1}, {"u": 1 + xy.sum(axis=2)}, positions=xy[0])
    assert shared["positions"].shape == (1, 30, 2)


def test_numbers_of_samples_are_inputs_and_outputs():
    drag = 1 + np.arange(12.0)
    data = lamo.Dataset.from_arrays({"a": waves(12, 0.0), "speed": drag}, {"drag": drag * 2}, units={"drag": "N"})
    assert data.grid["kind"] == "plane" and data["drag"].shape == (12,)


def test_a_solver_makes_data_once():
    data = lamo.make("darcy", samples=4, seed=2, resolution=16)
    assert data.fields == ["permeability", "pressure"] and len(data) == 4 and data["pressure"].shape == (4, 16, 16)
    again = lamo.make("darcy", samples=4, seed=2, resolution=16)
    assert again.folder == data.folder
    done = command("data", "make", "darcy", "--samples", 4, "--seed", 2, "--set", "resolution=16", "--out", "made")
    assert done.returncode == 0, done.stderr
    assert np.array_equal(lamo.Dataset.from_folder("made")["pressure"], data["pressure"])
    with pytest.raises(lamo.InputError, match="resolution"):
        lamo.make("darcy", samples=1, resolutions=16)


def test_a_folder_without_data_is_missing(tmp_path):
    with pytest.raises(lamo.MissingError) as caught:
        lamo.Dataset.from_folder(tmp_path)
    assert isinstance(caught.value, FileNotFoundError)


def test_every_object_says_what_it_is(data, run):
    assert repr(data).startswith("Dataset(") and "24 samples (20 to train, 4 to test), a 8x6, u 8x6" in repr(data)
    assert repr(run).startswith("Run(") and "lamo," in repr(run) and "a -> u on a plane of 8x6" in repr(run)
