# SPDX-License-Identifier: Apache-2.0
# The reward is 1 if answer.txt says 42. Some tasks are about graders that fail.
cd "$TIDEMILL_LOGS_DIR/verifier" || exit
case $TIDEMILL_TASK_ID in
grader/exit-code)
	echo 1 >reward.txt
	echo "Traceback: the grader has a bug" >&2
	exit 7
	;;
grader/killed)
	kill -KILL $$
	;;
grader/out-of-time)
	echo 1 >reward.txt
	sleep 1000 &
	wait
	;;
grader/no-verdict) ;;
grader/verdict-elsewhere)
	echo 1 >"$TIDEMILL_WORKDIR/reward.txt"
	;;
grader/not-a-number)
	echo NaN >reward.txt
	;;
grader/nested)
	echo '{"reward": {"style": 1}}' >reward.json
	;;
grader/empty)
	: >reward.txt
	;;
grader/link)
	ln -s "$TIDEMILL_WORKDIR/answer.txt" reward.txt
	;;
python/planted-modules)
	# -I: without it the modules that the agent planted would run as the grader.
	exec python3 -I "$TIDEMILL_TESTS_DIR/check.py"
	;;
*)
	ls "$TIDEMILL_TESTS_DIR"
	answer=$TIDEMILL_WORKDIR/answer.txt
	reward=0
	if [ -f "$answer" ] && [ ! -L "$answer" ] && [ "$(head -c 100 "$answer")" = 42 ]; then
		reward=1
	else
		echo "there is no answer.txt that says 42"
	fi
	case $TIDEMILL_TASK_ID in
	# A reward.txt goes before it: one that the agent got in would count.
	forged/* | escape/*) echo "{\"reward\": $reward}" >reward.json ;;
	*) echo "$reward" >reward.txt ;;
	esac
	;;
esac
