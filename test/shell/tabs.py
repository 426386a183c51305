"""A person who presses Tab: starts argv[1:] on a pseudo-terminal, types each line of standard input and, where it ends
with a tab, erases it again with Ctrl-U. Prints what the terminal showed for each such line after a line "== LINE"."""
import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time

CONTROL = re.compile(rb"\x1b\[[0-9;?<>=]*[A-Za-z]|\x1b\][^\x07\x1b]*(\x07|\x1b\\)|\x1b[=>()][B0]?|[\r\x07\x0e\x0f]|.\x08")
QUIET_S = 0.35

lines = sys.stdin.buffer.read().split(b"\n")
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 200, 160, 0, 0))


def shown(at_least_s, until=None):
    """What comes until nothing more does, or until it ends with the prompt."""
    text, begun = b"", time.monotonic()
    while True:
        ready, _, _ = select.select([terminal], [], [], QUIET_S)
        if ready:
            try:
                got = os.read(terminal, 65536)
            except OSError:
                return text
            text += got
        elif time.monotonic() - begun > at_least_s or (until and CONTROL.sub(b"", text).endswith(until)):
            return text


shown(5, b"ready> ")
for line in filter(None, lines):
    if line.endswith(b"\t"):
        os.write(terminal, line)
        # A completion may ask forget itself, and that is a start of Node.
        answer = shown(1.2 if b"unmount" in line else 0.3)
        sys.stdout.buffer.write(b"== %s\n%s\n" % (line.rstrip(b"\t"), CONTROL.sub(b"", answer)))
        os.write(terminal, b"\x15")
        shown(0.1)
    else:
        os.write(terminal, line + b"\r")
        shown(10, b"ready> ")
os.write(terminal, b"exit\r")
shown(1)
os.close(terminal)
os.waitpid(pid, 0)
