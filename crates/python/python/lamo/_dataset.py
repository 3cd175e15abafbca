"""Data sets: folders of arrays with a description, made from arrays in memory, by a solver, or by the command."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
import numpy.typing as npt

from . import _lamo
from ._arrays import Array, Values, is_list_of_arrays, numbers, written
from ._errors import InputError, MissingError
from ._progress import Progress, listener

Path_ = Union[str, "os.PathLike[str]"]
#: `(rows, columns)`, `(rows, columns, layers)`, `(points,)`, or a text as for the command: "64x64", "line:512", "cloud".
Grid = Union[str, Sequence[int]]
_Kind = Tuple[str, List[int]]


class Dataset:
    """A data set: a folder with `dataset.toml` and one `.npy` array for each field.

    `Dataset.from_arrays`, `Dataset.from_folder` and `lamo.make` give one. `data["name"]` is the array of a field.
    """

    def __init__(self, folder: Path_) -> None:
        """Opens a folder that `lamo` made."""
        described = json.loads(_lamo.describe_dataset(folder))
        self.folder: Path = Path(folder).absolute()
        """Where it is."""
        self.manifest: Dict[str, Any] = described["manifest"]
        """The contents of `dataset.toml`."""
        self.train: npt.NDArray[np.int64] = np.asarray(described["train"], dtype=np.int64)
        """Numbers of the samples to train on."""
        self.test: npt.NDArray[np.int64] = np.asarray(described["test"], dtype=np.int64)
        """Numbers of the samples to test on."""

    @classmethod
    def from_folder(cls, folder: Path_) -> Dataset:
        """Opens the folder of a data set that `lamo data make`, `lamo data import` or this module made."""
        return cls(folder)

    @classmethod
    def from_arrays(
        cls,
        inputs: Union[Values, Mapping[str, Values], None] = None,
        outputs: Union[Values, Mapping[str, Values], None] = None,
        *,
        positions: Optional[Values] = None,
        grid: Optional[Grid] = None,
        times: Optional[npt.ArrayLike] = None,
        window: Optional[int] = None,
        horizon: Optional[int] = None,
        step: int = 1,
        units: Optional[Mapping[str, str]] = None,
        axes: Optional[Mapping[str, str]] = None,
        raw: Sequence[str] = (),
        train: Optional[int] = None,
        test: Optional[int] = None,
        seed: Optional[int] = None,
        ordered: bool = False,
        name: Optional[str] = None,
        out: Optional[Path_] = None,
        progress: Progress = None,
    ) -> Dataset:
        """Makes a data set from arrays, as `lamo data import` makes one from files.

        The first axis of an array is that of the samples. Values of any real type become float32; NaN, infinity and masked values are refused.

        Args:
            inputs: what is given: an array, or a dictionary of arrays by their names. A list of arrays has one for each sample.
            outputs: what a model learns, in the same forms.
            positions: where the points are, `[points, dimensions]` for all samples or `[samples, points, dimensions]`; a list of arrays
                where each sample has its own number of points.
            grid: `(rows, columns)`, `(rows, columns, layers)`, `(points,)` or "cloud". Without it, arrays of two axes are lines,
                arrays of three axes planes, and arrays with positions clouds.
            times: the times of the snapshots of a time series.
            window: cuts time series into samples: snapshots that are given; `horizon` snapshots are then predicted, and samples begin
                `step` snapshots apart.
            units: the unit of a field by its name.
            axes: a letter for each axis of a field's array, where they are not found by the shape: n samples, t snapshots, x rows, y
                columns, z layers, p points, c channels, 1 an axis of length 1.
            raw: names of fields that are not normalised.
            train: number of samples to train on.
            test: number of samples to test on, a sixth unless given. The samples are drawn with `seed`, or are the first and the last
                with `ordered`.
            name: name of the data; that of the folder `out`, or "arrays", unless given.
            out: the folder to make. Without it the data set is kept in the cache (`~/.cache/lamo` or `$LAMO_CACHE`), once for the
                same arrays, so that a run on it can be resumed and evaluated later.
            progress: whether to show progress.
        """
        given = {"inputs": _named("input", inputs), "outputs": _named("output", outputs)}
        if not given["outputs"]:
            raise InputError("outputs: expected at least one array, found none")
        unknown = set(units or {}) | set(axes or {}) | set(raw)
        unknown -= {"positions", *given["inputs"], *given["outputs"]}
        if unknown:
            known = ", ".join([*given["inputs"], *given["outputs"]])
            raise InputError(f"units, axes and raw: expected names among {known}, found {', '.join(sorted(unknown))}")
        if (window is None) != (horizon is None):
            raise InputError("window and horizon: expected both or none, found one of them")
        fields = {**given["inputs"], **given["outputs"]}
        kind, extents, ragged = _grid(grid, positions, fields, plain=times is None and window is None)
        target = None if out is None else Path(out)
        name = name or (target.name if target else "arrays")
        scratch = _scratch(target)
        try:
            files: List[Tuple[str, str, str, bool, Optional[str], List[Path]]] = []
            roles: List[Tuple[str, str, Any]] = [] if positions is None else [("position", "positions", positions)]
            roles += [("input", field, values) for field, values in given["inputs"].items()]
            roles += [("output", field, values) for field, values in given["outputs"].items()]
            for role, field, values in roles:
                paths = _files(scratch, field, values)
                normalised = role != "position" and field not in raw
                files.append((field, role, (units or {}).get(field, "1"), normalised, (axes or {}).get(field), paths))
            clock = None if times is None else written(scratch, "times", times)
            windows = None if window is None or horizon is None else (window, horizon, step)
            made = target or scratch / "data"
            with listener(progress) as listen:
                sizes = (train, test, seed, ordered)
                _lamo.import_files(name, (kind, extents, ragged), files, clock, windows, sizes, made, listen)
            return cls(made if target else _kept(made, name))
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    @property
    def name(self) -> str:
        """Name of the problem, or of your data."""
        return str(self.manifest["problem"])

    @property
    def fields(self) -> List[str]:
        """Names of its fields."""
        return [field["name"] for field in self.manifest["fields"]]

    @property
    def grid(self) -> Dict[str, Any]:
        """The grid: its kind and its extents."""
        return dict(self.manifest["grid"])

    def __len__(self) -> int:
        return int(self.manifest["samples"])

    def __getitem__(self, field: str) -> Array:
        """The array of a field, `[samples, ...]`, mapped from its file without a copy. Samples with different numbers of points stand
        one after the other."""
        for entry in self.manifest["fields"]:
            if entry["name"] == field:
                array: Array = np.load(self.folder / entry["file"], mmap_mode="r")
                return array
        raise MissingError(f"{self.folder}: expected one of the fields {', '.join(self.fields)}, found `{field}`")

    def check(self) -> Dict[str, Dict[str, float]]:
        """Verifies the hashes, refuses values that are not finite, and gives the range, mean and deviation of each field."""
        found = json.loads(_lamo.check_dataset(self.folder))
        return {field.pop("name"): field for field in found}

    def __repr__(self) -> str:
        fields = ", ".join(
            f"{field['name']} {'x'.join(map(str, field['shape'])) or 'number'}" for field in self.manifest["fields"]
        )
        split = f"{len(self.train)} to train, {len(self.test)} to test"
        return f"Dataset({shown(self.folder)!r}: {self.name}, {len(self)} samples ({split}), {fields})"


def make(
    problem: str,
    samples: int,
    *,
    seed: int = 0,
    out: Optional[Path_] = None,
    progress: Progress = None,
    **parameters: object,
) -> Dataset:
    """Makes a data set with a verified solver, as `lamo data make` does.

    Args:
        problem: "darcy", "navier-stokes", "burgers", ...; `lamo.benchmarks()` names most of them.
        samples: number of samples.
        seed: seed of the sequence of samples.
        out: the folder to make; a folder in the cache unless given. Data that exist already are not made again.
        progress: whether to show progress.
        parameters: settings of the problem, such as `resolution=32`.
    """
    with listener(progress) as listen:
        folder = _lamo.make(problem, changes(parameters), seed, samples, None if out is None else Path(out), listen)
    return Dataset(folder)


def changes(settings: Mapping[str, object]) -> List[str]:
    """Settings as the library takes them: `train__rate=1e-3` is `train.rate=0.001`."""
    return [f"{key.replace('__', '.')}={_toml(key, value)}" for key, value in settings.items() if value is not None]


def _toml(key: str, value: object) -> str:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (str, os.PathLike)):
        return json.dumps(os.fspath(value))
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(key, item) for item in value) + "]"
    raise InputError(f"{key}: expected a number, a text, True, False or a list of them, found {type(value).__name__}")


def shown(path: Path) -> str:
    """A path as a person reads it: from the current folder or the home folder on, if it lies there."""
    for start, sign in ((Path.cwd(), ""), (Path.home(), "~/")):
        try:
            return sign + str(path.relative_to(start))
        except ValueError:
            continue
    return str(path)


def _named(name: str, values: Any) -> Dict[str, Any]:
    """The arrays by their names; one array alone is called input or output."""
    if values is None:
        return {}
    return dict(values) if isinstance(values, Mapping) else {name: values}


def _shape(name: str, values: Any) -> Tuple[int, ...]:
    """The shape of an array, or of a list of arrays that are one sample each."""
    if is_list_of_arrays(values):
        return (len(values), *numbers(name, values[0]).shape)
    return numbers(name, values).shape


def _grid(grid: Any, positions: Any, fields: Mapping[str, Any], plain: bool) -> Tuple[str, List[int], List[int]]:
    """The kind of the grid, its extents, and the points of each sample where they differ."""
    sizes: List[int] = []
    if is_list_of_arrays(positions):
        sizes = [numbers("positions", sample).shape[0] for sample in positions]
    if grid is None:
        grid = "cloud" if positions is not None else _lattice(fields, plain)
    if not isinstance(grid, str):
        kinds = {1: "line", 2: "plane", 3: "volume"}
        extents = [int(extent) for extent in grid]
        if len(extents) not in kinds:
            raise InputError(f"grid: expected one to three extents, such as (64, 64), found {len(extents)}")
        return kinds[len(extents)], extents, []
    kind, _, count = grid.partition(":")
    if kind in ("line", "cloud"):
        if kind == "cloud" and sizes and not count:
            differ = len(set(sizes)) > 1
            return kind, [max(sizes)], sizes if differ else []
        if not count and positions is None:
            raise InputError(f"grid: expected {kind}:POINTS without positions, found `{grid}`")
        shape = _shape("positions", positions) if positions is not None else (0, 0)
        points = shape[-2] if len(shape) > 1 else shape[0]
        return kind, [_whole(count) if count else points], []
    extents = [_whole(part) for part in grid.split("x")]
    if len(extents) not in (2, 3):
        raise InputError(f"grid: expected 64x64, 32x32x32, line:512 or cloud, found `{grid}`")
    return "plane" if len(extents) == 2 else "volume", extents, []


def _whole(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise InputError(f"grid: expected a number of points such as 64, found `{text}`")
    return int(text)


def _lattice(fields: Mapping[str, Any], plain: bool) -> List[int]:
    """The regular grid of arrays without positions: that of the array with the most axes, whose first axis is that of the samples."""
    shapes = {name: _shape(name, values) for name, values in fields.items()}
    name, shape = max(shapes.items(), key=lambda item: len(item[1]))
    if plain and len(shape) in (2, 3):
        return list(shape[1:])
    raise InputError(
        f"grid: expected the extents of the points, such as grid=(64, 64), because the shape {list(shape)} of `{name}` does not "
        "tell them; found none"
    )


def _files(folder: Path, name: str, values: Any) -> List[Path]:
    """The npy files of a field: one, or one for each sample of a list."""
    if not name or not all(letter.isalnum() or letter in "_-" for letter in name):
        raise InputError(f"field `{name}`: expected a name of small letters, digits, _ and -")
    if is_list_of_arrays(values):
        return [written(folder, f"{name}_{number}", sample) for number, sample in enumerate(values)]
    return [written(folder, name, values)]


def _scratch(target: Optional[Path]) -> Path:
    """A folder for files on their way, on the disk of the data set."""
    place = target.absolute().parent if target else _cache()
    place.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=".arrays-", dir=place))


def _cache() -> Path:
    folder = _lamo.cache_folder()
    if folder is None:
        raise MissingError(
            "the folder for data sets: expected one of LAMO_CACHE, XDG_CACHE_HOME or HOME, found none of them; give out=FOLDER"
        )
    return Path(folder)


def _kept(made: Path, name: str) -> Path:
    """Moves a data set to its place in the cache; equal data have one place."""
    mark = hashlib.sha256((made / "dataset.toml").read_bytes()).hexdigest()[:12]
    folder = _cache() / f"{name}-{mark}"
    try:
        made.rename(folder)
    except OSError:
        if not (folder / "dataset.toml").is_file():
            raise
    return folder
