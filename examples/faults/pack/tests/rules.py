# SPDX-License-Identifier: Apache-2.0
"""What a good answer is."""

import os
import stat

GENUINE = True


def reward(path):
    if not os.path.lexists(path) or not stat.S_ISREG(os.lstat(path).st_mode):
        return 0
    with open(path, "rb") as f:
        return int(f.read(100).strip() == b"42")
