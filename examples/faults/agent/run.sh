# SPDX-License-Identifier: Apache-2.0
# An agent that goes wrong in the way that its task is called after.
kind=${TIDEMILL_TASK_ID%%/*}
fault=${TIDEMILL_TASK_ID#*/}

# solve does what was asked for: the fault comes on top.
solve() { echo 42 >"$TIDEMILL_WORKDIR/answer.txt"; }

case $kind in
grader | setup) solve ;;
*) . "$TIDEMILL_WORKDIR/agent/$kind.sh" ;;
esac
