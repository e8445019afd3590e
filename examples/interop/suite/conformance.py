"""Runs the official conformance suite against the server `everything`, over the bridge, and holds what it finds against conformance.txt.

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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    modules = HERE / ".packages" / "node_modules"
    suite = [str(modules / "node" / "bin" / "node"), str(modules / "@modelcontextprotocol" / "conformance" / "dist" / "index.js")]
    target = Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent.parent / "target")) / "debug" / "examples"
    kept = KEPT.read_text(encoding="utf-8") if KEPT.exists() else ""
    reasons = {tuple(line.split()[:2]): line.partition("  # ")[2] for line in kept.splitlines() if "  # " in line}

    bridge = subprocess.Popen([target / "bridge", target / "everything"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    lines, failed = [HEAD], False
    try:
        url = bridge.stdout.readline().strip()
        for revision in REVISIONS:
            wanted = required(suite, revision)
            results = found(suite, revision, url)
            if wanted - set(results):
                sys.exit(f"not run: {wanted - set(results)}")
            passed = [name for name in wanted if not results[name][1]]
            checks = sum(results[name][0] for name in wanted)
            print(f"{revision}: {len(passed)} of {len(wanted)} required scenarios passed, {checks} checks")
            for name, (good, bad, wrong) in results.items():
                reason = reasons.get((revision, name), "") if bad or not good else ""
                line = f"{revision} {name}{'' if name in wanted else ' *'} {good} {bad}" + (f"  # {reason}" if reason else "") + "\n"
                lines.append(line)
                if line not in kept:
                    print(*(f"{revision} {name}: {what}" for what in wrong), sep="\n", file=sys.stderr)
                if (bad or not good) and not reason:
                    failed = True
                    print(f"{revision} {name}: {KEPT.name} has no reason for it", file=sys.stderr)
        bridge.stdin.close()
        # It tells what it saw of the servers' ends.
        if bridge.wait(timeout=30) != 0:
            failed = True
            print("the servers did not all end by themselves with status 0", file=sys.stderr)
    finally:
        bridge.kill()
    fresh = "".join(lines)
    if asked.write:
        KEPT.write_text(fresh, encoding="utf-8")
    elif fresh != kept:
        failed = True
        sys.stdout.writelines(line + "\n" for line in sorted(set(fresh.splitlines()) ^ set(kept.splitlines())))
        print(f"what was found is not what {KEPT.name} says; keep it with --write", file=sys.stderr)
    return 1 if failed else 0


sys.exit(main())
