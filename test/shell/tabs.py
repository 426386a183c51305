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
QUIET_S = 0.2

lines = sys.stdin.buffer.read().split(b"\n")
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 200, 160, 0, 0))


def shown(seconds, enough):
    """What comes until `enough` says so of it and nothing more comes, or until the time is over."""
    text, begun = b"", time.monotonic()
    while time.monotonic() - begun < seconds:
        ready, _, _ = select.select([terminal], [], [], QUIET_S)
        if ready:
            try:
                text += os.read(terminal, 65536)
            except OSError:
                break
        elif enough(CONTROL.sub(b"", text)):
            break
    return CONTROL.sub(b"", text)


def prompt_stands(text):
    return text.endswith(b"ready> ")


shown(10, prompt_stands)
for line in filter(None, lines):
    os.write(terminal, line if line.endswith(b"\t") else line + b"\r")
    if line.endswith(b"\t"):
        # The echo comes at once, and a completion may take a while to load or ask forget.
        answer = shown(6, lambda text: text.strip() != line.strip())
        sys.stdout.buffer.write(b"== %s\n%s\n" % (line.rstrip(b"\t"), answer))
        os.write(terminal, b"\x15")
        shown(QUIET_S, prompt_stands)
    else:
        shown(15, prompt_stands)
os.write(terminal, b"exit\r")
shown(2, lambda text: False)
os.close(terminal)
os.waitpid(pid, 0)
