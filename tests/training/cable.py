"""A cable between a client and a server that can be cut and mended."""

import socket
import threading
from contextlib import suppress


class Cable:
    """Listens on a port of its own and passes bytes on, while it is whole."""

    def __init__(self, port):
        self._far, self._open, self.whole = port, [], True
        self._near = socket.create_server(("127.0.0.1", 0))
        self.port = self._near.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self):
        self.whole = False
        while self._open:
            _close(self._open.pop())

    def mend(self):
        self.whole = True

    def close(self):
        self.cut()
        _close(self._near)

    def _accept(self):
        while True:
            try:
                near, _ = self._near.accept()
            except OSError:
                return
            if not self.whole:
                _close(near)
                continue
            far = socket.create_connection(("127.0.0.1", self._far))
            self._open += [near, far]
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=_pass_on, args=(one, other), daemon=True).start()


def _pass_on(one, other):
    with suppress(OSError):
        while some := one.recv(65536):
            other.sendall(some)
    _close(one)
    _close(other)


def _close(one):
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
