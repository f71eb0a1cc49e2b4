#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
echo "arrived: Aurora" >log.txt
