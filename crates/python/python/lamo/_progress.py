"""What a job shows while it runs: one line in a terminal, a bar in a notebook, nothing in a script."""

from __future__ import annotations

import html
import importlib
import json
import sys
import time
import warnings
from typing import Any, Callable, Dict, List, Optional, Union

#: `True`, `False`, a function that is called with each event as a dictionary, or `None`: where a person looks.
Progress = Union[bool, Callable[[Dict[str, Any]], object], None]

WIDTH = 24
"""Characters of the bar in a terminal."""


class LamoWarning(UserWarning):
    """Something that you should know about the data or the training."""


def listener(progress: Progress) -> "Listener":
    """The listener that `progress` asks for."""
    if callable(progress):
        return Listener(None, progress)
    if progress is False:
        return Listener(None, None)
    notebook = _notebook()
    if notebook is not None:
        return Listener(notebook, None)
    if progress or _is_terminal():
        return Listener(Terminal(), None)
    return Listener(None, None)


class Listener:
    """Receives the events of a job as texts of JSON, draws them, and repeats warnings as Python's."""

    def __init__(self, view: Optional["View"], function: Optional[Callable[[Dict[str, Any]], object]]) -> None:
        self.view = view
        self.function = function
        self.state = State()
        self.warnings: List[str] = []

    def __call__(self, text: str) -> None:
        event: Dict[str, Any] = json.loads(text)
        if event["event"] == "warning":
            self.warnings.append(event["message"])
        if self.function is not None:
            self.function(event)
        if self.view is not None:
            self.state.take(event)
            if self.state.is_worth_showing():
                self.view.draw(self.state)

    def __enter__(self) -> "Listener":
        return self

    def __exit__(self, *failure: object) -> None:
        """Ends the display, then warns."""
        if self.view is not None:
            self.view.close(self.state)
        for message in self.warnings:
            warnings.warn(message, LamoWarning, stacklevel=_outside())


class State:
    """What is known about a job."""

    def __init__(self) -> None:
        self.title = ""
        self.done = 0.0
        self.words = ""
        self.started = time.monotonic()
        self.errors: List[float] = []

    def take(self, event: Dict[str, Any]) -> None:
        """Takes an event in."""
        kind = event["event"]
        if kind == "making":
            self._count(f"making {event['problem']}", event["complete"], event["samples"], "samples")
        elif kind == "importing":
            self.title, self.done = "reading", event["done"] / max(event["total"], 1)
        elif kind == "model":
            self.title, self.done = f"training {event['model']}", 0.0
            self.words = f"{event['parameters']} parameters"
            self.started = time.monotonic()
        elif kind == "progress":
            self.done = event["step"] / max(event["steps"], 1)
            self.words = f"epoch {event['epoch']} of {event['epochs']}, loss {event['train']:.4g}{self._error()}"
        elif kind == "epoch":
            error = event.get("validation", event.get("test"))
            if error is not None:
                self.errors.append(error)

    def _error(self) -> str:
        return f", error {100 * self.errors[-1]:.2f} %" if self.errors else ""

    def _count(self, title: str, done: int, total: int, unit: str) -> None:
        if title != self.title:
            self.started = time.monotonic()
        self.title, self.done, self.words = title, done / max(total, 1), f"{done} of {total} {unit}"

    def is_worth_showing(self) -> bool:
        """Whether there is something to see: files that are read in a moment are not."""
        return self.title != "" and (self.words != "" or time.monotonic() - self.started > 1)

    def remaining(self) -> str:
        """The time that is left, if it can be told."""
        elapsed = time.monotonic() - self.started
        if self.done <= 0.02 or elapsed < 1 or self.done >= 1:
            return ""
        return f", {_duration(elapsed / self.done * (1 - self.done))} left"


class View:
    """Draws the state of a job."""

    def draw(self, state: State) -> None:
        """Draws the state again."""
        raise NotImplementedError

    def close(self, state: State) -> None:
        """Ends the display."""


class Terminal(View):
    """One line that is written again and again."""

    def __init__(self) -> None:
        self.length = 0

    def draw(self, state: State) -> None:
        full = int(WIDTH * state.done)
        bar = "#" * full + "-" * (WIDTH - full)
        line = f"{state.title} [{bar}] {state.words}{state.remaining()}"
        sys.stderr.write("\r" + line.ljust(self.length))
        sys.stderr.flush()
        self.length = len(line)

    def close(self, state: State) -> None:
        if self.length:
            sys.stderr.write("\r" + " " * self.length + "\r")
            sys.stderr.flush()


class Notebook(View):
    """A bar that the notebook draws, with the text beside it."""

    def __init__(self, display: Callable[..., Any]) -> None:
        self.display = display
        self.handle: Any = None

    def draw(self, state: State) -> None:
        if self.handle is None:
            self.handle = self.display({"text/html": "", "text/plain": ""}, raw=True, display_id=True)
        words = html.escape(f"{state.title}: {state.words}{state.remaining()}")
        bar = f'<progress value="{state.done:.4f}" max="1" style="width:16em"></progress> {words}'
        self.handle.update({"text/html": bar, "text/plain": html.unescape(words)}, raw=True)

    def close(self, state: State) -> None:
        if self.handle is None:
            return
        words = f"{state.title}: {state.words}, {_duration(time.monotonic() - state.started)}"
        self.handle.update({"text/html": html.escape(words), "text/plain": words}, raw=True)


def _notebook() -> Optional[Notebook]:
    """The view of a notebook, where there is one."""
    if "IPython" not in sys.modules:
        return None
    try:
        shell = importlib.import_module("IPython").get_ipython()
        display = importlib.import_module("IPython.display").display
    except (ImportError, AttributeError):
        return None
    return Notebook(display) if type(shell).__name__ == "ZMQInteractiveShell" else None


def _outside() -> int:
    """How many frames above its caller the code begins that called lamo."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "lamo":
        frame, level = frame.f_back, level + 1
    return level


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
