"""Messages between the roles, one JSON document per line; and the digits, with 49 grey values each."""

import gzip
import json
import math
import os
import random
import socket
import socketserver
import threading
from operator import mul
from pathlib import Path

TRAINING_IMAGES = 4000
LABELS = range(10)


def serve(answer):
    """Answer every client in a thread of its own, at the address that riseml gave to this job."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            for line in self.rfile:  # riseml connects and sends nothing to see whether this job answers
                self.wfile.write(json.dumps(answer(json.loads(line))).encode() + b"\n")

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True

    address = os.environ.get("ROLE_HOST", "127.0.0.1"), int(os.environ.get("ROLE_PORT", "2222"))
    server = Server(address, Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print("answers at", *address)


def connect(address):
    """Return a function that sends a message and returns the answer, or None when the other job has ended."""
    host, _, port = address.rpartition(":")
    file = socket.create_connection((host, int(port))).makefile("rwb")

    def ask(message):
        try:
            file.write(json.dumps(message).encode() + b"\n")
            file.flush()
            line = file.readline()
        except ConnectionError:
            return None
        return json.loads(line) if line else None

    return ask


def load_digits(folder):
    """Return 5,000 pairs of 50 inputs and a label, in the same order in every job. The last input is always 1."""
    path = Path(folder) / "mnist_5k.csv.gz"
    if not path.exists():
        raise SystemExit(f"no digits at {path}: run `python3 ../ai-toaster/get_data.py` on the host of the data folder")
    with gzip.open(path, "rt") as file:
        rows = [[int(value) for value in line.split(",")] for line in file]
    random.Random(5).shuffle(rows)
    return [([*shrink(row), 1.0], row[-1]) for row in rows]


def shrink(pixels):
    """Return the mean grey of each square of 4 by 4 pixels."""
    squares = [(top, left) for top in range(0, 28, 4) for left in range(0, 28, 4)]
    return [
        round(
            sum(pixels[28 * row + column] for row in range(top, top + 4) for column in range(left, left + 4)) / 4080, 3
        )
        for top, left in squares
    ]


def score(policy, image):
    return [sum(map(mul, weights, image)) for weights in policy]


def softmax(scores):
    top = max(scores)
    powers = [math.exp(one - top) for one in scores]
    return [one / sum(powers) for one in powers]
