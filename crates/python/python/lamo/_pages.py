"""Pages and pictures that a notebook shows: reports, explanations, comparisons, lists."""

from __future__ import annotations

import base64
import html
import webbrowser
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence


class Picture:
    """A PNG picture."""

    def __init__(self, data: bytes, name: str) -> None:
        self.data = data
        """The bytes of the file."""
        self.name = name

    def save(self, path: str) -> None:
        """Writes the file."""
        Path(path).write_bytes(self.data)

    def _repr_png_(self) -> bytes:
        return self.data

    def __repr__(self) -> str:
        return f"Picture({self.name}, {len(self.data)} bytes)"


class Page:
    """A page of HTML that needs no network. A notebook shows it; `open()` shows it in the browser."""

    def __init__(self, path: Path, title: str, numbers: Optional[Dict[str, Any]] = None) -> None:
        self.path = path
        """The file."""
        self.title = title
        self.numbers: Dict[str, Any] = numbers or {}
        """The numbers of the page."""

    @property
    def pictures(self) -> Dict[str, Picture]:
        """The pictures beside the page by their names: best, median, worst, ..."""
        files = sorted((self.path.parent / "pictures").glob("*.png"))
        return {file.stem: Picture(file.read_bytes(), file.stem) for file in files}

    def open(self) -> bool:
        """Opens the page in the browser of this machine."""
        return webbrowser.open(self.path.absolute().as_uri())

    def _repr_html_(self) -> str:
        text = html.escape(self.path.read_text(encoding="utf-8"), quote=True)
        return f'<iframe srcdoc="{text}" style="width:100%;height:42em;border:0" title="{html.escape(self.title)}"></iframe>'

    def __repr__(self) -> str:
        return f"Page({self.title}: {str(self.path)!r})"


class Comparison:
    """Runs side by side."""

    def __init__(self, numbers: Dict[str, Any], picture: Optional[bytes]) -> None:
        self.runs: List[Dict[str, Any]] = numbers["runs"]
        """A dictionary for each run."""
        self.metric: str = numbers["metric"]
        """What `error` is."""
        self.same_test: bool = numbers["same_test"]
        """Whether all runs were evaluated on the same test samples; else their errors cannot be compared."""
        self.differences: Dict[str, List[str]] = {row["key"]: row["values"] for row in numbers["differences"]}
        """Keys of the training with which the runs differ, besides epochs, and the value of each run."""
        self.picture: Optional[Picture] = None if picture is None else Picture(picture, "comparison")

    @property
    def columns(self) -> Dict[str, List[Any]]:
        """The same by columns, as pandas takes them."""
        return {key: [run[key] for run in self.runs] for key in (self.runs[0] if self.runs else {})}

    def _cells(self) -> List[List[str]]:
        head = ["run", "model", "error", "median", "worst", "parameters", "epochs", "seconds"]
        rows = [
            [
                run["run"], run["model"], *(f"{100 * run[key]:.2f} %" for key in ("error", "median", "worst")),
                f"{run['parameters']:,}", str(run["epochs"]), f"{run['training_seconds']:.0f}",
            ]
            for run in self.runs
        ]
        return [head, *rows]

    def _repr_html_(self) -> str:
        image = ""
        if self.picture is not None:
            image = f'<img alt="the runs as bars" src="data:image/png;base64,{base64.b64encode(self.picture.data).decode()}">'
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self._notes())
        return table(self._cells()) + notes + image

    def _notes(self) -> List[str]:
        notes = []
        if self.differences:
            notes.append("trained differently: " + "; ".join(f"{key} {', '.join(row)}" for key, row in self.differences.items()))
        if not self.same_test:
            notes.append("the runs were evaluated on different test samples; their errors cannot be compared")
        return notes

    def __repr__(self) -> str:
        return "\n".join([aligned(self._cells()), *self._notes()])


class Listing(Dict[str, Dict[str, Any]]):
    """Names with what is known about each; prints as a table of names and summaries."""

    def _repr_html_(self) -> str:
        return table([["name", "summary"], *([name, row["summary"]] for name, row in self.items())])

    def __repr__(self) -> str:
        return aligned([[name, row["summary"]] for name, row in self.items()])


def table(rows: List[List[str]]) -> str:
    """A table of HTML whose first row is the head."""
    lines = [
        "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row) + "</tr>"
        for row, tag in zip(rows, ["th"] + ["td"] * len(rows))
    ]
    return f"<table>{''.join(lines)}</table>"


def aligned(rows: List[List[str]]) -> str:
    """A table of text."""
    if not rows:
        return ""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def percent(number: Optional[float]) -> str:
    """An error in percent."""
    return "unknown" if number is None else f"{100 * number:.2f} %"


def fields(entries: Sequence[Mapping[str, Any]]) -> str:
    """Names of fields in words."""
    return " and ".join(str(entry["name"]) for entry in entries)
