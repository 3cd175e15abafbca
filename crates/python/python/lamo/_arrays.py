"""Arrays on their way to the library: as npy or npz files, in memory for predictions and on disk for data sets."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, Mapping, Sequence, Union

import numpy as np
import numpy.typing as npt

from ._errors import InputError

Array = npt.NDArray[np.float32]
#: One array of numbers, or a sequence of arrays: one for each sample, whose numbers of points may differ.
Values = Union[npt.ArrayLike, Sequence[npt.ArrayLike]]


def numbers(name: str, values: Any) -> npt.NDArray[Any]:
    """The values as an array of numbers. Arrays of NumPy are taken as they are, in either order in memory."""
    masked = _masked(values)
    if masked > 0:
        raise InputError(
            f"array `{name}`: expected a number in each place, found {masked} masked values; give numbers for them, such as "
            "values.filled(0.0)"
        )
    try:
        array = np.asarray(values)
    except (ValueError, TypeError) as problem:
        raise InputError(f"array `{name}`: expected numbers, found {type(values).__name__}: {problem}") from None
    if array.dtype.kind == "b":
        return array.astype(np.uint8)
    if array.dtype.kind not in "fiuc":
        raise InputError(f"array `{name}`: expected numbers, found {_kind(array)}")
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        return array.astype(np.float64)
    return array


def _masked(values: Any) -> int:
    """How many values are masked; NumPy would take what lies below the mask for numbers."""
    if isinstance(values, np.ma.MaskedArray):
        return int(np.ma.count_masked(values))
    return sum(map(_masked, values)) if isinstance(values, (list, tuple)) else 0


def _kind(array: npt.NDArray[Any]) -> str:
    if array.dtype.kind == "O":
        return "objects, such as arrays of different sizes"
    return "texts" if array.dtype.kind in "SU" else f"elements of type {array.dtype}"


def is_list_of_arrays(values: Any) -> bool:
    """Whether the values are a list with an array for each sample."""
    return isinstance(values, (list, tuple)) and len(values) > 0 and all(np.ndim(value) > 0 for value in values)


def packed(arrays: Mapping[str, Any]) -> bytes:
    """An npy file of the only array, or an npz file of several."""
    buffer = io.BytesIO()
    ready = {name: numbers(name, values) for name, values in arrays.items()}
    if len(ready) == 1:
        np.save(buffer, next(iter(ready.values())), allow_pickle=False)
    else:
        np.savez(buffer, **ready)  # type: ignore[arg-type]
    return buffer.getvalue()


def written(folder: Path, name: str, values: Any) -> Path:
    """An npy file of an array."""
    path = folder / f"{name}.npy"
    np.save(path, numbers(name, values), allow_pickle=False)
    return path
