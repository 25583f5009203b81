"""ask.py HOST ping|pull [IMAGE]: calls an engine's HTTP API; the docker command may not be installed yet."""

import http.client
import json
import os
import socket
import ssl
import sys
from urllib.parse import quote, urlsplit


def connect(host: str, timeout: float) -> http.client.HTTPConnection:
    url = urlsplit(host)
    if url.scheme == "unix":
        connection = http.client.HTTPConnection("localhost", timeout=timeout)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(timeout)
        connection.sock.connect(url.path)
        return connection
    if not os.environ.get("DOCKER_TLS_VERIFY"):
        return http.client.HTTPConnection(url.hostname or "", url.port or 2375, timeout=timeout)
    certs = os.environ.get("DOCKER_CERT_PATH") or os.path.expanduser("~/.docker")
    context = ssl.create_default_context(cafile=f"{certs}/ca.pem")
    context.load_cert_chain(f"{certs}/cert.pem", f"{certs}/key.pem")
    return http.client.HTTPSConnection(url.hostname or "", url.port or 2376, timeout=timeout, context=context)


def ping(host: str) -> None:
    connection = connect(host, timeout=5)
    connection.request("GET", "/_ping")
    answer = connection.getresponse()
    if answer.status != 200:
        raise OSError(f"{host} answers {answer.status}")


def pull(host: str, image: str) -> None:
    # The engine reports progress all the time, so a silent connection is a pull that hangs.
    connection = connect(host, timeout=20)
    name, _, tag = image.rpartition(":")
    connection.request("POST", f"/images/create?fromImage={quote(name, safe='')}&tag={quote(tag)}")
    answer = connection.getresponse()
    for line in answer:
        progress = json.loads(line)
        if "error" in progress or "message" in progress:
            raise OSError(progress.get("error") or progress["message"])


if __name__ == "__main__":
    _, host, command, *arguments = sys.argv
    try:
        ping(host) if command == "ping" else pull(host, *arguments)
    except (OSError, ValueError, http.client.HTTPException) as error:
        sys.exit(f"{command} {' '.join(arguments)}: {error}")
