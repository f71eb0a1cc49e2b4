# SPDX-License-Identifier: Apache-2.0
# Agents that use up what limits.yaml gives them.
case $fault in
memory)
	solve
	x=$(head -c 400000000 /dev/zero | tr '\0' x)
	echo "it holds ${#x} bytes"
	;;
processes)
	solve
	i=0
	while [ $i -lt 200 ]; do
		sleep 1000 &
		i=$((i + 1))
	done
	;;
open-files)
	solve
	mkdir many
	i=0
	while [ $i -lt 100 ]; do
		: >many/$i
		i=$((i + 1))
	done
	paste many/* # holds all of them open at once
	;;
disk)
	solve
	head -c 100000000 /dev/zero >large
	;;
disk-and-no-answer)
	head -c 100000000 /dev/zero >large
	;;
file-count)
	solve
	i=0
	while : >"many$i"; do i=$((i + 1)); done
	;;
esac
