// Every finding of `plumbline doctor`, out of the table of docs/reference/findings.md: a code that stays the
// same, how bad it is, what it is about, what to do.
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

#include "results/record/note.h"

namespace plumb {

struct FindingKind {
  std::string_view code;
  Severity severity;
  const char* check;    // Note::kind
  const char* entity;   // host, gpu, port or program
  const char* meaning;  // the sentence itself, unless it has values
  const char* action;
};

inline constexpr FindingKind kFindingKinds[]{
#include "launch/hosts/finding_kinds.inc"  // a row per line of that page
};

// One of them by its code, which the compiler checks.
struct FindingCode {
  const FindingKind* kind;
  consteval FindingCode(const char* code)
      : kind(std::ranges::find(kFindingKinds, std::string_view(code), &FindingKind::code)) {
    if (kind == std::end(kFindingKinds)) throw "no such finding";
  }
};

}  // namespace plumb
