// What is wrong with the hosts of a run to come, out of what each one answered: plumbline doctor.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "launch/hosts/host_facts.h"

namespace plumb {

// A host's clock beside the one of the host that asked.
struct ClockOffset {
  double seconds = 0;      // how far it is ahead
  double uncertainty = 0;  // half of the round trip
};

// How one host answered.
struct HostAnswer {
  std::string name;
  bool answered = false;
  // Without an answer: what it is, what the transport said, what to do.
  std::string failure, failure_detail, remedy;
  double seconds = 0;  // until its answer
  HostFacts facts;
  std::optional<ClockOffset> clock;
  // By this host's look-up; nothing: it wasn't tried, or there was no time to.
  std::optional<std::vector<std::string>> addresses;
  bool look_up_was_late = false;
};

enum class Severity { error, warning, note };

// One finding; the same one of several hosts is one.
struct Finding {
  Severity severity = Severity::warning;
  std::string check;               // "program", "clock", …
  std::vector<std::string> hosts;  // in the order of the answers
  std::string what, remedy;
  static void fields(auto& self, auto&& each);
};

// Findings as they are collected.
class FindingList {
 public:
  // `detail`: what may differ from host to host, such as an amount; the first host's stands for all.
  void add(Severity severity, const std::string& check, const std::string& host, const std::string& what,
           const std::string& detail, const std::string& remedy);
  // In the order of their severity, then as they came.
  std::vector<Finding> take() &&;

 private:
  struct Collected {
    Finding finding;
    std::string detail;
    bool details_differ = false;
  };
  std::vector<Collected> collected_;
};

// Errors first, then warnings, then notes. `answers` isn't empty; `has_marker`: a marker was put into the log
// folder.
std::vector<Finding> find_faults(const std::vector<HostAnswer>& answers, bool has_marker);

// ok without errors and warnings; regression (1) with warnings; unavailable with errors: a run can't start.
ExitCode doctor_exit_code(const std::vector<Finding>& findings);

// A line for each finding, and a last one that counts; `seconds`: of all answers together.
std::string doctor_text(const std::vector<HostAnswer>& answers, const std::vector<Finding>& findings,
                        double seconds);
// {"schema": "plumbline.doctor/2", "exit_code", "seconds", "findings": [{"severity", "check", "hosts",
// "what", "remedy"}], "hosts": [{"host", "answered", "seconds", "clock_offset_seconds",
// "clock_uncertainty_seconds", "facts"}]}
nlohmann::ordered_json doctor_json(const std::vector<HostAnswer>& answers,
                                   const std::vector<Finding>& findings, double seconds);

}  // namespace plumb
