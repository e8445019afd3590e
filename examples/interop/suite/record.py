"""A server with a recorder around it: every line of either direction goes on to a file beside its time, in the format of mcp-call's tapes.

It forwards bytes, the end of the input, SIGTERM, and the exit status, and knows nothing of what is said.
usage: record.py FOLDER SERVER [ARG]...    (each start records into a file of its own: some clients start a server twice)
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time

FOLDER, *COMMAND = sys.argv[1:]
start = time.monotonic()
lock = threading.Lock()
tape = open(os.path.join(FOLDER, f"{time.time_ns()}.tape"), "w", encoding="utf-8")


def record(**line):
    with lock:
        print(json.dumps({"t_us": int((time.monotonic() - start) * 1e6), **line}), file=tape, flush=True)


def pump(direction, source, sink):
    # Recorded before it is sent on: whatever it causes stands behind it.
    for line in iter(source.readline, b""):
        record(**{direction: line.decode("utf-8", "backslashreplace")})
        try:
            sink.write(line)
            sink.flush()
        except OSError:
            break
    try:
        sink.close()
    except OSError:
        pass


server = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
signal.signal(signal.SIGTERM, lambda *_: (record(process="terminated"), server.terminate()))
record(process="started")
threading.Thread(target=pump, args=("out", sys.stdin.buffer, server.stdin), daemon=True).start()
pump("in", server.stdout, sys.stdout.buffer)
code = server.wait()
record(process={"exit": {"code": code} if code >= 0 else {"signal": -code}})
# At once: the thread may still wait for input.
os._exit(code if code >= 0 else 128 - code)
