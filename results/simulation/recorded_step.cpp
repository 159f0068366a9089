#include "results/simulation/recorded_step.h"

#include <cmath>
#include <string>

#include "base/error.h"
#include "base/paths.h"
#include "base/shallow_json.h"
#include "base/whole_file.h"
#include "results/record/object_reader.h"

namespace plumb {
namespace {

using PartJson = nlohmann::ordered_json;

std::string origin_of(const std::filesystem::path& file) {
  return fmt::format("file '{}'", printable(file.string()));
}

// `kind`: the file's usual name, "program.json".
PartJson read_part(const std::filesystem::path& file, const char* kind, const char* format) {
  const PartJson json = parse_shallow_json(read_whole_file(file, {.remedy = std::string("name a ") + kind}));
  if (!json.is_object())
    throw Error(ExitCode::bad_data, "{} is no JSON object; run again with --profile", origin_of(file));
  const auto found = json.find("format");
  if (found == json.end() || *found != format)
    throw Error(ExitCode::bad_data,
                "{} is no {}: its format is {} where \"{}\" is wanted; name one of a run with --profile",
                origin_of(file), kind, found == json.end() ? "missing" : found->dump(), format);
  return json;
}

double positive_or_zero(double value) {
  return std::isfinite(value) && value > 0 ? value : 0;
}

}  // namespace

RecordedStep read_recorded_step(const std::filesystem::path& program_json) {
  const std::filesystem::path profile_json = program_json.parent_path() / "profile.json";
  const PartJson program = read_part(program_json, "program.json", kProgramSchema);
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(profile_json, ignored))
    throw Error(ExitCode::bad_data,
                "{} is not there, which has the times of the instructions; run again with --profile",
                origin_of(profile_json));
  const PartJson profile = read_part(profile_json, "profile.json", kProfileSchema);
  const std::string profile_origin = origin_of(profile_json);
  const ObjectReader reader(profile, profile_origin, "", kProfileSchema);
  RecordedStep recorded{.step = step_model(program, profiled_seconds(program, profile, profile_origin),
                                           origin_of(program_json)),
                        .roofline_seconds = positive_or_zero(reader.number("roofline_seconds"))};
  recorded.step.bytes_per_second = positive_or_zero(reader.number("peak_bytes_per_second"));
  return recorded;
}

}  // namespace plumb
