# SPDX-License-Identifier: Apache-2.0
# Agents that leave sockets.
solve
mkdir out
for at in "$TIDEMILL_LOGS_DIR/artifacts" out; do
	(cd "$at" && python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")')
done
