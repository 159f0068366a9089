#include "results/analysis/one_log.h"

#include "base/error.h"
#include "base/text.h"
#include "results/formats/line_prefix.h"
#include "results/formats/line_reader.h"

namespace plumb {

namespace {

namespace fs = std::filesystem;

}  // namespace

LogName name_of_log(const fs::path& file, const OneLog& told) {
  auto by_path =
      parse_log_name(fs::absolute(file).parent_path().filename().string(), file.filename().string());
  LogName name{
      .case_name = kNoCase, .nodes = 1, .devices_per_node = 1, .model = file.stem().string(), .run = -1};
  if (const auto* parsed = std::get_if<LogName>(&by_path)) name = *parsed;
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
  LinePrefix prefix;
  std::string unlike;
  while (const std::optional<std::string_view> line = lines.next()) {
    const WrittenLine written = prefix.strip(*line);
    const LineReading reading = format.read_line(written.text, file.name.size());
    if (reading.fit == Fit::whole) return;
    if (!unlike.empty()) continue;
    if (reading.fit == Fit::near)
      unlike = fmt::format("; line {} has '{}' where a number is expected", lines.line_number(),
                           printable(std::string(reading.misfit)));
    else if (looks_like_training(written.text))
      unlike = fmt::format("; line {} is '{}'", lines.line_number(), printable(written.text));
  }
  throw Error(ExitCode::bad_data, "no line of '{}' fits '{}' of the log format {}{}",
              printable(file.path.string()), format.example, format.name, unlike);
}

}  // namespace plumb
