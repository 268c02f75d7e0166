"""An application that listens on a port of this machine, and connections to it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any


@contextmanager
def listening(app: Any) -> Generator[str]:
    """An address at which the application answers, over real HTTP."""
    import uvicorn

    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()
        deadline = time.monotonic() + 20
        while not server.started and time.monotonic() < deadline:
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            server.should_exit = True
            thread.join(20)


def connected(url: str) -> socket.socket:
    """A connection to that address."""
    return socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=5)
