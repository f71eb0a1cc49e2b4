# SPDX-License-Identifier: Apache-2.0
# Agents that are careless with their key.
solve
echo "my key is $FAULTS_API_KEY"
echo "error: 401 for $FAULTS_API_KEY" >&2
half=$((${#FAULTS_API_KEY} / 2))
printf 'in two writes: %s' "$(printf %s "$FAULTS_API_KEY" | head -c $half)"
printf '%s\n' "$(printf %s "$FAULTS_API_KEY" | tail -c +$((half + 1)))"
mkdir out
echo "key=$FAULTS_API_KEY" >out/config
echo "a name can leak too" >"out/$FAULTS_API_KEY.txt"
echo "{\"role\": \"assistant\", \"content\": \"the key is $FAULTS_API_KEY\"}" >"$TIDEMILL_LOGS_DIR/agent/trajectory.jsonl"
echo "{\"termination_reason\": \"max_turns\", \"detail\": \"with $FAULTS_API_KEY\"}" >"$TIDEMILL_LOGS_DIR/agent/status.json"
