"""Drives an interactive bash on a pseudo-terminal: `terminal_scenarios.py SCENARIO FORGET`. Exits 0 if the scenario went as told."""
import fcntl, os, pty, select, signal, struct, sys, termios, time

scenario, forget = sys.argv[1], sys.argv[2]
BOUND = 20


class Shell:
    def __init__(self):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(PS1="P> ", HISTFILE="/dev/null", TERM="xterm", F=forget)
            os.execv("/bin/bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"])
        self.seen = b""
        self.until("P> ")

    def send(self, text):
        os.write(self.fd, text.encode())

    def until(self, text):
        """What came up to `text`, which is taken away with it."""
        wanted, end = text.encode(), time.monotonic() + BOUND
        while wanted not in self.seen:
            ready, _, _ = select.select([self.fd], [], [], max(0, end - time.monotonic()))
            if not ready:
                sys.exit(f"{scenario}: no {text!r} within {BOUND} s, but {self.seen!r}")
            try:
                self.seen += os.read(self.fd, 65536)
            except OSError:
                sys.exit(f"{scenario}: the terminal closed while waiting for {text!r}: {self.seen!r}")
        before, _, self.seen = self.seen.partition(wanted)
        return before.decode("latin1")

    def run(self, line):
        self.send(line + "\n")
        return self.until("P> ")

    def wait_for_foreground(self, name):
        """Until the leader of the foreground group is a program of that name, so that keys reach it."""

        def in_front():
            try:
                with open(f"/proc/{os.tcgetpgrp(self.fd)}/comm") as f:
                    return f.read() == name + "\n"
            except FileNotFoundError:
                return False

        wait_for(in_front, f"{name} comes to the foreground")

    def size(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def check(condition, what):
    if not condition:
        sys.exit(f"{scenario}: {what!r}")


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(") ")[2][0] != "Z"
    except FileNotFoundError:
        return False


def wait_for(condition, what):
    end = time.monotonic() + BOUND
    while not condition():
        check(time.monotonic() < end, what)
        time.sleep(0.02)


# A program that counts what it gets, and says when it is ready. It ends on SIGTERM, after a moment for a second one.
COUNTER = r"""
import os, signal, sys, time
counts = {}
def count(n, _):
    counts[n] = counts.get(n, 0) + 1
for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGWINCH, signal.SIGCONT, signal.SIGUSR1, signal.SIGQUIT):
    signal.signal(n, count)
print("pid=%d wrapper=%d." % (os.getpid(), os.getppid()), flush=True)
end = time.time() + float(sys.argv[1])
while time.time() < end:
    time.sleep(0.02)
print("counts=" + ",".join("%s:%d" % (signal.Signals(n).name, c) for n, c in sorted(counts.items())) + ".", flush=True)
"""
counter = f"/tmp/forget-counter-{os.getpid()}.py"
with open(counter, "w") as f:
    f.write(COUNTER)

s = Shell()
try:
    if scenario == "interrupt-once":
        s.send(f"$F exec -- /usr/bin/python3 {counter} 1.2\n")
        s.until("pid=")
        time.sleep(0.5)
        s.send("\x03")
        check(s.until(".") and s.until("counts=") is not None and s.until(".") == "SIGINT:1", "one SIGINT for one Ctrl-C")
    elif scenario == "interrupt-ends-both":
        s.send("bash -c '$F exec -- sleep 100; echo went o''n'\n")
        time.sleep(0.7)
        s.send("\x03")
        check("went on" not in s.until("P> "), "the calling script stops as well")
        check("130" in s.run("echo $?"), "130 after Ctrl-C")
    elif scenario == "stop-and-continue":
        s.send(f"$F exec -- /usr/bin/python3 {counter} 3\n")
        s.until("pid=")
        pid = int(s.until(" wrapper="))
        wrapper = int(s.until("."))
        time.sleep(0.4)
        s.send("\x1a")
        check("Stopped" in s.until("P> "), "the shell sees the job stopped")
        # Bare, the parent is the shell.
        states = lambda: {open(f"/proc/{p}/stat").read().rpartition(") ")[2][0] for p in {pid, wrapper} - {s.pid}}
        wait_for(lambda: states() == {"T"}, "both are stopped")
        check("Stopped" in s.run("jobs"), "jobs lists it")
        s.send("fg\n")
        wait_for(lambda: states() == {"S"}, "both run again")
        s.send("\x1a")
        check("Stopped" in s.until("P> "), "it stops a second time")
        s.run("bg")
        s.send("fg\n")
        s.until("counts=")
        check(s.until(".").startswith("SIGCONT:"), "and only SIGCONT came through")
        s.until("P> ")
    elif scenario == "resize":
        s.send(f"$F exec -- /usr/bin/python3 {counter} 1\n")
        s.until("pid=")
        time.sleep(0.4)
        s.size(33, 77)
        s.until("counts=")
        check(s.until(".") == "SIGWINCH:1", "one SIGWINCH for one resize")
        s.until("P> ")
        check("33 77" in s.run("$F exec -- stty size"), "the size is the window's")
    elif scenario == "raw-mode":
        s.send("$F exec -- vim -u NONE -n -N /dev/null\n")
        s.until("\x1b[")
        time.sleep(0.7)
        s.send("ihello\x1b")
        s.until("hello")
        s.send("\x1a")
        check("Stopped" in s.until("P> "), "vim stops")
        s.send("fg\n")
        s.until("hello")
        time.sleep(0.3)
        for keys in ("\x03", "\x1b", ":q!\n"):
            s.send(keys)
            time.sleep(0.3)
        s.until("P> ")
        check("icanon" in s.run("stty -a | grep -o '[-]*icanon'").replace("-icanon", ""), "the terminal is as before")
    elif scenario == "settings-stay":
        s.run("$F exec -- stty -ixon")
        check("-ixon" in s.run("stty -a | grep -o '[-]*ixon'"), "what stty sets inside stays set")
    elif scenario == "inner-shell":
        s.run("$F exec -- bash --norc --noprofile --noediting -i")
        s.send("sleep 50\n")
        s.wait_for_foreground("sleep")
        s.send("\x1a")
        s.until("Stopped")
        s.until("P> ")
        s.send("fg\n")
        s.wait_for_foreground("sleep")
        s.send("\x03")
        s.until("P> ")
        s.send("suspend\n")
        check("Stopped" in s.until("P> "), "the inner shell's suspend gives the outer one back")
        s.run("echo outer")
        s.run("fg")
        check("inner\r\n" in s.run("echo inn''er"), "the inner shell goes on")
        s.run("exit 5")
        check("5" in s.run("echo $?"), "its code is the code")
    elif scenario == "crashed-child":
        # No job control in the shell that waits: nothing but forget can take the terminal back.
        s.send("sh -c '$F exec -- bash --norc --noprofile --noediting -i; read x; echo got=$x.'\n")
        s.until("P> ")
        s.send("kill -9 $$\n")
        time.sleep(1)
        s.send("typed\n")
        s.until("got=")
        check(s.until(".") == "typed", "the caller can read the terminal")
    elif scenario == "alone-and-group":
        s.send(f"$F exec -- /usr/bin/python3 {counter} 2.5 &\n")
        s.until("pid=")
        s.until(" wrapper=")
        wrapper = int(s.until("."))
        time.sleep(0.8)
        os.kill(wrapper, signal.SIGTERM)
        os.kill(wrapper, signal.SIGUSR1)
        os.kill(wrapper, signal.SIGINT)
        time.sleep(0.2)
        group = os.getpgid(wrapper)
        os.killpg(group, signal.SIGHUP)
        os.killpg(group, signal.SIGINT)
        time.sleep(0.2)
        os.killpg(group, signal.SIGHUP)
        s.until("counts=")
        got = s.until(".")
        check(got == "SIGHUP:2,SIGINT:2,SIGUSR1:1,SIGTERM:1", got)
    elif scenario == "background-reader":
        s.send("$F exec -- sh -c 'read x; echo got=$x.' &\n")
        s.until("P> ")
        # bash tells of it before a prompt, which may have been the one above.
        wait_for(lambda: "Stopped" in s.run("jobs"), "a background job that reads the terminal stops")
        s.send("fg\nline\n")
        s.until("got=line.")
    elif scenario == "hang-up":
        s.send(f"$F exec -- sh -c 'echo p''id=$$.; exec sleep 100'\n")
        s.until("pid=")
        pid = int(s.until("."))
        time.sleep(0.4)
        os.close(s.fd)
        os.kill(s.pid, signal.SIGHUP)
        end = time.monotonic() + BOUND
        while alive(pid) and time.monotonic() < end:
            time.sleep(0.05)
        check(not alive(pid), "the command ends when its terminal goes away")
    else:
        sys.exit(f"no scenario {scenario}")
finally:
    os.unlink(counter)
    try:
        os.kill(s.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
