"""Points of a sweep on the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _dovetail
from ._optional import needed

if TYPE_CHECKING:
    import distributed

# tasks that the scheduler knows for each thread of a worker (assumed): enough that none waits for the
# client, few enough that a sweep of any size takes little of the scheduler's memory
TASKS_PER_THREAD = 4
# threads that are counted on before workers have come (assumed)
THREADS_AT_FIRST = 64


def perform(
    sweep: _dovetail.Sweep,
    folder: Path,
    client: distributed.Client,
    retry_failed: bool,
    tell: Callable[[str, str, float, int], object] | None,
) -> None:
    """Performs the points that are missing; keeps each result as soon as it is there.

    A worker that is lost has its points done again by others. A point that has taken several workers
    with it is a failed one.
    """
    as_completed = needed("distributed", "cluster").as_completed
    KilledWorker = needed("distributed.scheduler", "cluster").KilledWorker

    points = sweep.waiting(retry_failed)
    total = sweep.of_shard()
    done = total - len(points)
    waiting = iter(points)
    numbers: dict[Any, int] = {}
    pending = as_completed()

    def submit_more() -> None:
        # workers come and go: as many points as those that are there now can take
        while len(numbers) < TASKS_PER_THREAD * _threads(client):
            point = next(waiting, None)
            if point is None:
                return
            number, _ = point
            # its own key: one that was computed before must not stand for it
            key = _key(folder, number)
            future = client.submit(run_point, sweep.task(number), pure=False, key=key)
            numbers[future] = number
            pending.add(future)

    try:
        submit_more()
        for future in pending:
            number = numbers.pop(future)
            error = future.exception()
            if isinstance(error, KilledWorker):
                record, whole = failure(number, error), None
            elif error is not None:
                # the workers are not fit for the sweep: the point is left to be done
                raise error
            else:
                record, whole = future.result()
            sweep.keep(record, whole)
            future.release()
            done += 1
            if tell is not None:
                tell("points", "run", done / total, done)
            submit_more()
    finally:
        for future in numbers:
            future.cancel()


def _threads(client: distributed.Client) -> int:
    return sum(client.nthreads().values()) or THREADS_AT_FIRST


def _key(folder: Path, number: int) -> str:
    import uuid

    return f"dovetail-point-{folder.name}-{number}-{uuid.uuid4().hex[:8]}"


def failure(number: int, error: BaseException) -> str:
    """The line of a point that was lost with its workers."""
    import json

    text = str(error).split("\n")[0]
    return json.dumps({"point": number, "error": f"{type(error).__name__}: {text}"})


def run_point(task: str) -> tuple[str, str | None]:
    """Performs a point, in a worker."""
    return _dovetail.perform_task(task)
