// A verdict on hosts, with which plumbline screen, check and accept end.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "results/record/fields.h"

namespace plumb {

inline constexpr const char* kVerdictFile = "accept.json";

// In the order of their weight: the worst one of the checks is the verdict.
enum class Outcome { skip, pass, unknown, fail };
// "skip", "pass", "can't tell", "FAIL".
std::string_view word_of(Outcome outcome);

// One check of one or more hosts, links or devices that came out alike.
struct Check {
  std::string check;               // "facts", "device alone", "link", "scaling 2n1g"
  std::vector<std::string> where;  // "n1", "n3 GPU 1", "n1 - n4"
  std::vector<std::string> hosts;  // to leave out if it fails
  std::string expected, measured;  // texts with their units; may be empty
  std::string source;              // of what is expected: "expect.json", "median of 3", "--link"
  std::optional<double> limit;     // allowed distance as a share of what is expected
  Outcome outcome = Outcome::pass;
  std::string remark;  // cause or remedy
  std::size_t runs = 0;

  static void fields(auto& self, auto&& each) {
    each("check", self.check), each("where", self.where);
    each("hosts", self.hosts, Field{"that it is about"});
    each("expected", self.expected), each("measured", self.measured), each("source", self.source);
    each("limit", self.limit,
         Field{.about = "allowed distance, share of what is expected", .null_if_nothing = true});
    each("verdict", std::string(word_of(self.outcome)), Field{"pass, FAIL, can't tell or skip"});
    each("remark", self.remark, Field{"cause or remedy"});
    each("runs", self.runs, Field{.about = "that measured stands on", .written = self.runs > 0});
  }
};

// A device's run alone, against what its kind should reach.
struct DeviceSpeed {
  std::string device, name;  // "n7 GPU 3", "NVIDIA H100"
  double images_per_second = 0, expected = 0;
  double limit = 0;  // allowed loss, share
  Outcome outcome = Outcome::pass;
  static void fields(auto& self, auto&& each) {
    each("device", self.device), each("name", self.name), each("images_per_second", self.images_per_second);
    each("expected", self.expected, Field{"images/s"}),
        each("limit", self.limit, Field{"allowed loss, share"});
    each("verdict", std::string(word_of(self.outcome)));
  }
};

struct Verdict {
  std::vector<std::string> hosts;  // all that were to be judged, in their order
  std::vector<Check> checks;
  std::vector<DeviceSpeed> devices;
  std::optional<double> expected_link;  // bytes/s that a link between two hosts should reach
  std::string began;                    // "2026-11-27T11:42:00Z"
  double seconds = 0;                   // that judging took
  std::string folder;                   // of its files; empty: there is none
  std::string next;                     // what to do next; may be empty

  void add(Check check) { checks.push_back(std::move(check)); }
  // fail if a check failed, else unknown if one can't tell or nothing passed, else pass.
  Outcome outcome() const;
  // Hosts of failed checks, in their order, and the others.
  std::vector<std::string> excluded() const;
  std::vector<std::string> kept() const;
  static void fields(auto& self, auto&& each);
};

// The time now in UTC, by strftime's `format`.
std::string utc_now(const char* format = "%FT%TZ");

// Exit codes of screen, check and accept: 0 pass, 1 fail, 2 can't tell.
int exit_code_of(Outcome outcome);

// The first line, at most 80 columns: "n3 FAIL device alone: 17.2 images/s, expected 64.3".
std::string headline(const Verdict& verdict);
// The table, worst checks first, at most 30 lines within 110 columns.
std::string verdict_text(const Verdict& verdict);
extern const Document kVerdictDocument;
nlohmann::ordered_json verdict_json(const Verdict& verdict);
// accept.json as it is. Throws Error(bad_data) that names the file and what is wrong with it.
nlohmann::ordered_json read_verdict(const std::filesystem::path& file);
// A testcase for each check.
std::string verdict_junit(const Verdict& verdict);
// plumbline_accept_check{check=,where=} 1 pass, 0 fail; none for others. For node_exporter's textfiles.
std::string verdict_prometheus(const Verdict& verdict);

}  // namespace plumb
