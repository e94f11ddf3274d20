"""A loopback web server that can send the rest of a file, and that can be told to break off."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class RangeServer(ThreadingHTTPServer):
    """Serves `files`; keeps the path and Range header of every request in `requests`.

    `breaks` holds, for the next answers in turn, after how many bytes the connection breaks; None is never.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files, self.requests, self.breaks, self.knows_ranges = {}, [], [], True

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        asked = self.headers.get("Range")
        server.requests.append((self.path, asked))
        content = server.files.get(self.path)
        if content is None:
            self.send_error(404)
            return
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and server.knows_ranges else 0
        if start and start >= len(content):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(content)}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        stop = server.breaks.pop(0) if server.breaks else None
        self.wfile.write(content[start:] if stop is None else content[start : start + stop])
        self.close_connection = True

    def log_message(self, *words):
        pass


@contextmanager
def serving():
    server = RangeServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
