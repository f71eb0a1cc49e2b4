#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
. /tests/helper.sh
has "arrived: $SHIP" && reward 1 || reward 0
