#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Run in the workdir before the agent, as its user. It takes itself away.
tr -d ' ' <draft.txt >manifest.txt
rm -- draft.txt "$0"
