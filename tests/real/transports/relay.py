"""A relay between two sockets, as a process of its own, so that it can be stopped: `relay.py LISTEN TARGET`.

Both are `HOST:PORT` or the path of a unix socket. Says the port that it listens at. Standard library only: it also runs
in a network namespace.
"""

from __future__ import annotations

import asyncio
import sys


async def main(listen: str, target: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if target.startswith("/"):
                far_reader, far_writer = await asyncio.open_unix_connection(target)
            else:
                host, _, port = target.rpartition(":")
                far_reader, far_writer = await asyncio.open_connection(host, int(port))
        except OSError as error:
            print(f"relay: {target}: {error}", file=sys.stderr)
            writer.close()
            return
        await asyncio.gather(copy(reader, far_writer), copy(far_reader, writer))

    host, _, port = listen.rpartition(":")
    server = await asyncio.start_server(serve, host, int(port))
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except ConnectionError as error:
        print(f"relay: {error}", file=sys.stderr)
    finally:
        writer.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
