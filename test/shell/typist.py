"""A person at a terminal: starts argv[1:] on a pseudo-terminal, and types each line of standard input when a prompt
stands there that ends with "$ " or "% " or "> ". Prints what the terminal showed, without its control sequences."""
import os
import pty
import re
import select
import sys
import time

CONTROL = re.compile(rb"\x1b\[[0-9;?<>=]*[A-Za-z]|\x1b\][^\x07\x1b]*(\x07|\x1b\\)|\x1b[=>()][B0]?|[\r\x07\x0e\x0f]|.\x08")
PROMPT = re.compile(rb"[$%>#] +$")
LIMIT_S = 25

lines = sys.stdin.buffer.read().splitlines()
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])

shown = b""
answered = 0
end = time.monotonic() + LIMIT_S
quiet_since = time.monotonic()
while time.monotonic() < end:
    ready, _, _ = select.select([terminal], [], [], 0.05)
    if ready:
        try:
            got = os.read(terminal, 65536)
        except OSError:
            break
        if not got:
            break
        shown += got
        quiet_since = time.monotonic()
        continue
    # A prompt stands when nothing more comes.
    text = CONTROL.sub(b"", shown[answered:])
    if lines and time.monotonic() - quiet_since > 0.15 and PROMPT.search(text):
        answered = len(shown)
        os.write(terminal, lines.pop(0) + b"\r")

ended, status = os.waitpid(pid, os.WNOHANG)
if ended == 0 and lines == []:
    _, status = os.waitpid(pid, 0)
elif ended == 0:
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    status = 1 << 8
sys.stdout.buffer.write(CONTROL.sub(b"", shown))
sys.exit(os.waitstatus_to_exitcode(status))
