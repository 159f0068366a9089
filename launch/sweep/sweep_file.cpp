#include "launch/sweep/sweep_file.h"

#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/paths.h"
#include "base/text.h"
#include "launch/sweep/sweep_plan.h"
#include "models/catalogue.h"

namespace plumb {
namespace {

constexpr std::array<std::string_view, 4> kPrecisions{"fp32", "tf32", "fp16", "bf16"};

// Options that a sweep itself passes to the programs.
constexpr std::array<std::string_view, 15> kOptionsOfTheSweep{
    "bs",    "batch-per-device", "fp32",     "tf32", "fp16",    "bf16", "iters", "warmup",
    "nodes", "devices-per-node", "backbone", "run",  "log-dir", "out",  "output"};

bool contains(const auto& list, std::string_view item) {
  return std::ranges::find(list, item) != list.end();
}

// Every part of a dotted key is a table inside the one before. A key of tens of thousands of parts, which
// must be on one line, would overflow the stack.
void refuse_long_lines(std::string_view text, const std::string& file) {
  constexpr std::size_t kLongestLine = 10'000;
  std::size_t number = 1;
  for (const std::string& line : split(text, '\n')) {
    if (line.size() > kLongestLine)
      throw Error(ExitCode::bad_data, "{}:{}: expected at most {} letters; break the line", file, number,
                  kLongestLine);
    ++number;
  }
}

// The TOML text as JSON, from which records are read.
Json json_of(std::string_view text, const std::string& file) {
  refuse_long_lines(text, file);
  try {
    std::ostringstream json;
    json << toml::json_formatter(toml::parse(text, file));
    return Json::parse(json.str());
  } catch (const toml::parse_error& error) {
    const toml::source_position place = error.source().begin;
    throw Error(ExitCode::bad_data, "{}:{}:{}: {}; correct the file", file, place.line, place.column,
                printable(error.description()));
  }
}

void check_list(const ObjectReader& reader, const char* key, const auto& values) {
  if (values.empty()) reader.fail(key, "expected at least one value");
  if (std::set(values.begin(), values.end()).size() < values.size())
    reader.fail(key, "expected every value once");
}

void check_option(const ObjectReader& options, const std::string& name, const Json& value) {
  const std::string key = printable(name);
  if (contains(kOptionsOfTheSweep, name)) options.fail(key, "the sweep sets this option itself");
  if (name.empty() || name.starts_with('-') || name.find_first_of(std::string("= \0", 3)) != name.npos)
    options.fail(key, "expected the name of an option without dashes");
  if (value.is_boolean() ? !value.get<bool>() : !value.is_number() && (!value.is_string() || value == ""))
    options.fail(key, "expected true, a number or a text");
}

}  // namespace

void SweepTable::check(const ObjectReader& reader) const {
  if (!(timeout_minutes >= 0 && timeout_minutes <= 1e6))
    reader.fail("timeout_minutes", "expected a number from 0 to 1e6");
}

bool LauncherTable::is_over_hosts() const {
  return hosts || hostfile || command == kLaunchRun;
}

void LauncherTable::check(const ObjectReader& reader) const {
  if (hosts && hostfile) reader.fail("hostfile", "'hosts' and 'hostfile' exclude each other");
  for (const auto& [key, text] : {std::pair{"hosts", hosts}, {"hostfile", hostfile}})
    if (text && text->empty()) reader.fail(key, "expected at least one letter");
  if (hosts && hosts->starts_with('-'))
    reader.fail("hosts", "expected a list of hosts, such as node[1-4] or n1,n2");
  if (!is_over_hosts()) return;
  if (command && command != kLaunchRun && command != "mpirun" && command != "srun")
    reader.fail("command",
                fmt::format("with hosts, expected mpirun, srun, or {}, which chooses", kLaunchRun));
}

void CaseTable::check(const ObjectReader& reader) const {
  for (const char letter : name)
    if (!std::isalnum(static_cast<unsigned char>(letter)) && letter != '-' && letter != '.')
      reader.fail("name", "expected letters, digits, '-' and '.', as it becomes part of file names");
  if (name.starts_with('.')) reader.fail("name", "expected no '.' at its begin");
  if (find_model(model) == nullptr)
    reader.fail("model",
                fmt::format("expected one of {}", fmt::join(mapped(model_catalogue(), &Model::name), ", ")));
  check_list(reader, "nodes", nodes);
  check_list(reader, "devices_per_node", devices_per_node);
  check_list(reader, "batch_sizes", batch_sizes);
  check_list(reader, "precisions", precisions);
  for (const std::string& precision : precisions)
    if (!contains(kPrecisions, precision))
      reader.fail("precisions", fmt::format("expected {}", fmt::join(kPrecisions, ", ")));
  if (options.empty()) return;
  const ObjectReader of_options = reader.inside("options");
  for (const auto& [option, value] : options.items()) check_option(of_options, option, value);
}

SweepFile read_sweep_file(std::string_view text, const std::string& file) {
  const Json json = json_of(text, file);
  if (json.dump().find("\\u0000") != std::string::npos)
    throw Error(ExitCode::bad_data, "{}: a text has a letter \\u0000; remove it", file);
  SweepFile sweep;
  const ObjectReader reader(json, file, "", "plumbline sweep");
  fields::read_all(reader, sweep);
  if (sweep.cases.empty()) reader.fail("case", "expected at least one [[case]]");
  return sweep;
}

}  // namespace plumb
