# SPDX-License-Identifier: Apache-2.0
# Compares answer.txt with the expected lines. The reward is the share of lines that
# are right; superfluous lines count as wrong.
set -eu
LC_ALL=C
export LC_ALL

expected=$TIDEMILL_TESTS_DIR/expected/$TIDEMILL_TASK_ID.txt
answer=$TIDEMILL_WORKDIR/answer.txt
verdict=$TIDEMILL_LOGS_DIR/verifier/reward.json

[ -s "$expected" ] || { echo "no expected answer for $TIDEMILL_TASK_ID" >&2; exit 1; }
if [ ! -f "$answer" ]; then
	echo "there is no answer.txt"
	answer=/dev/null
fi

awk -v verdict="$verdict" '
	NR == FNR { want[FNR] = $0; total = FNR; next }
	{ sub(/[ \t\r]+$/, ""); given = FNR }
	FNR in want && want[FNR] == $0 { right++; next }
	{ printf "line %d: want \"%s\", got \"%s\"\n", FNR, want[FNR], $0 }
	END {
		lines = given > total ? given : total
		printf "{\"reward\": %.4f, \"lines_right\": %d, \"lines\": %d}\n", right / lines, right, total > verdict
	}
' "$expected" "$answer"
cat "$verdict"
