#!/bin/sh
# make_rec_on_a_full_disk.sh MAKE_REC: in a mount namespace of its own; 77 where that is not allowed.
unshare -m true 2>/dev/null || { echo 'skipped: unshare -m is not allowed here' && exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
mkdir -p photos/dog small
head -c 200000 /dev/zero >photos/dog/large.jpg
unshare -m sh -c 'mount -t tmpfs -o size=64k none small && "$0" photos small/packed; code=$?
                  [ -z "$(ls -A small)" ] || echo "left over: $(ls -A small)"; exit $code' "$1" >out 2>&1
[ $? -eq 74 ] && grep -q 'cannot write small/packed.rec: No space left' out && ! grep 'left over' out || { cat out && exit 1; }
