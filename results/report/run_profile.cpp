// profile.json as data: where the time of an iteration goes, beside the least it could take.
#include <algorithm>
#include <cmath>
#include <functional>

#include "results/record/object_reader.h"
#include "results/report/run_parts.h"

namespace plumb {
namespace {

using Json = nlohmann::ordered_json;

// null reads as NaN, by which nothing can be sorted.
double time_of(const ObjectReader& reader, const char* key) {
  const double seconds = reader.number(key);
  if (!std::isfinite(seconds)) reader.fail(key, "is no time");
  return seconds;
}

ProfiledKind kind_of(const ObjectReader& reader) {
  return {reader.text("name"), reader.count("steps", 0), time_of(reader, "seconds"),
          time_of(reader, "roofline_seconds")};
}

ProfiledInstruction step_of(const Json& instruction, const std::string& origin) {
  const ObjectReader reader(instruction, origin, "steps[]");
  // Instructions of kernels of our own have none, nor has a profile of an older version.
  const Json engine = instruction.value("engine", Json());
  return {.name = reader.text("name"),
          .kind = reader.text("kind"),
          .phase = reader.text("phase"),
          .lane = reader.text("lane"),
          .seconds = time_of(reader, "seconds"),
          .roofline_seconds = time_of(reader, "roofline_seconds"),
          .flops_per_second = reader.number("flops_per_second"),
          .bytes_per_second = reader.number("bytes_per_second"),
          .bound_by = reader.text("bound_by"),
          .engine = engine.is_string() ? engine.get<std::string>() : ""};
}

}  // namespace

RunProfile run_profile(const Json& json, const std::string& origin, std::size_t most_instructions) {
  const ObjectReader reader(json, origin);
  RunProfile profile;
  profile.device = reader.text("device");
  profile.peak_flops_per_second = reader.number("peak_flops_per_second");
  profile.peak_bytes_per_second = reader.number("peak_bytes_per_second");
  profile.iteration_seconds = reader.number("iteration_seconds");
  profile.busy_seconds = reader.number("busy_seconds");
  profile.gap_seconds = reader.number("gap_seconds");
  profile.roofline_seconds = time_of(reader, "roofline_seconds");
  for (const Json& kind : reader.list("kinds")) profile.kinds.push_back(kind_of({kind, origin, "kinds[]"}));
  for (const Json& instruction : reader.list("steps"))
    profile.instructions.push_back(step_of(instruction, origin));
  std::ranges::stable_sort(profile.instructions, std::greater(), &ProfiledInstruction::seconds);
  if (profile.instructions.size() > most_instructions) {
    profile.left_out = static_cast<int>(profile.instructions.size() - most_instructions);
    profile.instructions.resize(most_instructions);
  }
  return profile;
}

}  // namespace plumb
