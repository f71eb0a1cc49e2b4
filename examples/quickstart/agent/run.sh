# SPDX-License-Identifier: Apache-2.0
# A small agent with small flaws. It knows some puzzles, has half an idea of others,
# guesses at one and gives up on the last; some of it depends on the trial, as with a
# real agent that is not sure.
set -eu

cat "$TIDEMILL_INSTRUCTION_FILE"
echo "--- trial $TIDEMILL_TRIAL_INDEX of $TIDEMILL_TASK_ID, thinking"

input() { printf '%s\n' "$INPUT"; }

case $TIDEMILL_TASK_ID in
count-words)
	input | awk '{ print NF }' >answer.txt
	;;
sort-numbers) # forgets that 10 is more than 9
	input | LC_ALL=C sort >answer.txt
	;;
primes)
	awk 'BEGIN {
		for (n = 2; n < 50; n++) {
			prime = 1
			for (d = 2; d < n; d++) if (n % d == 0) prime = 0
			if (prime) print n
		}
	}' >answer.txt
	;;
fizzbuzz) # asks about 15 too late in its first trial
	awk -v first="$TIDEMILL_TRIAL_INDEX" 'BEGIN {
		for (n = 1; n <= 15; n++) {
			if (first != 0 && n % 15 == 0) print "FizzBuzz"
			else if (n % 3 == 0) print "Fizz"
			else if (n % 5 == 0) print "Buzz"
			else print n
		}
	}' >answer.txt
	;;
rot13)
	input | tr 'A-Za-z' 'N-ZA-Mn-za-m' >answer.txt
	;;
roman) # has never heard of IV and IX
	input | awk 'BEGIN { count = split("1000 M 500 D 100 C 50 L 10 X 5 V 1 I", sign, " ") } {
		text = ""
		for (i = 1; i < count; i += 2) while ($1 >= sign[i]) { text = text sign[i + 1]; $1 -= sign[i] }
		print text
	}' >answer.txt
	;;
longest-word) # guesses: the first, the last, and only then it looks
	case $TIDEMILL_TRIAL_INDEX in
	0) input | awk '{ print $1 }' ;;
	1) input | awk '{ print $NF }' ;;
	*) input | awk '{
		best = ""
		for (i = 1; i <= NF; i++) if (length($i) > length(best)) best = $i
		print best
	}' ;;
	esac >answer.txt
	;;
*)
	echo "this one is beyond me"
	exit 1
	;;
esac
echo "--- done:"
cat answer.txt
