"""Queries in this process: where many polls are made, children are most of their time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import Any
from unittest import mock

from gwmond.service.accounting import history_readers
from gwmond.sources import child, gather
from gwmond.sources.child import Usage
from gwmond.sources.gather import Gatherer


def in_this_process(task: Callable[..., Any], *args: Any, **_: object) -> tuple[Any, Usage]:
    """Run a query at once instead of ``child.run``: thousands of processes take long."""
    return task(*args), Usage(0.0, 0.0)


class _AtOnce(Executor):
    """Runs what is submitted at once, in this thread: to start thousands of threads takes long."""

    def __init__(self, *_: object) -> None:
        super().__init__()

    def submit(self, task: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        """Return what has been done, or has failed."""
        future = Future[Any]()
        try:
            future.set_result(task(*args, **named))
        except Exception as error:
            future.set_exception(error)
        return future


@contextmanager
def at_once() -> Iterator[None]:
    """Have what a poll asks for be asked in this process, one after the other."""
    with (
        mock.patch.object(child, "run", in_this_process),
        mock.patch.object(child, "allow_cpu"),
        mock.patch.object(gather, "ThreadPoolExecutor", _AtOnce),
        mock.patch.object(history_readers, "ThreadPoolExecutor", _AtOnce),
        mock.patch.dict(Gatherer.run.__kwdefaults__, how=in_this_process),
    ):
        yield
