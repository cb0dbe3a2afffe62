"""Addresses for workers of this machine."""

import contextlib
import random
import socket


def free_addresses(count):
    """Addresses that nobody has; below the ports that the system gives to those who call."""
    with contextlib.ExitStack() as stack:
        ports = set()
        while len(ports) < count:
            port = random.SystemRandom().randrange(20_000, 32_000)  # another one in each process
            with contextlib.suppress(OSError):
                stack.enter_context(socket.create_server(("", port)))
                ports.add(port)
    return tuple(f"127.0.0.1:{port}" for port in ports)
