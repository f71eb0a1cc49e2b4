# SPDX-License-Identifier: Apache-2.0
"""Judges answer.txt with a module that lies beside this file."""

import os
import sys

# Python run with -I looks beside no script and in nobody's home, so say where.
sys.path.insert(0, os.environ["TIDEMILL_TESTS_DIR"])

import rules  # noqa: E402

answer = os.path.join(os.environ["TIDEMILL_WORKDIR"], "answer.txt")
reward = rules.reward(answer)
print("rules come from", "the pack" if rules.GENUINE else "the agent")
with open(os.path.join(os.environ["TIDEMILL_LOGS_DIR"], "verifier", "reward.txt"), "w") as f:
    f.write(f"{reward}\n")
