#!/usr/bin/env bash
# prose.sh ROOT: refuses by pattern what the rules of style in CONTRIBUTING.md forbid: in the documents openers, "is no", "that of",
# words that sound translated, sentences over 35 words and paragraphs over 80; in what programs print "option --x", "is
# wanted", "; give" and British spelling. options.md shows what programs print.
. "${BASH_SOURCE[0]%/*}/prelude.sh"
root=$(realpath "$1")

# Findings that may stay, as fixed strings of "file: …"; ten at most, and each must match something.
exceptions=()

# documents FILE…: "file: rule: text" of each finding. Code, tables' pipes and the targets of links don't count as words; a row of
# a table is no paragraph.
documents() {
  awk '
    function found(rule, text) { printf "%s: %s: %s\n", file, rule, substr(text, 1, 90) }
    # Prepositions that begin a sentence, and nouns replaced by "no", "that of".
    function check_words(text) {
      if (text ~ /^(Of|With which|So|Beside|Where) /) found("opener", text)
      if (text ~ /(^| )(is|are) no(ne)?( |$)/ && text !~ / no (more|less|longer) /) found("is no", text)
      if (text ~ /(^| )(that|those) of /) found("that of", text)
      if ((" " text " ") ~ / ([Bb]eside|[Nn]obody|in place of|in front of|carry|carries)[ ,]/) found("translated word", text)
    }
    function check(text, is_row,    sentences, n, i) {
      gsub(/\]\([^)]*\)/, "]", text)
      gsub(/[*|]/, " ", text)
      if (!is_row && split(text, sentences, /[ ]+/) - (text ~ / $/) > 80) found("over 80 words", text)
      n = split(text, sentences, /[.!?:;]["”)]*([ ]+|$)/)
      for (i = 1; i <= n; ++i) { sub(/^[ ]*(-|[0-9]+\.)?[ ]*/, "", sentences[i]); check_words(sentences[i]) }
      n = split(text, sentences, /[.!?]["”)]*([ ]+|$)/)
      for (i = 1; i <= n; ++i) if (split(sentences[i], words, /[ ]+/) > 35) found("over 35 words", sentences[i])
    }
    function end() { if (text != "") check(text, 0); text = "" }
    FNR == 1 { end(); code = 0; file = FILENAME }
    /^ *```/ { end(); code = !code; next }
    code || /^    / || /^<!--/ { next }
    { gsub(/`[^`]*`/, "x") }
    /^\|/ { end(); n = split($0, cells, "|"); for (i = 1; i <= n; ++i) check(cells[i], 1); next }
    /^$|^#/ { end(); next }
    /^ *(-|[0-9]+\.) / { end() }
    { text = text " " $0 }
    END { end() }' "$@"
}

# printed FILE…: findings in the strings of sources and in transcripts.
printed() {
  local british='colour|centre|behaviour|neighbour|favour|licence|analys(e|ed|ing)|optimis|normalis|organis|recognis|initialis|serialis|synchronis|modelled|labelled|travelled|grey'
  grep -HoE "(\"|^|: )options? (-|\{)[^\"]*" "$@" | sed 's/^/option: /' || true
  grep -HoE "\"[^\"]*; (give|take|name (an?|another|one|its|the)) [^\"]*\"" "$@" | sed 's/^/verb: /' || true
  grep -HoE "\"[^\"]*\<(is|are) (no|none|wanted)\>[^\"]*\"" "$@" | grep -vE '[Tt]here is no|no (longer|more)' | sed 's/^/is no: /' || true
  grep -HoiE "\"[^\"]*\<($british)[a-z]*[^\"]*\"" "$@" | grep -vE '_(centre|modelled)|modelled_' | sed 's/^/British: /' || true
}

# Each pattern finds its own example, and nothing in plain text.
cat >"$scratch/bad.md" <<'END'
Of the runs one failed. It is no figure, and that of the host is better.
- So it ends.
- A host stands in front of it.
END
{ printf 'word %.0s' {1..36}; echo; } >>"$scratch/bad.md"
{ printf '\nword word. %.0s' {1..41}; echo; } | tr -d '\n' >>"$scratch/bad.md"
printf 'fail("option --x: is for y");\nfail("a colour");\nfail("it is no host");\nfail("no x; give one");\n' >"$scratch/bad.cpp"
printf 'A run ends. "It does" (so far): this is not a host.\n\n| a | is nothing |\n\n```\nOf code\n```\n' >"$scratch/good.md"
found=$(documents "$scratch/bad.md")
for rule in opener 'is no' 'that of' 'translated word' 'over 35 words' 'over 80 words'; do
  grep -q ": $rule: " <<<"$found" || fail "'$rule' does not find its example in: $found"
done
[ "$(printed "$scratch/bad.cpp" | wc -l)" -eq 4 ] || fail "the patterns for programs do not find their examples"
[ -z "$(documents "$scratch/good.md")" ] || fail "plain text is refused: $(documents "$scratch/good.md")"

cd "$root"
mapfile -t pages < <(find . -maxdepth 1 -name '*.md' ! -name CHANGELOG.md; find docs -name '*.md' ! -name options.md; find ./*/README.md ./results/peers/README.md)
mapfile -t sources < <(find base models kernels comm results launch plumbline bench \( -name '*.h' -o -name '*.cpp' -o -name '*.js' -o -name '*.sh' -o -path launch/run \); find tests/golden -name '*.txt')
[ ${#pages[@]} -gt 20 ] && [ ${#sources[@]} -gt 200 ] || fail "no documents or sources in $root"
all=$(documents "${pages[@]}"; printed "${sources[@]}")
left=$all
[ ${#exceptions[@]} -le 10 ] || fail "${#exceptions[@]} exceptions; at most ten"
for exception in "${exceptions[@]}"; do
  grep -qF "$exception" <<<"$all" || fail "nothing needs the exception '$exception' any more"
  left=$(grep -vF "$exception" <<<"$left" || true)
done
[ -z "$left" ] || fail "against the rules of style in CONTRIBUTING.md:
$left"
