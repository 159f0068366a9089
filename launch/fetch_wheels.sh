#!/usr/bin/env bash
# fetch_wheels.sh FOLDER "DIRECTORY…" "NAME==VERSION SHA256"…: unpacks the named directories (include, bin, …) of pinned
# PyPI wheels into FOLDER, whichever python3 is there: nvidia/cudnn/include/cudnn.h becomes FOLDER/include/cudnn.h. Says
# nothing and touches nothing if FOLDER holds just that already. pip's own configuration decides where wheels come from.
# Exit codes: 0 all there, 64 usage, 69 could not be fetched, 72 python3 has no pip; FOLDER is as it was unless 0.
. "$(dirname "${BASH_SOURCE[0]}")/prelude.sh" || exit

[ $# -ge 3 ] ||
  give_up 64 "expected FOLDER, \"DIRECTORY…\" and at least one \"NAME==VERSION SHA256\", got $# argument(s)"
folder=$1
directories=$2
pins=("${@:3}")

contents=$(printf '%s\n' "$directories" "${pins[@]}")
record=$folder/fetched.txt
[ ! -e "$record" ] || [ "$(<"$record")" != "$contents" ] || exit 0
python3 -m pip --version >/dev/null 2>&1 || give_up 72 "python3 with pip is needed to fetch ${pins[*]%% *}"

mkdir -p "$(dirname "$folder")"
work=$(mktemp -d "$folder.XXXX")
trap 'rm -rf "$work"' EXIT
echo "fetch_wheels.sh: fetching ${pins[*]%% *} into $folder" >&2

for pin in "${pins[@]}"; do echo "${pin%% *} --hash=sha256:${pin##* }"; done >"$work/requirements.txt"
platforms=()
for libc in 2_28 2_27 2_17 2_12 2_5; do platforms+=(--platform "manylinux_${libc}_x86_64"); done
if ! python3 -m pip install --quiet --no-deps --no-compile --require-hashes --retries 1 --timeout 30 --only-binary :all: \
  --python-version 3.11 --implementation cp --abi cp311 "${platforms[@]}" \
  --target "$work/packages" --requirement "$work/requirements.txt" >"$work/report" 2>&1; then
  tail -n 3 "$work/report" >&2
  give_up 69 "pip could not fetch ${pins[*]%% *} (see above); check the network and pip's index"
fi

for package in "$work/packages" "$work"/packages/nvidia/*; do
  for directory in $directories; do
    mkdir -p "$work/unpacked/$directory"
    [ ! -d "$package/$directory" ] || cp -r "$package/$directory/." "$work/unpacked/$directory"
  done
done
printf '%s\n' "$contents" >"$work/unpacked/fetched.txt"
rm -rf "$folder"
mv "$work/unpacked" "$folder"
