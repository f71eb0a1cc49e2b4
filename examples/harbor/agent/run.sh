#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# A small agent: it says what it finds, solves one task and tries no other.
set -u
echo "task $TIDEMILL_TASK_ID, as $(id -un) in $PWD"
echo "instruction: $(head -n 1 "$TIDEMILL_INSTRUCTION_FILE")"

# Tools that the task brings are named beside the instruction; starting them is up to us.
tools="$(dirname "$TIDEMILL_INSTRUCTION_FILE")/task.json"
[ -e "$tools" ] && echo "tools: $(tr -d ' \n' <"$tools")"

# A line for each route: the first is the heading.
[ "$(wc -l </proc/net/route)" -gt 1 ] && echo "network: yes" || echo "network: no"

case $TIDEMILL_TASK_ID in
  */tide-table) sort -t, -k2 -n data/tides.csv | tail -n 1 | cut -d, -f1 >answer.txt ;;
esac

echo '{"turns": 1, "tool_calls": 1}' >"$TIDEMILL_LOGS_DIR/agent/usage.json"
