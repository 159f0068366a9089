s/plumbline [0-9]+\.[0-9]+\.[0-9]+ \([^)]*\)/plumbline VERSION (COMMIT)/
s/(created: |"created": )"[^"]*"/\1"TIME"/
s/device [^,]* is a cpu/device CPU is a cpu/
