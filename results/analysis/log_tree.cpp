#include "results/analysis/log_tree.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <tuple>

#include "base/error.h"
#include "base/text.h"
#include "results/formats/line_reader.h"

namespace plumb {
namespace {

constexpr std::int64_t kHighestCount = 1'000'000;      // nodes, devices per node
constexpr std::int64_t kHighestBatch = 1'000'000'000;  // keeps images per step exact in a double
constexpr std::string_view kLog = ".log", kPart = ".log.part";

std::optional<std::int64_t> plain_number(std::string_view text, std::int64_t lowest, std::int64_t highest) {
  if (text.empty() || (text.size() > 1 && text.front() == '0') || text.front() == '-') return std::nullopt;
  std::int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size() || value < lowest || value > highest)
    return std::nullopt;
  return value;
}

bool is_word(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-';
  });
}

// `case_name`: of the folder that the file lies in; empty for the folder of logs itself.
void take_file(const fs::path& dir, const fs::path& path, const std::string& case_name, LogTree& tree) {
  const std::string file_name = path.filename().string();
  const auto leave_out = [&](const char* kind, const std::string& reason) {
    tree.bad.push_back({kind, reason, display_path(path, dir)});
  };
  if (file_name.ends_with(kPart)) return leave_out("unfinished", "the run is unfinished or failed");
  if (!file_name.ends_with(kLog)) return;
  if (std::optional<LogName> name = parse_log_name(case_name, file_name))
    tree.files.push_back({path, std::move(*name)});
  else
    leave_out("wrongly named",
              "expected <N>n<G>g/<model>_b<BS>_<prec>_<run>.log, as 1n8g/rn50_b128_fp32_1.log");
}

}  // namespace

bool parse_case_name(std::string_view text, int& nodes, int& devices_per_node) {
  const std::size_t middle = text.find('n');
  if (middle == std::string_view::npos || !text.ends_with('g')) return false;
  const auto n = plain_number(text.substr(0, middle), 1, kHighestCount);
  const auto g = plain_number(text.substr(middle + 1, text.size() - middle - 2), 1, kHighestCount);
  if (!n || !g) return false;
  nodes = static_cast<int>(*n);
  devices_per_node = static_cast<int>(*g);
  return true;
}

std::optional<LogName> parse_log_name(std::string_view case_name, std::string_view file_name) {
  LogName name{.case_name = std::string(case_name)};
  if (!parse_case_name(case_name, name.nodes, name.devices_per_node) || !file_name.ends_with(kLog))
    return std::nullopt;
  const std::vector<std::string> fields = split(file_name.substr(0, file_name.size() - kLog.size()), '_');
  if (fields.size() != 4 || !fields[1].starts_with('b')) return std::nullopt;
  const auto batch = plain_number(std::string_view(fields[1]).substr(1), 1, kHighestBatch);
  const auto run = plain_number(fields[3], 0, kHighestBatch);
  if (!is_word(fields[0]) || !batch || !is_word(fields[2]) || !run) return std::nullopt;
  name.model = fields[0];
  name.batch_per_device = *batch;
  name.precision = fields[2];
  name.run = *run;
  return name;
}

LogTree find_logs(const fs::path& dir) {
  std::error_code error;
  if (!fs::is_directory(dir, error))
    throw Error(ExitCode::bad_data,
                "log or folder '{}' does not exist; pass a single log, a folder that holds 1n1g, 1n8g, …, or "
                "a folder of runs",
                printable(dir.string()));
  const std::vector<fs::path> cases = visible_entries(dir, error);
  if (error)
    throw Error(ExitCode::bad_data, "cannot list log folder '{}': {}", printable(dir.string()),
                error.message());
  LogTree tree;
  for (const fs::path& entry : cases) {
    std::error_code ignored;
    if (!fs::is_directory(entry, ignored)) {
      take_file(dir, entry, "", tree);
      continue;
    }
    for (const fs::path& file : visible_entries(entry, error))
      take_file(dir, file, entry.filename().string(), tree);
    if (error)
      tree.bad.push_back({"unreadable", "can't be listed: " + error.message(), display_path(entry, dir)});
  }
  const auto order = [](const LogFile& file) {
    const LogName& n = file.name;
    return std::make_tuple(n.nodes * static_cast<std::int64_t>(n.devices_per_node), n.nodes, n.model,
                           n.precision, n.batch_per_device, n.run);
  };
  std::ranges::sort(tree.files, {}, order);
  return tree;
}

LogName name_of_log(const fs::path& file, const OneLog& told) {
  auto by_path =
      parse_log_name(fs::absolute(file).parent_path().filename().string(), file.filename().string());
  LogName name{
      .case_name = kNoCase, .nodes = 1, .devices_per_node = 1, .model = file.stem().string(), .run = -1};
  if (by_path) name = *by_path;
  if (!told.case_name.empty()) {
    name.case_name = told.case_name;
    if (!parse_case_name(told.case_name, name.nodes, name.devices_per_node))
      throw Error(ExitCode::usage, "--case {}: expected nodes and devices per node; pass them as 1n8g",
                  printable(told.case_name));
  }
  if (!told.precision.empty()) name.precision = told.precision;
  if (told.batch_per_device > 0) name.batch_per_device = told.batch_per_device;
  return name;
}

void add_size(const LogFormat& format, LogFile& file, OtherFormats other_formats) {
  LogName& name = file.name;
  if (name.batch_per_device > 0) return;
  const StatedSize stated = stated_size(format, file.path);
  name.batch_per_device = stated.batch_per_device.value_or(0);
  if (name.case_name == kNoCase && stated.nodes && stated.devices_per_node) {
    name.case_name = fmt::format("{}n{}g", *stated.nodes, *stated.devices_per_node);
    parse_case_name(name.case_name, name.nodes, name.devices_per_node);
  }
  if (!format.needs_size() || (name.batch_per_device > 0 && name.case_name != kNoCase)) return;
  const LogReading log = read_log(format, file.path, format.default_window, name.size(), {}, other_formats);
  if (log.defect && log.defect->kind == "mixed")
    throw Error(ExitCode::bad_data, "log '{}': {}", printable(file.path.string()), log.defect->text);
  throw Error(ExitCode::usage,
              "'{}' does not state the size of its run, which the log format {} needs; pass --case and --bs, "
              "as in --case 1n8g --bs 128",
              printable(file.path.string()), format.name);
}

void refuse_misfit(const LogFormat& format, const LogFile& file) {
  LineReader lines(file.path);
  std::string unlike;
  while (const std::optional<WrittenLine> written = lines.next_written()) {
    const LineReading reading = format.read_line(written->text, file.name.size());
    if (reading.fit == Fit::whole) return;
    if (!unlike.empty()) continue;
    if (reading.fit == Fit::near)
      unlike = fmt::format("; line {} has '{}' where a number is expected", lines.line_number(),
                           printable(std::string(reading.misfit)));
    else if (looks_like_training(written->text))
      unlike = fmt::format("; line {} is '{}'", lines.line_number(), printable(written->text));
  }
  throw Error(ExitCode::bad_data, "no line of '{}' fits '{}' of the log format {}{}",
              printable(file.path.string()), format.example, format.name, unlike);
}

}  // namespace plumb
