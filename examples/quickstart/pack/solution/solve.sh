# SPDX-License-Identifier: Apache-2.0
# Solves every puzzle. Run it with the oracle agent.
set -eu

input() { printf '%s\n' "$INPUT"; }

solve() {
	case $TIDEMILL_TASK_ID in
	count-words) input | awk '{ print NF }' ;;
	sort-numbers) input | sort -n ;;
	primes) awk 'BEGIN {
		for (n = 2; n < 50; n++) {
			for (d = 2; d * d <= n && n % d; d++);
			if (d * d > n) print n
		}
	}' ;;
	fizzbuzz) awk 'BEGIN {
		for (n = 1; n <= 15; n++) {
			word = (n % 3 ? "" : "Fizz") (n % 5 ? "" : "Buzz")
			print word == "" ? n : word
		}
	}' ;;
	rot13) input | tr 'A-Za-z' 'N-ZA-Mn-za-m' ;;
	roman) input | awk 'BEGIN {
		count = split("1000 M 900 CM 500 D 400 CD 100 C 90 XC 50 L 40 XL 10 X 9 IX 5 V 4 IV 1 I", sign, " ")
	} {
		text = ""
		for (i = 1; i < count; i += 2) while ($1 >= sign[i]) { text = text sign[i + 1]; $1 -= sign[i] }
		print text
	}' ;;
	longest-word) input | awk '{
		best = ""
		for (i = 1; i <= NF; i++) if (length($i) > length(best)) best = $i
		print best
	}' ;;
	palindromes) input | awk '{
		text = tolower($0)
		gsub(/ /, "", text)
		back = ""
		for (i = length(text); i > 0; i--) back = back substr(text, i, 1)
		if (text == back) print
	}' ;;
	*)
		echo "unknown puzzle: $TIDEMILL_TASK_ID" >&2
		return 1
		;;
	esac
}

solve >answer.txt
