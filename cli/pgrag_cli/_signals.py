"""Serves the commands that work for long: a signal asks them to finish what they are at, a second one ends them."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["stop_signals"]


@contextmanager
def stop_signals() -> Iterator[Callable[[float], bool]]:
    """Yield a wait that ends, and returns True from then on, when SIGTERM or SIGINT comes."""
    read, write = os.pipe()

    def ask(number: int, _frame: FrameType | None) -> None:
        os.write(write, b".")
        signal.signal(number, before[signal.Signals(number)])

    before = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield lambda seconds: bool(select.select([read], [], [], seconds)[0])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(read)
        os.close(write)
