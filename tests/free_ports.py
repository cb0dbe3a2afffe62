"""Addresses for workers on this machine."""

import contextlib
import random
import socket


def free_addresses(count):
    """Returns unused addresses, with ports below those the system assigns to clients."""
    with contextlib.ExitStack() as stack:
        ports = set()
        while len(ports) < count:
            port = random.SystemRandom().randrange(20_000, 32_000)  # differs between processes
            with contextlib.suppress(OSError):
                stack.enter_context(socket.create_server(("", port)))
                ports.add(port)
    return tuple(f"127.0.0.1:{port}" for port in ports)
