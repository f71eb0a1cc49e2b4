#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
said=
{ exec 3<>/dev/tcp/127.0.0.1/7007 && read -r said <&3; } 2>/dev/null
[ "$said" = "fixed white" ] && echo 1 >/logs/verifier/reward.txt || echo 0 >/logs/verifier/reward.txt
