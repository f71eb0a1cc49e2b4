# SPDX-License-Identifier: Apache-2.0
# Agents that want to be there when the tests are.
case $fault in
daemon) # no parent, no session, no environment, no working directory of its trial
	sh -c 'cd / && env -i setsid sh -c "trap \"\" TERM HUP; while :; do
		mkdir -p $0/logs/verifier; echo 1 >$0/logs/verifier/reward.txt; done" '"$TIDEMILL_TRIAL_ID"' &' "$(dirname "$TIDEMILL_LOGS_DIR")" >/dev/null 2>&1
	;;
esac
