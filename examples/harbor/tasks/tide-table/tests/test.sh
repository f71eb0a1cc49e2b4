#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Several rewards: the score is the one called reward.
set -u
answer=$(cat /app/answer.txt 2>/dev/null)
[ "$answer" = 18 ] && right=1 || right=0
case $answer in [0-9][0-9]) form=1 ;; *) form=0 ;; esac
echo "station $STATION, tolerance $TOLERANCE, as $(id -un), column ${COLUMN:-unset}"
[ "$(wc -l </proc/net/route)" -gt 1 ] && echo "network: yes" || echo "network: no"
echo "{\"reward\": $right, \"form\": $form}" >/logs/verifier/reward.json
