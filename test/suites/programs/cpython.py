"""CPython's own tests, by its own runner, with everything temporary below argv[1]. Prints each test's outcome as JSON.

The tests named in argv[2:] run; the outcome is "passed", "failed" or the reason for which the test skipped itself.
"""
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

directory, *tests = sys.argv[1:]
results = os.path.join(directory, "results.xml")
# 3.11's runner takes a number of seconds for all of a file's tests, and prints where it stood.
command = [sys.executable, "-m", "test", "--verbose3", "--timeout", "200", "--tempdir", directory]
# These are about pipes and signals, and wait for alarms.
command += ["--ignore", "*SignalsTest*", "--junit-xml", results, *tests]
run = subprocess.run(
    command,
    cwd=directory,
    env={**os.environ, "TMPDIR": directory},
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
    errors="replace",
)


def outcome(case):
    for kind in ("failure", "error"):
        found = case.find(kind)
        if found is not None:
            return "failed"
    skipped = case.find("skipped")
    if skipped is None:
        return "passed"
    # The name of a test file has the process's number in it.
    return "skipped: " + re.sub(r"@test_\d+", "@test_N", skipped.text or "")


try:
    cases = {case.get("name"): outcome(case) for case in ET.parse(results).iter("testcase")}
    os.unlink(results)
except FileNotFoundError:
    cases = {}
json.dump({"code": run.returncode, "cases": cases, "output": run.stdout[-20000:]}, sys.stdout)
