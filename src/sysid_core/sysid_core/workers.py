# SPDX-License-Identifier: Apache-2.0
"""Where pieces of recordings are kept and worked on: here, in processes, on a Dask cluster."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from operator import itemgetter
from pathlib import Path
from typing import Any, Protocol, TypeVar

from sysid_core.errors import ParameterError
from sysid_core.pieces import Aligning, Piece, Span, align_source
from sysid_core.recordings import Source

__all__ = ["Workers", "workers"]

_Result = TypeVar("_Result")
_Overview = tuple[list[Span], tuple[str, ...]]
_PATIENCE = 10.0
"""Time [s] for a scheduler to answer: one that is there does so within milliseconds."""


class Workers(Protocol):
    """Keeps the pieces of recordings and maps functions over them, always in their order."""

    def align(self, how: Aligning, sources: Sequence[Source]) -> list[_Overview]:
        """Align recordings, keep their pieces alone, and return what these span, and warnings."""
        ...

    def map(self, task: Callable[[Piece], _Result]) -> Iterator[_Result]:
        """Yield what a task makes of each piece."""
        ...


class _Shelf:
    """Pieces in files, all but the first: most recordings have no other."""

    def __init__(self, folder: Path, name: str = "") -> None:
        self._folder, self._name = folder, name
        self.kept: list[Piece | Path] = []

    def keep(self, piece: Piece) -> None:
        """Put a piece away."""
        if not self.kept:
            self.kept.append(piece)
            return
        path = self._folder / f"{self._name}{len(self.kept)}"
        with path.open("wb") as file:
            pickle.dump(piece, file, protocol=pickle.HIGHEST_PROTOCOL)
        self.kept.append(path)


def _taken(kept: Piece | Path) -> Piece:
    if not isinstance(kept, Path):
        return kept
    with kept.open("rb") as file:
        piece: Piece = pickle.load(file)
    return piece


class _Here:
    """The calling process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def align(self, how: Aligning, sources: Sequence[Source]) -> list[_Overview]:
        self._shelf = _Shelf(self._folder)
        return [align_source(how, n, s, self._shelf.keep) for n, s in enumerate(sources)]

    def map(self, task: Callable[[Piece], _Result]) -> Iterator[_Result]:
        return (task(_taken(kept)) for kept in self._shelf.kept)


def _align_to_files(
    how: Aligning, number: int, source: Source, folder: Path
) -> tuple[_Overview, list[Piece | Path]]:
    shelf = _Shelf(folder, f"{number}-")
    return align_source(how, number, source, shelf.keep), shelf.kept


def _apply(task: Callable[[Piece], _Result], kept: Piece | Path) -> _Result:
    return task(_taken(kept))


class _Processes:
    """Processes of this machine: each reads whole recordings, all work on their pieces."""

    def __init__(self, pool: ProcessPoolExecutor, folder: Path) -> None:
        self._pool, self._folder = pool, folder
        self._kept: list[Piece | Path] = []

    def align(self, how: Aligning, sources: Sequence[Source]) -> list[_Overview]:
        futures = [
            self._pool.submit(_align_to_files, how, number, source, self._folder)
            for number, source in enumerate(sources)
        ]
        overviews = []
        self._kept = []
        for future in futures:
            overview, kept = future.result()
            overviews.append(overview)
            self._kept += kept
        return overviews

    def map(self, task: Callable[[Piece], _Result]) -> Iterator[_Result]:
        return self._pool.map(_apply, [task] * len(self._kept), self._kept)


def _align_to_list(how: Aligning, number: int, source: Source) -> tuple[_Overview, list[Piece]]:
    pieces: list[Piece] = []
    return align_source(how, number, source, pieces.append), pieces


def _apply_to_list(
    task: Callable[[Piece], _Result], aligned: tuple[_Overview, list[Piece]]
) -> list[_Result]:
    return [task(piece) for piece in aligned[1]]


class _Cluster:
    """Workers of a Dask cluster: each keeps the pieces of the recordings that it read."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._aligned: list[Any] = []

    def align(self, how: Aligning, sources: Sequence[Source]) -> list[_Overview]:
        submit = self._client.submit
        self._aligned = [
            submit(_align_to_list, how, number, source, pure=False)
            for number, source in enumerate(sources)
        ]
        overviews: list[_Overview] = self._client.gather(
            [submit(itemgetter(0), aligned, pure=False) for aligned in self._aligned]
        )
        return overviews

    def map(self, task: Callable[[Piece], _Result]) -> Iterator[_Result]:
        results = [
            self._client.submit(_apply_to_list, task, aligned, pure=False)
            for aligned in self._aligned
        ]
        for result in results:
            yield from result.result()


@contextmanager
def workers(processes: int = 1, scheduler: str | None = None) -> Iterator[Workers]:
    """Provide workers until the end of the block: processes of this machine, or Dask's.

    A Dask scheduler has an address, and workers that read the recordings by the same paths.

    Raises
    ------
    ParameterError
        If the scheduler does not answer, or Dask is not installed.
    """
    if processes < 1:
        raise ParameterError(f"workers must be at least 1, not {processes}")
    if scheduler is not None:
        with _client(scheduler) as client:
            yield _Cluster(client)
        return
    with tempfile.TemporaryDirectory(prefix="sysid-") as folder:
        if processes == 1:
            yield _Here(Path(folder))
            return
        with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
            yield _Processes(pool, Path(folder))


def _client(address: str) -> Any:
    try:
        from distributed import Client
    except ImportError as error:
        raise ParameterError(
            "a scheduler needs Dask, which is not installed; run "
            "'pip install \"sysid_core[dask]\"', or use --workers"
        ) from error
    try:
        connect: Any = Client
        return connect(address, timeout=_PATIENCE)
    except (OSError, ValueError, TypeError) as error:  # a timeout is an OSError, too
        raise ParameterError(
            f"no Dask scheduler answers at '{address}'; start one with 'dask scheduler', or use "
            "--workers"
        ) from error
