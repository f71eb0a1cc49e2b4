#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
echo "departed: $(cat manifest.txt)" >>log.txt
