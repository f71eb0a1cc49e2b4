# SPDX-License-Identifier: Apache-2.0
"""Writes the canonical solution of the row."""

import json
import os
import pathlib

row = json.loads(pathlib.Path(os.environ["TIDEMILL_ROW_FILE"]).read_text("utf-8"))
pathlib.Path("solution.py").write_text(row["canonical_solution"], "utf-8")
