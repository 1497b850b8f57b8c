"""Releases in tests repeat: the system's bytes are a stream that the test's name determines.

A suite of thousands of unseeded releases fails by chance now and then. The entropy source itself
is not replaced, only where its bytes come from; tests of that source are marked `system_bytes`.

The thread that runs the test has the stream for itself: a thread that an earlier test left behind
would otherwise take bytes of it, whenever it happens to run. All other threads share another one.
"""

import random
import ssl
from threading import Lock, get_ident

_real = ssl.RAND_bytes
_stream: random.Random | None = None
_others = random.Random()  # the bytes of all other threads
_runner = get_ident()
_lock = Lock()


def _bytes(count: int) -> bytes:
    if _stream is None:
        return _real(count)
    if get_ident() == _runner:
        return _stream.randbytes(count)
    with _lock:
        return _others.randbytes(count)


def pytest_sessionstart():
    """Put the stream in the place of OpenSSL's."""
    ssl.RAND_bytes = _bytes


def pytest_runtest_setup(item):
    """Begin a stream for a test; what its fixtures draw comes from it too."""
    global _stream, _others, _runner  # noqa: PLW0603  # one process runs one test at a time
    marked = item.get_closest_marker("system_bytes") is not None
    _stream = None if marked else random.Random(item.nodeid)  # that is the point
    _others, _runner = random.Random(f"{item.nodeid}, other threads"), get_ident()
