# SPDX-License-Identifier: Apache-2.0
"""Runs a solution and answers calls to it, a JSON line each. See check.py."""

import ast
import json
import os
import sys

# What the solution prints or reads must not get between questions and answers.
questions = os.fdopen(os.dup(0), "r", encoding="utf-8")
answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
os.dup2(2, 1)


def answer(question, names):
    if "source" in question:
        exec(compile(question["source"], "solution.py", "exec"), names)
        names["candidate"] = names[question["entry_point"]]
        return "None"
    args, kwargs = ast.literal_eval(question["call"])
    return repr(names["candidate"](*args, **kwargs))


def main():
    names = {"__name__": "solution"}
    for line in questions:
        try:
            reply = {"result": answer(json.loads(line), names)}
        except BaseException as e:  # sys.exit too
            reply = {"error": f"{type(e).__name__}: {e}"}
        answers.write(json.dumps(reply) + "\n")
        answers.flush()


main()
