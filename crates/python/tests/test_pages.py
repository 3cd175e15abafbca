"""Evaluations, reports, comparisons, explanations and lists."""

import json

import numpy as np
import pytest
from conftest import SMALL, command

import lamo

PNG = b"\x89PNG\r\n"


def test_an_evaluation_has_the_numbers_of_the_command(run):
    evaluation = run.evaluate()
    done = command("evaluate", run.path, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["evaluation"] == evaluation.receipt["evaluation"]
    assert evaluation.error == run.error and "on 4 test samples" in repr(evaluation)
    assert evaluation.predictions["u"].shape == evaluation.truth["u"].shape == (4, 8, 6)


def test_predictions_and_truth_give_the_error_of_the_evaluation(data, run):
    evaluation = run.evaluate()
    miss, truth = evaluation.predictions["u"] - evaluation.truth["u"], evaluation.truth["u"]
    errors = np.linalg.norm(miss.reshape(4, -1), axis=1) / np.linalg.norm(truth.reshape(4, -1), axis=1)
    assert np.allclose(errors, evaluation.samples["error"], rtol=1e-5)
    assert np.array_equal(truth, data["u"][data.test])
    assert list(evaluation.samples["sample"]) == list(data.test)


def test_a_report_shows_inside_a_notebook(run):
    page = run.report()
    assert page.path == run.path / "report.html" and page._repr_html_().startswith("<iframe srcdoc=")
    assert "&lt;" in page._repr_html_() and "<script" not in page._repr_html_()
    assert page.pictures["median"]._repr_png_().startswith(PNG)


def test_a_report_is_of_the_predictions_and_the_weights_that_are_asked_for(data):
    run = lamo.train(data, "lamo", epochs=1, out="own", **SMALL)
    plain = run.report().numbers
    symmetric = run.report(symmetries=True).numbers
    assert "symmetries" in symmetric and "symmetries" not in plain
    assert run.report().numbers["evaluation"] == plain["evaluation"]
    receipt = json.loads((run.path / "receipt.json").read_text())
    receipt["hashes"]["weights"] = "0" * 64  # as of a run that was resumed after its report
    (run.path / "receipt.json").write_text(json.dumps(receipt))
    assert run.receipt is None and run.error is None
    assert run.report().numbers["evaluation"] == plain["evaluation"] and run.error is not None


def test_a_model_without_a_folder_needs_one_for_its_report(run, data):
    checkpoint = lamo.load(run.path / "checkpoints" / "last.safetensors")
    with pytest.raises(lamo.InputError, match="give out=FOLDER"):
        checkpoint.report(data)
    assert checkpoint.report(data, out="report").path.is_file()
    with pytest.raises(lamo.ConflictError, match="folder of its own"):
        checkpoint.report(data, out=data.folder)
    with pytest.raises(lamo.InputError, match="expected a run folder"):
        checkpoint.history


def test_runs_are_compared(data, run):
    other = lamo.train(data, "fno", epochs=1, out="fno", model__settings__width=8, train__rate=0.0007)
    comparison = lamo.compare([run, other.path])
    assert comparison.columns["model"] == ["lamo", "fno"] and comparison.same_test
    assert comparison.picture.data.startswith(PNG) and "<table>" in comparison._repr_html_()
    assert "fno" in repr(comparison)
    assert comparison.differences["train.rate"][1] == "0.0007" and "train.epochs" not in comparison.differences
    assert "trained differently: " in repr(comparison) and "0.0007" in comparison._repr_html_()
    with pytest.raises(lamo.MissingError):
        lamo.compare(["nowhere"])
    with pytest.raises(lamo.InputError):
        lamo.compare([])


def test_a_sample_is_explained(run):
    page = run.explain(1, out="explained")
    assert page.path.is_file() and page.numbers["sample"] == 1
    with pytest.raises(lamo.MissingError, match="0 to 3"):
        run.explain(99, out="explained")


def test_models_and_benchmarks_are_listed():
    assert {"lamo", "fno", "transolver"} <= set(lamo.models()) and "settings" in lamo.models()["lamo"]
    assert "darcy" in lamo.benchmarks() and "darcy" in repr(lamo.benchmarks())


def test_a_pretrained_model_comes_along():
    model = lamo.pretrained("darcy")
    assert model.error is not None and 0 < model.error < 0.01
    assert model.model == "lamo" and "permeability -> pressure" in repr(model)
    assert "mach" in repr(lamo.pretrained("airfoil"))
    with pytest.raises(lamo.MissingError, match="no pretrained model of pipe"):
        lamo.pretrained("pipe")
    open("darcy", "w").close()
    with pytest.raises(lamo.ConflictError, match="lamo.load"):
        lamo.pretrained("darcy")


def test_what_does_not_exist_is_missing(run):
    with pytest.raises(lamo.MissingError, match="found nothing"):
        lamo.load("nowhere")
    with pytest.raises(lamo.MissingError, match="did you mean darcy"):
        lamo.train("darci")
