"""Runs the official conformance suite against the server `everything` on each runtime, over the bridge, and holds what it finds against conformance.txt.

usage: python3 suite/conformance.py [--write]    (the script `conformance` sets the places up)
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
KEPT = HERE / "conformance.txt"
REVISIONS = ("2026-07-28", "2025-11-25")
RUNTIMES = ("tokio", "smol")
DEADLINE = 300
HEAD = """\
# What the official conformance suite finds: for each server scenario how many checks passed and how many did not (a warning counts as not
# passed). `*` marks what the revision does not require. Each scenario with a check that did not pass says whose doing that is.
"""


def required(suite, revision):
    """The names of the server scenarios that the revision requires."""
    text = subprocess.run([*suite, "list", "--requirements", revision], capture_output=True, text=True, check=True, timeout=60).stdout
    section = text.split("Server scenarios", 1)[1].split("\n\n", 1)[0]
    return set(re.findall(r"^ +- (\S+)$", section, re.MULTILINE))


def found(suite, revision, url):
    """{scenario: (passed, others, what the others say)} of one run, in its order."""
    with tempfile.TemporaryDirectory(prefix="mcp-wire-conformance-") as folder:
        command = [*suite, "server", "--url", url, "--requirements", revision, "-o", folder]
        run = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE)
        counts = {}
        for path in Path(folder).glob("server-*/checks.json"):
            name = re.fullmatch(r"server-(.+)-\d{4}-\d\d-\d\dT.*", path.parent.name).group(1)
            checks = json.loads(path.read_text(encoding="utf-8"))
            statuses = Counter(check["status"] for check in checks)
            wrong = [f"{check['id']}: {check.get('errorMessage')}" for check in checks if check["status"] in ("FAILURE", "WARNING")]
            counts[name] = (statuses["SUCCESS"], len(wrong), wrong)
    order = re.findall(r"^=== Running scenario: (\S+) ===$", run.stdout, re.MULTILINE)
    if not counts or set(counts) != set(order):
        sys.exit(f"the suite did not run to its end (status {run.returncode}):\n{run.stdout[-2000:]}\n{run.stderr[-2000:]}")
    return {name: counts[name] for name in order}


class Kept:
    """conformance.txt, and whether anything speaks against it."""

    def __init__(self):
        self.text = KEPT.read_text(encoding="utf-8") if KEPT.exists() else ""
        self.reasons = {tuple(line.split()[:2]): line.partition("  # ")[2] for line in self.text.splitlines() if "  # " in line}
        self.failed = False

    def fail(self, *lines):
        self.failed = True
        print(*lines, sep="\n", file=sys.stderr)

    def line(self, revision, name, required, good, bad):
        reason = self.reasons.get((revision, name), "") if bad or not good else ""
        if (bad or not good) and not reason:
            self.fail(f"{revision} {name}: {KEPT.name} has no reason for it")
        return f"{revision} {name}{'' if required else ' *'} {good} {bad}" + (f"  # {reason}" if reason else "") + "\n"


def on(runtime, suite, programs, kept):
    """The lines of conformance.txt that a server on this runtime deserves."""
    bridge = subprocess.Popen([programs / "bridge", programs / "everything", runtime], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    lines = []
    try:
        url = bridge.stdout.readline().strip()
        for revision in REVISIONS:
            wanted = required(suite, revision)
            results = found(suite, revision, url)
            if wanted - set(results):
                sys.exit(f"not run: {wanted - set(results)}")
            passed, checks = [name for name in wanted if not results[name][1]], sum(results[name][0] for name in wanted)
            print(f"{runtime}, {revision}: {len(passed)} of {len(wanted)} required scenarios passed, {checks} checks")
            for name, (good, bad, wrong) in results.items():
                line = kept.line(revision, name, name in wanted, good, bad)
                lines.append(line)
                if wrong and line not in kept.text:
                    print(*(f"{runtime}, {revision} {name}: {what}" for what in wrong), sep="\n", file=sys.stderr)
        bridge.stdin.close()
        # It tells what it saw of the servers' ends.
        if bridge.wait(timeout=30) != 0:
            kept.fail(f"on {runtime} the servers did not all end by themselves with status 0")
    finally:
        bridge.kill()
    return lines


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    modules = HERE / ".packages" / "node_modules"
    suite = [str(modules / "node" / "bin" / "node"), str(modules / "@modelcontextprotocol" / "conformance" / "dist" / "index.js")]
    programs = Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent.parent / "target")) / "debug" / "examples"
    kept = Kept()
    for runtime in RUNTIMES:
        fresh = HEAD + "".join(on(runtime, suite, programs, kept))
        if asked.write and runtime == RUNTIMES[0]:
            KEPT.write_text(fresh, encoding="utf-8")
            kept.text = fresh
        elif fresh != kept.text:
            differ = sorted(set(fresh.splitlines()) ^ set(kept.text.splitlines()))
            kept.fail(*differ, f"what was found on {runtime} is not what {KEPT.name} says; keep it with --write")
    return 1 if kept.failed else 0


sys.exit(main())
