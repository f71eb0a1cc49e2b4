# SPDX-License-Identifier: Apache-2.0
# Agents that end badly.
case $fault in
out-of-time)
	solve
	# Left behind: a child, one in a session of its own, and one without a parent.
	sleep 1000 &
	setsid sh -c 'trap "" TERM HUP; sleep 1000; :' >/dev/null 2>&1 &
	(setsid sh -c '(trap "" TERM HUP; sleep 1000; :) >/dev/null 2>&1 &' &)
	trap "" TERM # it won't go when it is asked to
	echo "thinking..."
	while :; do sleep 1000; done
	;;
signal)
	solve
	kill -SEGV $$
	;;
exit-code)
	solve
	echo "something is wrong" >&2
	exit 3
	;;
removes-workdir)
	solve
	cd /
	rm -rf "$TIDEMILL_WORKDIR"
	;;
removes-logs)
	solve
	rm -rf "$TIDEMILL_LOGS_DIR"
	ln -s "$HOST_FILE" "$TIDEMILL_LOGS_DIR" || :
	;;
unreadable-reports)
	solve
	echo '{"prompt_tokens": "many"' >"$TIDEMILL_LOGS_DIR/agent/usage.json"
	mkfifo "$TIDEMILL_LOGS_DIR/agent/status.json"
	;;
esac
