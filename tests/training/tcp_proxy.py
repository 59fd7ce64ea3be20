"""A TCP proxy between a client and a server whose connection can be cut and restored."""

import socket
import threading
from contextlib import suppress


class TcpProxy:
    """Listens on its own port and forwards bytes while it is connected."""

    def __init__(self, port):
        self._far, self._open, self.connected = port, [], True
        self._near = socket.create_server(("127.0.0.1", 0))
        self.port = self._near.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self):
        self.connected = False
        while self._open:
            _close(self._open.pop())

    def restore(self):
        self.connected = True

    def close(self):
        self.cut()
        _close(self._near)

    def _accept(self):
        while True:
            try:
                near, _ = self._near.accept()
            except OSError:
                return
            if not self.connected:
                _close(near)
                continue
            far = socket.create_connection(("127.0.0.1", self._far))
            self._open += [near, far]
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=_forward, args=(source, target), daemon=True).start()


def _forward(source, target):
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    _close(source)
    _close(target)


def _close(connection):
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
