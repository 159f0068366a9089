#include "results/formats/own_format.h"

#include <re2/re2.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/paths.h"
#include "base/text.h"
#include "base/whole_file.h"

namespace plumb {
namespace {

// What the format's facts refer to.
struct OwnTexts {
  std::string name, framework, line;
};

constexpr std::array kGroups{"step", "epoch", "rank", "speed", "time", "samples", "loss"};

class OwnFormat final : private OwnTexts, public LogFormat {
 public:
  OwnFormat(OwnTexts texts, std::unique_ptr<const RE2> line, double time_unit, const SpeedFacts& facts)
      : OwnTexts(std::move(texts)),
        LogFormat({.name = OwnTexts::name,
                   .framework = OwnTexts::framework,
                   .source = "a format of one's own",
                   .example = OwnTexts::line,
                   .default_window = {.iterations = 40, .warmup = 20},
                   .index_step = 0,
                   .has_no_end = true,
                   .speeds = facts}),
        line_(std::move(line)),
        time_unit_(time_unit) {}

 protected:
  // In time that grows with the line's length only, as RE2 does not backtrack.
  Fit match(std::string_view line, Captured& captured) const override {
    std::vector<re2::StringPiece> parts(static_cast<std::size_t>(line_->NumberOfCapturingGroups()) + 1);
    const re2::StringPiece text(line.data(), line.size());
    if (!line_->Match(text, 0, line.size(), RE2::UNANCHORED, parts.data(), static_cast<int>(parts.size())))
      return Fit::none;
    const auto read = [&](const char* name, auto& number, auto take) {
      const auto group = line_->NamedCapturingGroups().find(name);
      if (group == line_->NamedCapturingGroups().end()) return;
      const re2::StringPiece& found = parts[static_cast<std::size_t>(group->second)];
      const std::string_view word(found.data(), found.size());
      std::string_view rest = word;
      number = take(rest);
      if ((!number || !rest.empty()) && captured.misfit.empty())
        captured.misfit = word.empty() ? "nothing" : word;
    };
    read("step", captured.iteration, take_whole_number);
    read("epoch", captured.epoch, take_whole_number);
    read("rank", captured.writer, take_whole_number);
    read("speed", captured.value, take_number);
    read("time", captured.value, take_number);
    std::optional<double> samples;
    read("samples", samples, take_number);
    read("loss", captured.loss, take_number);
    if (!captured.misfit.empty()) return Fit::near;
    if (samples) captured.value = *samples / (*captured.value * time_unit_);
    return Fit::whole;
  }

 private:
  std::unique_ptr<const RE2> line_;
  double time_unit_;  // seconds
};

// The text of a key, or `otherwise`; one of `allowed` unless that is empty.
std::string text_at(const toml::table& table, const std::string& file, const char* key,
                    const std::string& otherwise, const std::vector<std::string>& allowed = {}) {
  const toml::node* const node = table.get(key);
  const std::optional<std::string> text = node ? node->value_exact<std::string>() : otherwise;
  if (!text || text->empty() || (!allowed.empty() && std::ranges::find(allowed, *text) == allowed.end()))
    throw Error(ExitCode::bad_data, "{}: key {}: expected {}", file, key,
                allowed.empty() ? "a text" : fmt::format("one of {}", fmt::join(allowed, ", ")));
  return *text;
}

toml::table table_of(const fs::path& path, const std::string& file) {
  try {
    toml::table table = toml::parse(read_whole_file(path, {.remedy = "pass a TOML file"}));
    constexpr std::array kKeys{"line", "unit", "of", "name", "framework"};
    for (const auto& [key, value] : table)
      if (std::ranges::find(kKeys, key.str()) == kKeys.end())
        throw Error(ExitCode::bad_data, "{}: unknown key {}; use {}", file, printable(key.str()),
                    fmt::join(kKeys, ", "));
    return table;
  } catch (const toml::parse_error& error) {
    throw Error(ExitCode::bad_data, "{}:{}: {}", file, error.source().begin.line,
                printable(error.description()));
  }
}

// Throws Error(bad_data) that says what is wrong with the expression or its groups.
std::unique_ptr<const RE2> compile(const std::string& line, const std::string& file) {
  constexpr std::int64_t kMostBytes = 1 << 20;  // of the compiled expression
  RE2::Options options(RE2::Quiet);
  options.set_max_mem(kMostBytes);
  auto expression = std::make_unique<const RE2>(line, options);
  if (!expression->ok())
    throw Error(ExitCode::bad_data, "{}: key line: {}; see github.com/google/re2/wiki/Syntax", file,
                printable(expression->error()));
  const auto& groups = expression->NamedCapturingGroups();
  for (const auto& [name, index] : groups)
    if (std::ranges::find(kGroups, name) == kGroups.end())
      throw Error(ExitCode::bad_data, "{}: key line: unknown group {}; use {}", file, printable(name),
                  fmt::join(kGroups, ", "));
  if (!groups.contains("step"))
    throw Error(ExitCode::bad_data, "{}: key line: expected a group of the step; write (?P<step>\\d+)", file);
  if (groups.contains("speed") == groups.contains("time"))
    throw Error(ExitCode::bad_data,
                "{}: key line: expected one of the groups speed and time; write (?P<speed>[0-9.,]+)", file);
  if (groups.contains("samples") && !groups.contains("time"))
    throw Error(ExitCode::bad_data, "{}: key line: group samples needs group time; add it", file);
  return expression;
}

}  // namespace

std::shared_ptr<const LogFormat> read_own_format(const fs::path& path) {
  const std::string file = printable(path.string());
  const toml::table table = table_of(path, file);
  OwnTexts texts{.name = text_at(table, file, "name", path.stem().string()),
                 .framework = text_at(table, file, "framework", path.stem().string()),
                 .line = text_at(table, file, "line", "")};
  const std::string unit = text_at(table, file, "unit", "seconds", {"seconds", "milliseconds"});
  const std::string of = text_at(table, file, "of", "run", {"run", "node", "rank"});
  std::unique_ptr<const RE2> line = compile(texts.line, file);
  const double time_unit = unit == "seconds" ? 1 : 0.001;
  const auto& groups = line->NamedCapturingGroups();
  const bool is_speed = groups.contains("speed") || groups.contains("samples");
  const SpeedFacts facts{.seconds = is_speed ? 0 : time_unit,
                         .of = of == "run"    ? SpeedFacts::run
                               : of == "node" ? SpeedFacts::node
                                              : SpeedFacts::rank};
  return std::make_shared<OwnFormat>(std::move(texts), std::move(line), time_unit, facts);
}

}  // namespace plumb
