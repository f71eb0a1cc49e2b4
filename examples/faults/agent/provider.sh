# SPDX-License-Identifier: Apache-2.0
# Agents whose model fails them, and who say so.
failed() { echo "{\"termination_reason\": \"$1\", \"detail\": \"$2\"}" >"$TIDEMILL_LOGS_DIR/agent/status.json"; }
case $fault in
rate-limit) failed rate_limit "429 Too Many Requests" ;;
api-error) failed api_error "503 Service Unavailable" ;;
recovers)
	solve
	[ "$TIDEMILL_ATTEMPT" != 1 ] || failed api_timeout "no answer in 60s"
	;;
esac
