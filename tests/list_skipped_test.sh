#!/usr/bin/env bash
# list_skipped_test.sh: list_skipped.py behind a ctest whose tests pass, fail and are skipped.
. "${BASH_SOURCE[0]%/*}/prelude.sh"
cat >"$scratch/CMakeLists.txt" <<'END_OF_PROJECT'
cmake_minimum_required(VERSION 3.25)
project(some_tests NONE)
enable_testing()
add_test(NAME passes COMMAND true)
add_test(NAME fails COMMAND false)
add_test(NAME has_no_tool COMMAND sh -c "echo found nothing; echo 'skipped: no such tool'; exit 77")
add_test(NAME has_none_either COMMAND sh -c "echo 'skipped: no such tool'; exit 77")
add_test(NAME is_silent COMMAND sh -c "exit 77")
add_test(NAME google.Test COMMAND printf "t.cpp:7: Skipped\\nthis CPU has < 8\\n\\n[  SKIPPED ] Google.Test (0 ms)\\n")
set_tests_properties(has_no_tool has_none_either is_silent PROPERTIES SKIP_RETURN_CODE 77)
set_tests_properties(google.Test PROPERTIES SKIP_REGULAR_EXPRESSION "\\[  SKIPPED \\]")
END_OF_PROJECT
cmake -S "$scratch" -B "$scratch/build" >/dev/null
code=0
ctest --test-dir "$scratch/build" --output-junit tests.xml 2>/dev/null |
  python3 "${BASH_SOURCE[0]%/*}/list_skipped.py" "$scratch/build/tests.xml" >"$scratch/out" || code=$?
sed -n '/^Skipped/,$p' "$scratch/out" | grep -v '^Total\|^$' | diff - <(
  echo 'Skipped:
  no such tool: has_no_tool, has_none_either
  no reason given: is_silent
  this CPU has < 8: google.Test
83% tests passed, 1 tests failed out of 6
The following tests did not run:'
  printf '\t  %s\n' '3 - has_no_tool (Skipped)' '4 - has_none_either (Skipped)' '5 - is_silent (Skipped)' \
    '6 - google.Test (Skipped)'
  printf 'The following tests FAILED:\n\t  2 - fails (Failed)\n'
)
[ $code = 8 ] || { echo "exit code $code instead of ctest's 8"; exit 1; }
