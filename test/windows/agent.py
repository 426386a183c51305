"""A process that lives through windows: it holds descriptors, mappings, locks and a working directory, and does one line
of its standard input after the other. Each line is Python; what it prints is answered as one line of JSON."""
import fcntl
import hashlib
import io
import json
import mmap
import os
import sys
import threading
import time
from contextlib import redirect_stdout

os.chdir(sys.argv[1])
scope = {"os": os, "mmap": mmap, "fcntl": fcntl, "hashlib": hashlib, "threading": threading, "time": time}
for line in sys.stdin:
    said = io.StringIO()
    try:
        with redirect_stdout(said):
            exec(json.loads(line), scope)
        print(json.dumps({"said": said.getvalue()}), flush=True)
    except BaseException as error:
        number = getattr(error, "errno", None)
        print(json.dumps({"failed": f"{type(error).__name__} {number} {error}"}), flush=True)
