"""What Jupyter starts as a kernel: it has the server of `kernel_server.py` fork one, or becomes a fresh one itself.

    kernel_stub.py CONNECTION_FILE

It ends when the kernel does, and the kernel when it does; an interrupt it passes on. Standard library only, and little
of it, for it runs once a notebook.
"""

import json
import os
import signal
import socket
import sys
from pathlib import Path


def main() -> None:
    (file,), parent = sys.argv[1:], os.getppid()
    server = forked(os.environ.get("KERNEL_SERVER", ""), file)
    if server is None:
        fresh = (
            f"import runpy; runpy.run_path({str(Path(__file__).with_name('kernel_server.py'))!r})['fresh']({file!r})"
        )
        os.execv(sys.executable, [sys.executable, "-c", fresh])
    signal.signal(signal.SIGINT, lambda *_: server.send(b"interrupt"))
    server.settimeout(1)
    while os.getppid() == parent:  # who started the kernel may have been killed
        try:
            server.recv(1)  # nothing is sent: it returns when the kernel has ended
            break
        except TimeoutError:
            pass


def forked(address: str, file: str) -> "socket.socket | None":
    """A connection to a forked kernel, or None where there is no server, or it has reasons not to fork."""
    server = socket.socket(socket.AF_UNIX)
    try:
        server.connect(address)
    except OSError:
        return None
    request = json.dumps({"file": file, "folder": os.getcwd(), "environment": dict(os.environ)}).encode() + b"\n"
    sent = socket.send_fds(server, [request], [0, 1, 2])
    server.sendall(request[sent:])
    return server if server.recv(6) == b"forked" else None


if __name__ == "__main__":
    main()
