#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
sort -t, -k"$COLUMN" -n /app/data/tides.csv | tail -n 1 | cut -d, -f1 >/app/answer.txt
