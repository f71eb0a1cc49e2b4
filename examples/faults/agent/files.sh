# SPDX-License-Identifier: Apache-2.0
# Agents that leave files which can't be kept, or shouldn't be followed.
solve
mkdir "$TIDEMILL_WORKDIR/out"
# both does the same where everything is kept and where a pattern chooses.
both() {
	for at in "$TIDEMILL_LOGS_DIR/artifacts" "$TIDEMILL_WORKDIR/out"; do
		cd "$at" && "$@"
	done
}
many() {
	i=0
	while [ $i -lt 1500 ]; do
		: >"file-$i"
		i=$((i + 1))
	done
}
large() {
	head -c 2000000 /dev/zero >large
	echo small >small
}
sparse() { dd if=/dev/null of=sparse bs=1 count=0 seek=1099511627776 2>/dev/null; }
special() {
	mkfifo fifo
	mkfifo "$TIDEMILL_WORKDIR/pipe"
	if mknod device c 1 3 2>/dev/null; then echo "made a device"; else echo "may not make devices"; fi
}
links() {
	ln -s "$HOST_FILE" file
	ln -s "$(dirname "$HOST_FILE")" directory
	ln -s . loop
	ln -s nowhere dangling
}
odd_names() {
	name=$(printf 'not\377utf8')
	for name in "$name" 'new
line' ' space ' -rf '~' 'a~b' 'C:\x' '$HOME' '..hidden' 'é' index.json 'index.json/no'; do
		echo "$name" >"$name" 2>/dev/null
	done
	echo long >"$(head -c 255 /dev/zero | tr '\0' n)"
}
deep() {
	dir=
	while [ ${#dir} -lt 400 ]; do
		dir=d/$dir
	done
	mkdir -p "$dir" && echo bottom >"${dir}file"
}
unreadable() {
	mkdir locked
	echo inside >locked/file
	chmod 000 locked/file locked
}
both "$(echo "$fault" | tr - _)"
