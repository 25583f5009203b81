"""A program that calls itself `tensorboard` and attacks the browser that shows it, and the server that passes it on.

It prints what it finds out, so that a test reads it in the log of its job.
"""

import argparse
import json
import socket
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PAGE = Path(__file__).with_suffix(".html").read_text()


class Board(BaseHTTPRequestHandler):
    """Answers as badly as it can."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        getattr(self, f"give_{self.path.partition('?')[0].strip('/').replace('.', '_') or 'page'}", self.give_nothing)()

    def do_POST(self) -> None:
        print("report", self.rfile.read(int(self.headers["Content-Length"])).decode(), flush=True)
        self.answer(b"thanks")

    def answer(self, body: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def give_page(self) -> None:
        self.answer(PAGE.encode(), Content_Type="text/html", Set_Cookie="riseml-app=tossed; Domain=localhost; Path=/")

    def give_worker_js(self) -> None:
        self.answer(b"", Content_Type="text/javascript", Service_Worker_Allowed="/")

    def give_echo(self) -> None:
        self.answer(json.dumps(dict(self.headers)).encode(), Content_Type="application/json")

    def give_headers(self) -> None:
        self.answer(
            b"<p>hello",
            Set_Cookie="a=b; Domain=localhost",
            Refresh="0; url=http://evil.example/",
            Link="<//evil>; rel=preload",
            Clear_Site_Data='"*"',
            Access_Control_Allow_Origin="*",
            Referrer_Policy="unsafe-url",
        )

    def give_away(self) -> None:
        self.answer(b"", 302, Location="http://evil.example/")

    def give_page_of_riseml(self) -> None:
        self.answer(b"", 302, Location=f"http://127.0.0.1:{self.headers['X-Port']}/")

    def give_near(self) -> None:
        self.answer(b"", 302, Location="/echo")

    def give_endless(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            while True:
                self.wfile.write(b"10000\r\n" + b"x" * 65536 + b"\r\n")
        except OSError:
            print("endless: the reader is gone", flush=True)
        self.close_connection = True

    def give_endless_head(self) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\n")
        try:
            while True:
                self.wfile.write(b"X-More: " + b"x" * 60000 + b"\r\n")
        except OSError:
            print("endless head: the reader is gone", flush=True)
        self.close_connection = True

    def give_interim(self) -> None:
        self.wfile.write(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100)
        self.close_connection = True

    def give_switch(self) -> None:
        self.wfile.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")
        self.close_connection = True

    def give_garbage(self) -> None:
        self.wfile.write(b"\x00\xff not HTTP\r\n\r\n")
        self.close_connection = True

    def give_short(self) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nonly this")
        self.close_connection = True

    def give_reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        self.close_connection = True

    def give_nothing(self) -> None:
        self.answer(b"nothing here", 404)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for option in ("--logdir", "--host", "--port"):
        parser.add_argument(option)
    found = parser.parse_args()
    print("listening", sys.argv, flush=True)
    ThreadingHTTPServer((found.host, int(found.port)), Board).serve_forever()
