"""Metrics that count with one addition to what their file holds.

Replaces: `config.server.metrics.build_value_class`, the values of prometheus-client. Buys: the library looks whether
the process was forked, and keeps the number a second time, under a lock.
"""

from collections.abc import Callable


def build_value_class(original: Callable[[str], type]) -> Callable[[str], type]:
    """Takes the place of a function that makes the class of values for a slot."""

    def build_fast_value_class(slot: str) -> type:
        value_class = original(slot)

        class Value(value_class):  # type: ignore[misc, valid-type]
            # A process calls `share` when it has been forked, no other process writes its files, and CPython lets no
            # other thread run between a subscript that is read and the same one written. A file that grows is mapped
            # anew: values made before go on in the older mapping, of the same pages. What the library keeps beside the
            # file stays as it was; `exposition` reads the files.
            def __init__(self, *arguments: object, **options: object) -> None:
                super().__init__(*arguments, **options)
                position = self._file._positions[self._key]
                self._number = memoryview(self._file._m)[position : position + 8].cast("d")

            def inc(self, amount: float) -> None:
                self._number[0] += amount

        return Value

    return build_fast_value_class
