#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
. /tests/helper.sh
has "arrived: Aurora" && kept=1 || kept=0
has "departed: Aurora" && [ "$PORT/$SHIP" = Eling/Unknown ] && right=1 || right=0
echo "{\"reward\": $right, \"kept\": $kept}" >/logs/verifier/reward.json
