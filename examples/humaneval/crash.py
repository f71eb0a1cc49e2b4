# SPDX-License-Identifier: Apache-2.0
"""Runs an eval twice, once undisturbed and once with three kill -9 on the way, and fails
unless both come to the same results.

    export HUMANEVAL=/path/to/HumanEval.jsonl.gz
    python3 examples/humaneval/crash.py --tidemill bin/tidemill

What may differ are times, ids, and how many attempts it took. What was working when it
was killed may leave nothing behind either: no process and no sandbox.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
RUN_ID = "crash"
KILLS = 3

# Keys of aggregate.json that tell of times and attempts, wherever they stand.
MAY_DIFFER = re.compile(r"latency|^(created_at|as_of|generated_by|attempts|attempt|log)$")


def comparable(value):
    if isinstance(value, dict):
        return {k: comparable(v) for k, v in value.items() if not MAY_DIFFER.search(k)}
    if isinstance(value, list):
        return [comparable(v) for v in value]
    return value


def start(options, data, stdout):
    command = [options.tidemill, "run", "--json", "--data", str(data), "--run-id", RUN_ID, str(options.file)]
    return subprocess.Popen(command, stdout=stdout, stderr=subprocess.PIPE, text=True)


def finish(options, data):
    """Runs to the end and returns the aggregate."""
    with tempfile.TemporaryFile("w+") as out:
        process = start(options, data, out)
        said = process.stderr.read()
        if process.wait() not in (0, 3):
            sys.exit(f"tidemill run ended with exit code {process.returncode}:\n{said[-4000:]}")
        out.seek(0)
        return json.load(out)


def kill_when(options, data, wanted):
    """Kills a run once this many of its trials are done, and returns how many were."""
    process = start(options, data, subprocess.DEVNULL)
    done, said = 0, []
    for line in process.stderr:
        said.append(line)
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if event.get("event") == "submitted":
            done = event["done"]
        elif event.get("event") == "committed":
            done += 1
        if done >= wanted:
            process.kill()
            process.stderr.close()
            process.wait()
            return done
    sys.exit(f"it ended with exit code {process.wait()} before it could be killed:\n{''.join(said)[-4000:]}")


def left_behind(data):
    """What is there although nothing runs any more."""
    left = [str(p) for p in data.glob(".tidemill/work/*")]
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if str(data).encode() in (process / "environ").read_bytes():
                left.append(f"process {process.name}")
        except OSError:
            pass  # it ended, or is somebody else's
    return left


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tidemill", default="tidemill", help="the program (default: tidemill in PATH)")
    parser.add_argument("--file", type=pathlib.Path, default=HERE / "run-oracle.yaml", help="the run file (default: HumanEval with the oracle)")
    options = parser.parse_args()

    place = pathlib.Path(tempfile.mkdtemp(prefix="tidemill-crash-", dir=os.environ.get("TMPDIR")))
    undisturbed, disturbed = place / "undisturbed", place / "disturbed"
    print(f"undisturbed, in {undisturbed}", flush=True)
    want = finish(options, undisturbed)
    trials = want["total_trials"]
    for n in range(1, KILLS + 1):
        done = kill_when(options, disturbed, trials * n // (KILLS + 1))
        print(f"kill -9 with {done} of {trials} trials done", flush=True)
    got = finish(options, disturbed)

    wrong = []
    if not want["complete"] or not got["complete"]:
        wrong.append("a run is not complete")
    a, b = comparable(want), comparable(got)
    wrong += [f"{key}: undisturbed {a.get(key)!r}, disturbed {b.get(key)!r}" for key in sorted(a.keys() | b.keys()) if a.get(key) != b.get(key)]
    for data in (undisturbed, disturbed):
        commits = sum(1 for p in (data / "runs" / RUN_ID / "commits").rglob("*") if p.is_file())
        if commits != trials:
            wrong.append(f"{data.name}: {commits} commits for {trials} trials")
        wrong += [f"{data.name}: left behind: {what}" for what in left_behind(data)]
    if wrong:
        sys.exit("\n".join(wrong) + f"\nboth are kept in {place}")
    print(f"the same results: {trials} trials, {got['scored']} scored, success {got['success_rate']:.1%};",
          f"attempts: {want['attempts']['total']} undisturbed, {got['attempts']['total']} disturbed")
    shutil.rmtree(place)


main()
