// What is wrong with the hosts of a run to come, out of what each one answered: plumbline doctor.
#pragma once

#include <algorithm>
#include <iterator>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "launch/hosts/host_facts.h"
#include "results/record/fields.h"
#include "results/record/note.h"

namespace plumb {

// A row of docs/reference/findings.md: a code that stays the same, how bad it is, what it is about, what to
// do.
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

// How one host answered.
struct HostAnswer {
  std::string name;
  bool answered = false;
  // Without an answer: what it is, what the transport said, what to do.
  std::string failure, failure_detail, remedy;
  double seconds = 0;  // until its answer
  HostFacts facts;
  // By this host's look-up; nothing: it wasn't tried, or there was no time to.
  std::optional<std::vector<std::string>> addresses;
  static void fields(auto& self, auto&& each) {
    each("host", self.name), each("answered", self.answered);
    each("seconds", self.seconds, Field{.about = "until its answer", .finite = true});
    each("facts", fields::written(self.facts),
         Field{.about = "as doctor --here prints them", .written = self.answered});
  }
};

// What one host's finding adds to its kind.
struct FindingDetails {
  std::string entity;  // "5" of GPUs, "mlx5_0:1" of ports, a program's path
  // Instead of the kind's meaning and action.
  std::string what, action;
  std::string detail;  // may differ from host to host, such as an amount; the first host's stands for all
};

// Notes on hosts as they are collected; the same one of several hosts is one.
class HostNotes {
 public:
  void add(FindingCode code, const std::string& host, const FindingDetails& details = {});
  // In the order of their severity, then as they came. A text is "what (detail): remedy".
  std::vector<Note> take() &&;

 private:
  struct Collected {
    Note note;  // its text is what alone
    std::string detail;
    bool details_differ = false;
  };
  std::vector<Collected> collected_;
};

// What host_comparison.cpp adds: hosts that differ from the others, and in what.
void compare_hosts(const std::vector<const HostAnswer*>& answers, HostNotes& found);

// What plumbline doctor reports.
struct DoctorReport {
  std::vector<Note> notes;  // errors first, then warnings, then notes
  std::vector<HostAnswer> hosts;
  double seconds = 0;  // of all answers together
  // ok without errors and warnings; regression (1) with warnings; unavailable with errors: a run can't start.
  ExitCode exit_code() const;
  static void fields(auto& self, auto&& each) {
    each("exit_code", static_cast<int>(self.exit_code()));
    each("seconds", self.seconds, Field{.about = "of all answers together", .finite = true});
    each("notes", self.notes), each("hosts", self.hosts);
  }
};

// `answers` isn't empty; `expected_gpus`: of every host.
std::vector<Note> find_faults(const std::vector<HostAnswer>& answers, std::size_t expected_gpus = 0);

// A line for each note, and a last one that counts.
std::string doctor_text(const DoctorReport& report);
extern const Document kDoctorDocument;
nlohmann::ordered_json doctor_json(const DoctorReport& report);

}  // namespace plumb
