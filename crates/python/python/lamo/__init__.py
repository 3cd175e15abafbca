"""Neural operators: networks that learn the solution operator of a partial differential equation from examples.

    import lamo
    data = lamo.Dataset.from_arrays(permeability, pressure)     # [samples, rows, columns] each
    run = lamo.train(data, epochs=100)
    prediction = run.predict(new_permeability)

`lamo.train("darcy")` makes the data of a benchmark by itself, `lamo.pretrained("darcy")` needs no training. The same package has the
command `lamo` (`python -m lamo`), whose runs and data sets `lamo.load` and `lamo.Dataset.from_folder` open.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import List, Sequence, Union

from . import _lamo
from ._dataset import Dataset, Path_, make
from ._errors import (
    ConflictError,
    DeviceError,
    DivergedError,
    Error,
    FailedError,
    InputError,
    InternalError,
    Interrupted,
    MissingError,
    OutOfSpaceError,
)
from ._pages import Comparison, Listing, Page, Picture
from ._progress import LamoWarning
from ._run import Evaluation, Run
from ._train import train

__version__: str = _lamo.version()

__all__ = [
    "Comparison",
    "ConflictError",
    "Dataset",
    "DeviceError",
    "DivergedError",
    "Error",
    "Evaluation",
    "FailedError",
    "InputError",
    "InternalError",
    "Interrupted",
    "LamoWarning",
    "Listing",
    "MissingError",
    "OutOfSpaceError",
    "Page",
    "Picture",
    "Run",
    "__version__",
    "benchmarks",
    "compare",
    "load",
    "make",
    "models",
    "pretrained",
    "train",
]


def load(path: Path_) -> Run:
    """Opens a run folder, a checkpoint file, or a model folder made by `lamo import`."""
    if not Path(path).exists():
        raise MissingError(f"{path}: expected a run folder, a checkpoint or a model folder, found nothing")
    return Run(path)


def pretrained(name: str) -> Run:
    """A model that needs no training, by the name of its benchmark: one that comes with lamo, or `NAME.safetensors` in the folder that
    the variable `LAMO_MODELS` names."""
    if Path(name).exists():
        raise ConflictError(f"{name}: expected the name of a pretrained model, found a file or folder here; lamo.load opens it")
    return Run(name)


def compare(runs: Sequence[Union[Run, Path_]]) -> Comparison:
    """Compares evaluated runs: error, parameters, time and memory, as a table and a picture."""
    if not runs:
        raise InputError("compare: expected at least one run, found none")
    paths = [run.path if isinstance(run, Run) else Path(run) for run in runs]
    numbers, picture = _lamo.compare(paths)
    return Comparison(json.loads(numbers), picture)


def models() -> Listing:
    """The models by name: summary, paper, grids that they support, settings with their defaults."""
    return _listing("models")


def benchmarks() -> Listing:
    """The benchmarks by name, whose data `lamo.train(NAME)` makes."""
    return _listing("benchmarks")


_LISTED: List[str] = []
"""The registries, once they were asked for: counting the parameters of all experiments takes a moment."""


def _listing(kind: str) -> Listing:
    if not _LISTED:
        _LISTED.append(_lamo.listing())
    rows = json.loads(_LISTED[0])[kind]
    return Listing({row["name"]: row for row in rows})
