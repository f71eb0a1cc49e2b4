# SPDX-License-Identifier: Apache-2.0
"""Runs a row's test against solution.py and writes reward.txt: 1 or 0.

The test runs here; the solution runs in a process of its own (candidate.py) and is
asked for one call at a time. Arguments and results travel as literals. So nothing
that the solution prints, raises, overrides or exits with is taken for a verdict: it
has to give the right answers.
"""

import ast
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading

LIMIT = 20.0  # seconds, for a whole test
LONGEST = 16 << 20  # bytes of one answer


class Candidate:
    """The solution's function, in another process."""

    def __init__(self, source, entry_point):
        script = pathlib.Path(__file__).with_name("candidate.py")
        self.process = subprocess.Popen(
            [sys.executable, "-I", str(script)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
            env={"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"},
        )
        self.timer = threading.Timer(LIMIT, self.kill)
        self.timer.daemon = True
        self.timer.start()
        self.ask({"source": source, "entry_point": entry_point})

    def __call__(self, *args, **kwargs):
        answer = self.ask({"call": repr((args, kwargs))})
        return ast.literal_eval(answer["result"])

    def ask(self, question):
        try:
            self.process.stdin.write(json.dumps(question).encode() + b"\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline(LONGEST)
        except BrokenPipeError:
            line = b""
        if not line.endswith(b"\n"):
            raise RuntimeError("the solution ended, took too long or answered too much")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"the solution failed: {answer['error']}")
        return answer

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def close(self):
        self.timer.cancel()
        self.kill()
        self.process.wait()


def passes(row, solution):
    """Says whether the solution passes the row's test."""
    candidate = None
    try:
        # The prompt ends in a docstring, so it is a whole function already: what
        # follows either goes on with it or defines it anew.
        candidate = Candidate(row["prompt"] + solution, row["entry_point"])
        # Tests may use what the prompt defines, and the function by its name.
        names = {"__name__": "check"}
        exec(compile(row["prompt"], "prompt", "exec"), names)
        names[row["entry_point"]] = candidate
        exec(compile(row["test"], "test", "exec"), names)
        names["check"](candidate)
        return True
    except Exception as e:  # an assertion, or anything else that isn't right
        print(f"{type(e).__name__}: {str(e)[:2000]}")
        return False
    finally:
        if candidate:
            candidate.close()


def main():
    row = json.loads(pathlib.Path(os.environ["TIDEMILL_ROW_FILE"]).read_text("utf-8"))
    path = pathlib.Path(os.environ["TIDEMILL_WORKDIR"], "solution.py")
    if path.is_file():
        verdict = passes(row, path.read_text("utf-8", "replace"))
    else:
        print("there is no solution.py")
        verdict = False
    reward = pathlib.Path(os.environ["TIDEMILL_LOGS_DIR"], "verifier", "reward.txt")
    reward.write_text(f"{int(verdict)}\n")


main()
