# SPDX-License-Identifier: Apache-2.0
# Agents that print what nobody wants to read.
solve
case $fault in
flood) # 1 MiB on each stream, where 64 KiB are kept
	head -c 1048576 /dev/zero | tr '\0' x
	head -c 1048576 /dev/zero | tr '\0' y >&2
	;;
not-utf8)
	printf 'caf\351 \377\376 \033[31mred\033[0m\r\0zero\n'
	;;
held-open) # a child keeps the agent's stdout after its end
	sleep 1000 &
	echo "gone, and my child has my stdout"
	;;
esac
