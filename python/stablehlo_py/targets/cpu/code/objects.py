"""Objects of kernels, made beside the thread that makes their IR.

LLVM works in several threads at once where they share no context, module or target machine, and each kernel has its own
of these. Only the two long calls of a kernel leave the thread that asked for it, so the rest needs no care; what an
object holds depends on its text and the options alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from stablehlo_py.targets.cpu.code.codegen import Making
from stablehlo_py.targets.machine_code import CodegenOptions

if TYPE_CHECKING:
    import queue


class Objects:
    """Objects in the order in which their texts were given; equal texts are made once. Use it in a `with` statement.

    count: how many will be given, roughly; threads: how many cores may work. With one of either, objects are made
    where they are asked for.
    """

    _waiting: queue.SimpleQueue[Making | None]
    _is_unwanted = False  # what still waits

    def __init__(self, options: CodegenOptions, count: int, threads: int) -> None:
        self._options = options
        self._makings: list[Making | bytes] = []
        self._wanting: list[tuple[int, Callable[[bytes], object]]] = []
        self._numbers: dict[str, int] = {}  # text -> its place in _makings
        self._order: list[int] = []
        # More threads than cores: each waits now and then for Python's lock, which the passes hold meanwhile.
        self._wanted = min(count, 2 * threads) if threads > 1 and count > 1 else 0
        self._threads: list[threading.Thread] = []
        if self._wanted:
            import queue  # a millisecond that the first program of one kernel does without

            self._waiting = queue.SimpleQueue()

    def add(self, text: str, keep: Callable[[bytes], object] | None = None) -> None:
        """Begin to make the object of a kernel's LLVM IR; `keep` is given it when it is done."""
        number = self._numbers.get(text)
        if number is None:
            number = self._numbers[text] = len(self._makings)
            making = Making(text, self._options)
            self._makings.append(making)
            if self._wanted:
                self._waiting.put(making)
                if len(self._threads) < self._wanted:
                    self._threads.append(threading.Thread(target=self._work, daemon=True))
                    self._threads[-1].start()
            else:
                making.run()
        if keep is not None:
            self._wanting.append((number, keep))
        self._order.append(number)

    def add_made(self, text: str, data: bytes) -> None:
        """Take an object that there is already."""
        self._order.append(self._numbers.setdefault(text, len(self._makings)))
        if self._order[-1] == len(self._makings):
            self._makings.append(data)

    def all(self) -> list[bytes]:
        """All objects, when they are done."""
        self._stop()
        done = [making if isinstance(making, bytes) else making.object() for making in self._makings]
        for number, keep in self._wanting:
            keep(done[number])
        return [done[number] for number in self._order]

    def __enter__(self) -> Objects:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_unwanted = kind is not None
        self._stop()
        for making in self._makings:
            if isinstance(making, Making):
                making.close()

    def _stop(self) -> None:
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def _work(self) -> None:
        while (making := self._waiting.get()) is not None:
            if not self._is_unwanted:
                making.run()
