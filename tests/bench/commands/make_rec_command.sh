#!/bin/sh
# make_rec as users call it: exit codes, what goes to stdout and what to stderr, what is left.
make_rec=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0

fail() {
  echo "$1"
  failures=$((failures + 1))
}

# expect CODE WORD ARGUMENTS…: the exit code, and a word somewhere in the output.
expect() {
  code=$1
  word=$2
  shift 2
  "$make_rec" "$@" >"$work/.out" 2>"$work/.err"
  got=$?
  if [ $got -ne "$code" ] || ! grep -q -e "$word" "$work/.out" "$work/.err"; then
    fail "make_rec $*: exit $got (wanted $code), '$word' wanted in: $(cat "$work/.out" "$work/.err")"
  fi
}

mkdir -p photos/cat photos/dog empty
printf 'abcde' >photos/cat/1.jpg
printf 'fghi' >photos/dog/1.jpg

expect 0 'Usage: make_rec' --help
expect 0 'packed.idx: 2 images in 2 classes from photos' photos packed
[ -s .err ] && fail "stderr is not empty"
[ "$(wc -l <.out)" -eq 1 ] || fail "stdout isn't one line"
[ "$(cat packed.idx)" = "$(printf '0\t0\n1\t40')" ] || fail "another index: $(cat packed.idx)"
# By hand: magic, length, header (flag, label, id, id2), bytes, zeros.
{
  printf '\012\043\327\316\035\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0abcde\0\0\0'
  printf '\012\043\327\316\034\0\0\0\0\0\0\0\0\0\200\077\001\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0fghi'
} >by_hand
cmp by_hand packed.rec || fail "other bytes than by hand"

expect 73 'packed.rec exists already' photos packed
expect 73 'OUT packed.rec: the file exists already' photos packed.rec
expect 73 "OUT none/packed: folder none does not exist; create it" photos none/packed
expect 65 'argument FOLDER: none: no such folder' none other
expect 65 'argument FOLDER: empty: holds no class folders' empty other
: >photos/dog/2.jpg
expect 65 'photos/dog/2.jpg' photos other
expect 64 'OUT' photos
expect 64 'option --oout: no such option' photos --oout other
[ "$(echo *)" = "by_hand empty packed.idx packed.rec photos" ] || fail "left over: $(echo *)"

# A full disk, in a mount namespace of its own, where that is allowed.
if unshare -m true 2>/dev/null; then
  rm photos/dog/2.jpg
  head -c 200000 /dev/zero >photos/dog/large.jpg
  mkdir small
  unshare -m sh -c 'mount -t tmpfs -o size=64k none small && "$0" photos small/packed; code=$?
                    [ -z "$(ls -A small)" ] || echo "left over: $(ls -A small)"; exit $code' "$make_rec" >.out 2>&1
  [ $? -eq 74 ] || fail "a full disk isn't told: $(cat .out)"
  grep -q 'cannot write small/packed.rec: No space left' .out || fail "a full disk isn't named: $(cat .out)"
  grep 'left over' .out && fail "a full disk leaves files"
fi

exit $((failures > 0))
