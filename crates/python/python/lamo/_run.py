"""Runs: models that were trained, and what they predict."""

from __future__ import annotations

import importlib
import json
import warnings
from functools import cached_property
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union, cast, overload

import numpy as np
import numpy.typing as npt

from . import _lamo
from ._arrays import Array, Values, is_list_of_arrays, packed
from ._dataset import Dataset, Path_
from ._errors import ConflictError, InputError
from ._pages import Page, fields, percent
from ._progress import LamoWarning, Progress, listener

REPORT = "report.html"
RECEIPT = "receipt.json"


class Evaluation:
    """Errors of a model on test samples."""

    def __init__(self, receipt: Dict[str, Any], predictions: Dict[str, Array], truth: Dict[str, Array]) -> None:
        self.receipt = receipt
        """Everything that is needed to compute the numbers again, as in `receipt.json`."""
        self.predictions = predictions
        """Predictions of the test samples by output, `[samples, ...]`; empty where samples have different numbers of points."""
        self.truth = truth
        """What they should be."""

    @property
    def error(self) -> float:
        """The headline: the mean relative L2 error over the test samples; with several outputs, the mean over them."""
        numbers = self.receipt["evaluation"]
        return float(numbers.get("mean_of_outputs") or numbers["relative_l2"])

    @property
    def relative_l2(self) -> float:
        """The mean relative L2 error over the test samples, all outputs as one."""
        return float(self.receipt["evaluation"]["relative_l2"])

    @property
    def samples(self) -> Dict[str, npt.NDArray[Any]]:
        """Columns `sample` (its number in the data set) and `error`."""
        cases = self.receipt["evaluation"]["cases"]
        return {
            "sample": np.asarray([case["sample"] for case in cases], dtype=np.int64),
            "error": np.asarray([case["error"] for case in cases]),
        }

    @property
    def outputs(self) -> List[Dict[str, Any]]:
        """Errors of each output: relative L2, MAE, RMSE and largest error in its unit, R², ..."""
        return list(self.receipt["evaluation"].get("outputs", []))

    def __repr__(self) -> str:
        each = ", ".join(f"{row['name']} {percent(row['relative_l2'])}" for row in self.outputs)
        return f"Evaluation(error {percent(self.error)} on {len(self.samples['sample'])} test samples: {each})"


class Run:
    """A model that was trained: a run folder, a checkpoint, a model folder or a pretrained model.

    `lamo.train` and `lamo.load` give one. Several threads may predict with it at the same time.
    """

    def __init__(self, path: Path_) -> None:
        self.path: Path = Path(path)
        """Where it is; the name of a pretrained model."""
        self._model = _lamo.Model(self.path)
        self._about: Dict[str, Any] = json.loads(self._model.describe())

    @property
    def model(self) -> str:
        """Name of the model."""
        return str(self._about["model"])

    @property
    def settings(self) -> Dict[str, Any]:
        """Settings of the model."""
        return dict(self._about["settings"])

    @property
    def parameters(self) -> int:
        """How many numbers were learned."""
        return int(self._about["parameters"])

    @property
    def inputs(self) -> List[Dict[str, Any]]:
        """The fields that a prediction takes: name, unit, and the shape of one sample on the grid of the training."""
        return list(self._about["inputs"])

    @property
    def outputs(self) -> List[Dict[str, Any]]:
        """The fields that it predicts."""
        return list(self._about["outputs"])

    @property
    def grid(self) -> Dict[str, Any]:
        """The grid of the training: its kind and its extents."""
        return dict(self._about["grid"])

    @property
    def normalisers(self) -> Dict[str, Any]:
        """Mean and deviation of positions, inputs and outputs, channel by channel, where they are normalised."""
        return dict(self._about["normalisers"])

    @property
    def epoch(self) -> Optional[int]:
        """The epoch of the checkpoint that predicts."""
        return cast(Optional[int], self._about.get("training", {}).get("epoch"))

    @property
    def experiment(self) -> Dict[str, Any]:
        """Every key of its training with its value; empty for imported weights."""
        return dict(self._about.get("training", {}).get("experiment", {}))

    @property
    def history(self) -> Dict[str, npt.NDArray[Any]]:
        """The epochs by columns, as pandas takes them: epoch, step, train, validation, test, rate, seconds. NaN where an epoch was not
        tested."""
        lines: List[Dict[str, Any]] = json.loads(_lamo.history(self._folder("its history")))
        columns: Dict[str, npt.NDArray[Any]] = {
            key: np.asarray([line[key] for line in lines], dtype=np.int64) for key in ("epoch", "step")
        }
        for key in ("train", "validation", "test", "rate", "seconds"):
            values = [line.get(key) for line in lines]
            columns[key] = np.asarray([np.nan if value is None else value for value in values], dtype=np.float64)
        return columns

    @property
    def receipt(self) -> Optional[Dict[str, Any]]:
        """The receipt of its last report, or that of a pretrained model; `None` where it has none of these weights."""
        file = self.path / RECEIPT
        if file.is_file():
            text: Optional[str] = file.read_text(encoding="utf-8")
        else:
            text = None if self.path.exists() else _lamo.pretrained_receipt(str(self.path))
        if text is None:
            return None
        receipt = cast(Dict[str, Any], json.loads(text))
        return receipt if receipt["hashes"]["weights"] == self._weights else None

    @cached_property
    def _weights(self) -> str:
        """The SHA-256 of the weights, as receipts have it."""
        return self._model.weights_sha256()

    @property
    def error(self) -> Optional[float]:
        """The error on the test samples by its last report, if it has one."""
        receipt = self.receipt
        return None if receipt is None else Evaluation(receipt, {}, {}).error

    @overload
    def predict(
        self, inputs: Mapping[str, Values], *, device: str = ..., frames: Optional[int] = ..., symmetries: bool = ...,
        memory: Optional[int] = ...,
    ) -> Dict[str, Array]: ...
    @overload
    def predict(
        self, inputs: npt.NDArray[Any], *, device: str = ..., frames: Optional[int] = ..., symmetries: bool = ...,
        memory: Optional[int] = ...,
    ) -> Array: ...
    @overload
    def predict(
        self, inputs: Sequence[npt.NDArray[Any]], *, device: str = ..., frames: Optional[int] = ..., symmetries: bool = ...,
        memory: Optional[int] = ...,
    ) -> List[Array]: ...
    @overload
    def predict(
        self, inputs: Sequence[Mapping[str, npt.ArrayLike]], *, device: str = ..., frames: Optional[int] = ...,
        symmetries: bool = ..., memory: Optional[int] = ...,
    ) -> List[Dict[str, Array]]: ...

    def predict(
        self,
        inputs: Any,
        *,
        device: str = "cpu",
        frames: Optional[int] = None,
        symmetries: bool = False,
        memory: Optional[int] = None,
    ) -> Any:
        """Predicts, to the bit as `lamo predict` does.

        An array gives an array, a dictionary of arrays by field a dictionary. Arrays have the axes of the data set, with or without an
        axis of samples before them: float32, or any other type of real numbers, which is converted. A list has a sample in each
        element, whose numbers of points may differ; it gives a list.

        The input is copied on its way into the program; the prediction is handed over without a copy. The interpreter lock is free
        meanwhile. The first call on a grid compiles the model, later ones do not.

        Args:
            inputs: one array, a dictionary of them, or a list of samples.
            device: "cpu", "cuda", "cuda:1".
            frames: snapshots to continue a time series by; as many as in training unless given.
            symmetries: whether to take the mean over the symmetries of the problem.
            memory: bytes that a prediction on a cloud may take: its points then come in pieces.

        A grid that is not that of the training, and a time series of which only the last snapshots are used, are warned about
        (`LamoWarning`).
        """
        samples, form = self._samples(inputs)
        found, notes = self._model.predict([packed(sample) for sample in samples], frames, symmetries, memory, device)
        for note in notes:
            warnings.warn(note, LamoWarning, stacklevel=2)
        each = [dict(arrays) for arrays in found]
        if form == "array":
            return next(iter(each[0].values()))
        if form == "list of arrays":
            return [next(iter(arrays.values())) for arrays in each]
        return each[0] if form == "dictionary" else each

    def _samples(self, inputs: Any) -> Tuple[List[Dict[str, Any]], str]:
        """The arrays of each file, and the form of the answer."""
        cloud = self.grid["kind"] == "cloud"
        if isinstance(inputs, Mapping):
            return [self._fields(inputs)], "dictionary"
        if cloud and isinstance(inputs, (list, tuple)) and inputs and all(isinstance(one, Mapping) for one in inputs):
            return [self._fields(one) for one in inputs], "list of dictionaries"
        if cloud and is_list_of_arrays(inputs) and len({np.shape(one) for one in inputs}) > 1:
            return [self._only(one) for one in inputs], "list of arrays"
        return [self._only(inputs)], "array"

    def _only(self, array: Any) -> Dict[str, Any]:
        """The array of the only input of a model with one output."""
        for words, entries in (("input", self.inputs), ("output", self.outputs)):
            if len(entries) != 1:
                raise InputError(
                    f"predict: expected a dictionary of arrays by name, as the model has the {words}s {fields(entries)}; found one array"
                )
        return {self.inputs[0]["name"]: array}

    def _fields(self, arrays: Mapping[str, Any]) -> Dict[str, Any]:
        """The arrays by field, each of which the model must know."""
        known = [entry["name"] for entry in self.inputs]
        unknown = [name for name in arrays if name not in known]
        missing = [name for name in known if name not in arrays]
        if unknown or missing:
            found = ", ".join(map(str, arrays)) or "none"
            raise InputError(f"predict: expected the inputs {', '.join(known)}, found {found}")
        return dict(arrays)

    def evaluate(
        self,
        data: Union[Dataset, Path_, None] = None,
        *,
        device: str = "cpu",
        symmetries: bool = False,
        progress: Progress = None,
    ) -> Evaluation:
        """Predicts the test samples of the run, or of other data, and measures the errors. Nothing is written; `report` writes.

        Args:
            data: a data set in place of the run's own; a pretrained model and imported weights need one.
            device: where to compute.
            symmetries: whether a prediction is the mean over the symmetries of the problem.
            progress: whether to show progress where data are made again.
        """
        return self._evaluate(data, device, symmetries, None, progress)

    def _evaluate(self, data: Any, device: str, symmetries: bool, out: Optional[Path], progress: Progress) -> Evaluation:
        with listener(progress) as listen:
            text, predictions, truth = _lamo.evaluate(self.path, _folder(data), symmetries, device, out, listen)
        return Evaluation(json.loads(text), dict(predictions), dict(truth))

    def report(
        self,
        data: Union[Dataset, Path_, None] = None,
        *,
        device: str = "cpu",
        symmetries: bool = False,
        out: Optional[Path_] = None,
        progress: Progress = None,
    ) -> Page:
        """The report of the run with pictures: a page that a notebook shows.

        A run that has ended has its report already. Otherwise the run is evaluated, and the page, its pictures and the receipt are
        written into the run folder, or into `out` where the data are others or the model has no folder.
        """
        own = data is None and _lamo.is_run(self.path)
        plain = own and out is None and not symmetries
        folder = Path(out) if out is not None else self.path
        if not own and out is None:
            raise InputError("report: expected a folder for the page, found none; give out=FOLDER")
        if not (own and folder == self.path) and any(
            (folder / name).is_file() for name in ("experiment.toml", "dataset.toml")
        ):
            raise ConflictError(f"{folder}: expected a folder of its own for the page, found a run or a data set")
        receipt = self.receipt if plain else None
        if receipt is None or "symmetries" in receipt or not (folder / REPORT).is_file():
            receipt = self._evaluate(data, device, symmetries, folder, progress).receipt
        return Page(folder / REPORT, f"{self.model}, error {percent(Evaluation(receipt, {}, {}).error)}", receipt)

    def explain(
        self,
        sample: int = 0,
        *,
        point: Optional[int] = None,
        channel: int = 0,
        data: Union[Dataset, Path_, None] = None,
        device: str = "cpu",
        out: Optional[Path_] = None,
        progress: Progress = None,
    ) -> Page:
        """Shows what the model does with a test sample: hidden matrices, tokens, errors by region, influences on one output.

        The page, its numbers (`.numbers`) and arrays are written into the folder `explain` of the run, or into `out`.
        """
        if out is None:
            out = self._folder("the page; give out=FOLDER") / "explain"
        with listener(progress) as listen:
            path, text = _lamo.explain(self.path, _folder(data), sample, point, channel, device, Path(out), listen)
        return Page(Path(path), f"{self.model}, test sample {sample}", json.loads(text))

    def to_torch(self, *, tensors: bool = False) -> Dict[str, Any]:
        """Weights under the names of the authors' code, each a copy: arrays of NumPy, or tensors of torch with `tensors=True`."""
        weights: Dict[str, Any] = dict(self._model.weights())
        if not tensors:
            return weights
        try:
            torch = importlib.import_module("torch")
        except ImportError:
            raise InputError("to_torch: expected torch for tensors=True, found none; pip install torch") from None
        return {name: torch.from_numpy(array) for name, array in weights.items()}

    def _folder(self, what: str) -> Path:
        if not _lamo.is_run(self.path):
            raise InputError(f"{self.path}: expected a run folder for {what}, found a model without one")
        return self.path

    def __reduce__(self) -> Any:
        path = self.path.absolute() if self.path.exists() else self.path
        return Run, (path,)

    def __repr__(self) -> str:
        epoch = "" if self.epoch is None else f", epoch {self.epoch}"
        error = "" if self.error is None else f", error {percent(self.error)}"
        axes = ("points", "rows", "columns", "layers")
        extents = "x".join(str(self.grid[axis]) for axis in axes if axis in self.grid)
        maps = f"{fields(self.inputs)} -> {fields(self.outputs)} on a {self.grid['kind']} of {extents}"
        return f"Run({str(self.path)!r}: {self.model}, {self.parameters:,} parameters, {maps}{epoch}{error})"


def _folder(data: Union[Dataset, Path_, None]) -> Optional[Path]:
    if data is None:
        return None
    return data.folder if isinstance(data, Dataset) else Path(data)
