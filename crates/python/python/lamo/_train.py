"""Trainings."""

from __future__ import annotations

import json
from typing import Any, Dict, Optional, Union

from . import _lamo
from ._dataset import Dataset, Path_, changes
from ._errors import InputError, Interrupted
from ._progress import Progress, listener
from ._run import Run


def train(
    data: Union[Dataset, Path_, None] = None,
    model: Optional[str] = None,
    *,
    device: Optional[str] = None,
    epochs: Optional[int] = None,
    minutes: Optional[float] = None,
    preset: Optional[str] = None,
    seed: Optional[int] = None,
    init: Union[Run, Path_, None] = None,
    out: Optional[Path_] = None,
    resume: Union[Run, Path_, None] = None,
    save_every: float = 60.0,
    progress: Progress = None,
    **settings: object,
) -> Run:
    """Trains a model, evaluates it and writes its report, as `lamo train` does with the same bits.

    Ctrl-C stops the training after the step, saves it and raises `lamo.Interrupted`, which has the saved run:
    `lamo.train(resume=error.run)` continues it to the same bits.

    Args:
        data: a `Dataset`, the folder of one, the name of a benchmark such as "darcy", whose data are made, or an experiment file.
        model: name of the model; `lamo.models()` lists them. LaMO unless given, and FNO on lines of your own data.
        device: "cpu", "cuda", "cuda:1"; a resumed run continues on its own unless given.
        epochs: passes over the training samples; they follow from the sizes of the data unless given.
        minutes: time that the training may take, in place of epochs.
        preset: "quick" (minutes on two cores), "paper" (the authors' recipe) or "best" (ours).
        seed: seed of the first parameters and of the order of the samples.
        init: a run or model to start from.
        out: the run folder; `runs/NAME-MODEL-N` unless given.
        resume: a run to continue.
        save_every: seconds between checkpoints.
        progress: whether to show progress, or a function that is called with each event as a dictionary.
        settings: any key of the experiment, with two underscores for each dot: `train__rate=1e-3`,
            `model__settings__width=64`. `lamo train --keys` and docs/keys.md explain all of them.
    """
    if resume is not None:
        given = {
            "data": data, "model": model, "epochs": epochs, "minutes": minutes, "preset": preset, "seed": seed, "init": init,
            "out": out, **settings,
        }
        beside = [name for name, value in given.items() if value is not None and name != "data"]
        if beside:
            raise InputError(f"resume: expected device, data or progress beside it, found {', '.join(beside)}")
        moved = data.folder if isinstance(data, Dataset) else data
        with listener(progress) as listen:
            told = _lamo.resume(_path(resume), moved, device, save_every, listen)
        return _ended(json.loads(told))
    if data is None:
        raise InputError("train: expected data, a benchmark or resume=RUN, found none of them")
    what = str(data.folder) if isinstance(data, Dataset) else str(data)
    keys: Dict[str, object] = {"seed": seed, **settings, "train__epochs": epochs or settings.get("train__epochs")}
    start = None if init is None else _path(init)
    with listener(progress) as listen:
        told = _lamo.train(
            what, model, start, preset, None, device or "cpu", changes(keys), out, save_every, minutes, listen
        )
    return _ended(json.loads(told))


def _path(run: Union[Run, Path_]) -> Path_:
    return run.path if isinstance(run, Run) else run


def _ended(told: Dict[str, Any]) -> Run:
    """The run, or the interruption that has it."""
    if not told["interrupted"]:
        return Run(told["folder"])
    folder = told["folder"]
    interrupted = Interrupted(
        f"stopped and saved at step {told['step']} of {told['steps']}; resume with lamo.train(resume={folder!r})"
    )
    try:
        interrupted.run = Run(folder)
    except Exception:
        pass  # it was stopped before its first checkpoint; the folder resumes all the same
    raise interrupted
