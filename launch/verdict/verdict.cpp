#include "launch/verdict/verdict.h"

#include <spdlog/fmt/chrono.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <ranges>
#include <utility>

#include "base/error.h"
#include "base/junit.h"
#include "base/paths.h"
#include "base/shallow_json.h"
#include "base/text.h"
#include "base/text_table.h"
#include "base/units.h"
#include "base/whole_file.h"
#include "launch/host_names.h"

namespace plumb {
namespace {

constexpr std::size_t kMostRows = 14, kMostRemarks = 5, kHeadlineColumns = 80;

std::string limit_text(const Check& check) {
  return check.limit ? fmt::format("-{:.0f} %", 100 * *check.limit) : "";
}

// "n1 - n3", "n7 GPU 3"; of several the hosts, and how many devices they have: "n[1-4] (32)".
std::string where_text(const Check& check) {
  if (check.where.size() == 1) return check.where.front();
  const std::vector<std::string>& hosts = check.hosts.empty() ? check.where : check.hosts;
  return short_host_list_text(hosts) +
         (check.where.size() == hosts.size() ? "" : fmt::format(" ({})", check.where.size()));
}

// The worst check first, in order among equals.
std::vector<Check> sorted_checks(const Verdict& verdict) {
  std::vector<Check> checks = verdict.checks;
  std::ranges::stable_sort(checks, std::ranges::greater(), &Check::outcome);
  return checks;
}

std::string verdict_word(const Verdict& verdict) {
  const Outcome outcome = verdict.outcome();
  return outcome == Outcome::unknown ? "CAN'T TELL" : outcome == Outcome::pass ? "PASS" : "FAIL";
}

std::string exclusion_text(const Verdict& verdict) {
  const std::vector<std::string> excluded = verdict.excluded(), kept = verdict.kept();
  if (excluded.empty() || kept.empty()) return "";
  return fmt::format("leave out: srun --exclude={} | mpirun -H {}\n", host_list_text(excluded),
                     fmt::join(kept, ","));
}

}  // namespace

std::string_view word_of(Outcome outcome) {
  static constexpr std::array<std::string_view, 4> kWords{"skip", "pass", "can't tell", "FAIL"};
  return kWords[static_cast<std::size_t>(outcome)];
}

Outcome Verdict::outcome() const {
  Outcome worst = Outcome::skip;
  for (const Check& check : checks) worst = std::max(worst, check.outcome);
  return worst == Outcome::skip ? Outcome::unknown : worst;
}

std::vector<std::string> Verdict::excluded() const {
  std::vector<std::string> found;
  for (const std::string& host : hosts)
    if (std::ranges::any_of(checks, [&](const Check& check) {
          return check.outcome == Outcome::fail && std::ranges::count(check.hosts, host) > 0;
        }))
      found.push_back(host);
  return found;
}

std::vector<std::string> Verdict::kept() const {
  std::vector<std::string> found = hosts;
  for (const std::string& host : excluded()) std::erase(found, host);
  return found;
}

std::string utc_now(const char* format) {
  return fmt::format(fmt::runtime(fmt::format("{{:{}}}", format)), fmt::gmtime(std::time(nullptr)));
}

int exit_code_of(Outcome outcome) {
  return outcome == Outcome::fail ? 1 : outcome == Outcome::unknown ? 2 : 0;
}

std::string headline(const Verdict& verdict) {
  const std::vector<Check> checks = sorted_checks(verdict);
  std::string text = fmt::format("{} {}", short_host_list_text(verdict.hosts), verdict_word(verdict));
  if (checks.empty()) return text;
  if (verdict.outcome() == Outcome::pass)
    return fmt::format("{} {} in {}", text, counted(checks.size(), "check"),
                       rough_time_text(verdict.seconds));
  const Check& worst = checks.front();
  text += fmt::format(" {}:", worst.check);
  if (!worst.measured.empty()) text += " " + worst.measured;
  if (!worst.expected.empty()) text += fmt::format(", expected {}", worst.expected);
  if (worst.measured.empty()) text += " " + worst.remark;
  return shortened(printable(text), kHeadlineColumns);
}

std::string verdict_text(const Verdict& verdict) {
  const std::size_t bad = verdict.excluded().size();
  std::string text =
      fmt::format("{}  {}{}  {}, {}\n", verdict_word(verdict), counted(verdict.hosts.size(), "host"),
                  bad == 0 ? "" : fmt::format(", {} bad: {}", bad, short_host_list_text(verdict.excluded())),
                  verdict.began, rough_time_text(verdict.seconds));
  text += exclusion_text(verdict) + "\n";
  std::vector<TextRow> rows{{"verdict", "check", "where", "expected", "measured", "limit", "by"}};
  std::vector<std::pair<std::string, std::string>> remarks;  // with whom they are about; the same one once
  std::size_t left = 0;
  for (const Check& check : sorted_checks(verdict)) {
    if (rows.size() > kMostRows) {
      ++left;
      continue;
    }
    rows.push_back({std::string(word_of(check.outcome)), check.check, where_text(check), check.expected,
                    check.measured, limit_text(check), check.source});
    if (check.remark.empty()) continue;
    const auto same = std::ranges::find(remarks, check.remark, [](const auto& one) { return one.second; });
    if (same == remarks.end())
      remarks.emplace_back(where_text(check), check.remark);
    else if (same->first.find(where_text(check)) == std::string::npos)
      append_part(same->first, where_text(check));
  }
  text += padded_table(rows, "lllrrrl");
  if (left > 0) text += fmt::format("and {} more, all in JSON\n", left);
  if (!remarks.empty()) text += "\n";
  for (const auto& [where, remark] : remarks | std::views::take(kMostRemarks))
    text += hanging_lines(fmt::format("{}: {}", where, remark), "  ", "");
  if (!verdict.folder.empty()) text += fmt::format("\nfiles in {}\n", verdict.folder);
  if (!verdict.next.empty()) text += fmt::format("next: {}\n", verdict.next);
  return text;
}

void Verdict::fields(auto& self, auto&& each) {
  each("verdict", std::string(word_of(self.outcome())), Field{"pass, FAIL or can't tell"});
  each("exit_code", exit_code_of(self.outcome()), Field{"0 pass, 1 fail, 2 can't tell"});
  each("began", self.began, Field{"UTC"}), each("seconds", self.seconds);
  each("hosts", self.hosts), each("excluded", self.excluded(), Field{"hosts to leave out"});
  each("checks", self.checks);
  each("devices", self.devices, Field{"each alone"});
  each("expected_link_bytes_per_second", self.expected_link,
       Field{.about = "between two hosts", .null_if_nothing = true});
}

const Document kVerdictDocument = document_of<Verdict>(
    "plumbline.verdict/1", "A verdict on hosts: plumbline screen and check --json, accept.json.");

nlohmann::ordered_json verdict_json(const Verdict& verdict) {
  return document_json(kVerdictDocument.name, verdict);
}

nlohmann::ordered_json read_verdict(const std::filesystem::path& file) {
  constexpr const char* kRemedy = "pass the --output of plumbline accept";
  nlohmann::ordered_json json = parse_shallow_json(read_whole_file(file, {.remedy = kRemedy}));
  if (!json.is_object() || json.value("schema", "") != kVerdictDocument.name || !json.contains("hosts"))
    throw Error(ExitCode::bad_data, "file '{}' is not JSON of {}; {}", printable(file.string()),
                kVerdictDocument.name, kRemedy);
  return json;
}

std::string verdict_junit(const Verdict& verdict) {
  std::vector<JunitCase> cases;
  for (const Check& check : verdict.checks) {
    using enum JunitCase::Result;
    cases.push_back({.name = fmt::format("{} {}", check.check, fmt::join(check.where, ", ")),
                     .result = check.outcome == Outcome::pass   ? passed
                               : check.outcome == Outcome::fail ? failure
                                                                : skipped,
                     .type = check.check,
                     .message = fmt::format("measured {}, expected {}{}", check.measured, check.expected,
                                            check.remark.empty() ? "" : ": " + check.remark)});
  }
  return junit_text("plumbline.verdict", "plumbline verdict", cases);
}

std::string verdict_prometheus(const Verdict& verdict) {
  const auto escaped = [](const std::string& text) {
    return replaced(replaced(printable(text), '\\', "\\\\"), '"', "\\\"");
  };
  std::string text =
      "# HELP plumbline_check Outcome of a check of hosts: 1 pass, 0 fail; none where it can't tell.\n"
      "# TYPE plumbline_check gauge\n";
  for (const Check& check : verdict.checks)
    if (check.outcome == Outcome::pass || check.outcome == Outcome::fail)
      for (const std::string& where : check.where)
        text += fmt::format("plumbline_check{{check=\"{}\",where=\"{}\"}} {}\n", escaped(check.check),
                            escaped(where), check.outcome == Outcome::pass ? 1 : 0);
  return text;
}

}  // namespace plumb
