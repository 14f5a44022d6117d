"""Progress of a long call: a line on a terminal or in a notebook, or the caller's function."""
from __future__ import annotations

import json
import sys
from typing import Any, Callable, Dict, Optional, Union

from mendel._library import Stop

ProgressArgument = Union[None, bool, Callable[[Dict[str, Any]], None]]


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    instance = shell.get_ipython() if shell is not None else None
    return instance is not None and "kernel" in type(instance).__module__


def _line(event: Dict[str, Any]) -> str:
    text = str(event["phase"])
    if text == "search":
        return (f"search  {event['candidates']} candidates ({event['candidates_per_second']:.1f}/s)  best {event['best_speedup']:.2f}x  "
                f"{max(0.0, event['seconds_left']):.0f} s left  {event['detail']}")
    return f"{text}  {event['detail']}" if event["detail"] else text


class Reporter:
    """What a call reports to. `argument`: a function of the event (a dict: phase, detail, candidates, candidates_per_second,
    best_speedup, seconds_left), True (a line), False (nothing), None (a line where somebody sees it)."""

    def __init__(self, argument: ProgressArgument, stop: Stop):
        self._function = argument if callable(argument) else None
        seen = sys.stderr is not None and (sys.stderr.isatty() or _in_notebook())
        self._shown = self._function is None and (argument is True or argument is None and seen)
        self._stop = stop
        self._open = False
        self.failure: Optional[BaseException] = None

    def callback(self) -> Optional[Callable[[bytes], None]]:
        return self._show if self._function is not None or self._shown else None

    def _show(self, text: bytes) -> None:
        if self.failure is not None:
            return
        try:
            event = json.loads(text)
            if self._function is not None:
                self._function(event)
            else:
                sys.stderr.write(f"\r\033[K{_line(event)[:110]}")
                sys.stderr.flush()
                self._open = True
        except BaseException as error:  # nothing may be raised through C; the call raises it at its end
            self.failure = error
            self._stop.request()

    def finish(self) -> None:
        """Clears the line; raises what the caller's function raised."""
        if self._open:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
        if self.failure is not None:
            raise self.failure
