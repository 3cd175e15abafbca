"""Small data and a small trained run that the claims share."""

import os
import subprocess
import sys
import tempfile

os.environ["LAMO_CACHE"] = tempfile.mkdtemp(prefix="lamo-cache-")  # before lamo looks for it

import numpy as np
import pytest

import lamo

SMALL = dict(model__settings__width=16, model__settings__depth=1, seed=3)
"""A model that trains in a second."""


def pytest_configure(config):
    config.addinivalue_line("filterwarnings", "ignore::lamo.LamoWarning")  # a training of a second learns little


def waves(samples, shift, rows=8, columns=6):
    """Waves [samples, rows, columns], float32."""
    place = np.arange(samples * rows * columns).reshape(samples, rows, columns)
    return (1.5 + np.sin(0.7 * place + shift)).astype(np.float32)


def command(*arguments, folder=None):
    """Runs the command `lamo` of this package in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "lamo", *map(str, arguments)], cwd=folder, capture_output=True, text=True, timeout=300
    )


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """Each claim has a current folder of its own."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def arrays():
    return waves(24, 0.0), waves(24, 0.5)


@pytest.fixture(scope="session")
def data(arrays, tmp_path_factory):
    a, u = arrays
    return lamo.Dataset.from_arrays({"a": a}, {"u": u}, out=tmp_path_factory.mktemp("data") / "mine")


@pytest.fixture(scope="session")
def run(data, tmp_path_factory):
    return lamo.train(data, "lamo", epochs=2, out=tmp_path_factory.mktemp("runs") / "mine", **SMALL)
