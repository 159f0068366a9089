"""list_skipped.py JUNIT: copies what ctest prints from standard input. Before its summary comes a list of the tests that
were skipped, by reason, from the file that ctest writes with --output-junit."""
import collections
import re
import sys
import xml.etree.ElementTree


def reason(output: str) -> str:
    lines = output.strip().splitlines() or ["no reason given"]
    for above, line in zip(lines, lines[1:]):
        if above.endswith(": Skipped"):  # GoogleTest
            return line
    return lines[-1].removeprefix("skipped: ")


summary = []
for line in sys.stdin:
    if summary or re.match(r"\d+% tests passed", line):
        summary.append(line)
    else:
        print(line, end="", flush=True)
if not summary:
    sys.exit()  # ctest didn't come to its end
skipped = collections.defaultdict(list)
for case in xml.etree.ElementTree.parse(sys.argv[1]).iter("testcase"):
    if case.find("skipped") is not None:
        skipped[reason(case.findtext("system-out"))].append(case.get("name"))
if skipped:
    print("Skipped:")
    print(*(f"  {why}: {', '.join(names)}\n" for why, names in skipped.items()), sep="")
print(*summary, sep="", end="")
