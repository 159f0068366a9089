#include "bench/allreduce/recorded_step.h"

#include <algorithm>
#include <map>
#include <string>

#include "base/error.h"
#include "base/shallow_json.h"
#include "bench/output/profile.h"
#include "bench/output/program_json.h"
#include "results/record/object_reader.h"
#include "results/record/record_text.h"

namespace plumb {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

Json read_format(const fs::path& file, const std::string& kind, const std::string& format) {
  Json json = parse_shallow_json(read_record_text(file, kind));
  if (!json.is_object() || !json.contains("format") || json["format"] != format)
    throw Error(ExitCode::bad_data, "{} is no {} (\"format\": \"{}\" is missing); name one that a run wrote",
                file.string(), kind, format);
  return json;
}

// The value whose name_of() is the member's text.
template <typename Enum>
Enum read_named(const ObjectReader& reader, const char* key, Enum last) {
  const std::string name = reader.text(key);
  for (int value = 0; value <= static_cast<int>(last); ++value)
    if (name_of(static_cast<Enum>(value)) == name) return static_cast<Enum>(value);
  reader.fail(key, fmt::format("is '{}', which this plumbline doesn't know", name));
}

Buffer read_buffer(const Json& json, const std::string& origin, std::size_t buffers) {
  const ObjectReader reader(json, origin, "buffers", kProgramFormat);
  Buffer buffer{.name = reader.text("name"), .bytes = static_cast<std::size_t>(reader.integer("bytes", 0))};
  if (!json.contains("view")) return buffer;
  const ObjectReader view(reader.object("view"), origin, "buffers.view", kProgramFormat);
  buffer.view =
      View{.root = static_cast<BufferId>(view.integer("of", 0, static_cast<std::int64_t>(buffers) - 1)),
           .offset = static_cast<std::size_t>(view.integer("offset", 0))};
  return buffer;
}

Collective read_collective(const Json& json, const std::string& origin, std::size_t buffers) {
  const ObjectReader reader(json, origin, "steps.collective", kProgramFormat);
  return {
      .kind = read_named(reader, "kind", Collective::Kind::broadcast),
      .buffer = static_cast<BufferId>(reader.integer("buffer", 0, static_cast<std::int64_t>(buffers) - 1)),
      .elements = static_cast<std::size_t>(reader.integer("elements", 0, std::int64_t{1} << 40)),
      .dtype = read_named(reader, "dtype", DType::u8)};
}

Instruction read_instruction(const Json& json, const std::string& origin, std::size_t buffers) {
  const ObjectReader reader(json, origin, "steps", kProgramFormat);
  Instruction instruction{.name = reader.text("name"),
                          .operation = Recorded{},
                          .lane = read_named(reader, "lane", Lane::communication)};
  Recorded recorded;
  std::vector<ReadWrite> parts;
  for (const Json& one : reader.list("uses")) {
    const ObjectReader use(one, origin, "steps.uses", kProgramFormat);
    const auto buffer =
        static_cast<BufferId>(use.integer("buffer", 0, static_cast<std::int64_t>(buffers) - 1));
    const std::string access = use.text("access");
    recorded.uses.push_back({buffer, access == "r"   ? Access::read
                                     : access == "w" ? Access::write
                                                     : Access::read_write});
    parts.push_back(buffer);
  }
  if (json.contains("collective")) {
    Collective collective = read_collective(json["collective"], origin, buffers);
    collective.parts = std::move(parts);
    instruction.operation = std::move(collective);
  } else {
    instruction.operation = std::move(recorded);
  }
  return instruction;
}

std::map<std::string, double> read_seconds(const fs::path& file) {
  if (!fs::exists(file))
    throw Error(ExitCode::bad_data,
                "option --compute: {} is not there, which has the times of the instructions; run again with "
                "--profile",
                file.string());
  const std::string origin = file.string();
  const Json json = read_format(file, "profile.json", kProfileFormat);
  std::map<std::string, double> seconds;
  for (const Json& step : ObjectReader(json, origin, "", kProfileFormat).list("steps")) {
    const ObjectReader reader(step, origin, "steps", kProfileFormat);
    const double time = reader.number("seconds");
    if (!(time >= 0 && time < 1e6)) reader.fail("seconds", "is no time of an instruction");
    seconds[reader.text("name")] = time;
  }
  return seconds;
}

}  // namespace

RecordedStep read_recorded_step(const fs::path& program_json) {
  const std::string origin = program_json.string();
  const Json json = read_format(program_json, "program.json", kProgramFormat);
  const fs::path profile = program_json.parent_path() / "profile.json";
  const std::map<std::string, double> seconds = read_seconds(profile);
  const ObjectReader reader(json, origin, "", kProgramFormat);
  const std::size_t buffers = reader.list("buffers").size();
  RecordedStep step;
  for (const Json& buffer : reader.list("buffers"))
    step.program.buffers.push_back(read_buffer(buffer, origin, buffers));
  bool has_collectives = false;
  for (const Json& one : reader.list("steps")) {
    Instruction instruction = read_instruction(one, origin, buffers);
    if (instruction.lane == Lane::input) continue;
    const bool is_collective = instruction.as<Collective>() != nullptr;
    const auto found = seconds.find(instruction.name);
    if (!is_collective && found == seconds.end())
      throw Error(ExitCode::bad_data,
                  "{} has no time for {} of {}: it is of another program; name a run's own", profile.string(),
                  instruction.name, origin);
    has_collectives = has_collectives || is_collective;
    step.seconds.push_back(is_collective ? 0 : found->second);
    step.program.instructions.push_back(std::move(instruction));
  }
  if (!has_collectives)
    throw Error(ExitCode::bad_data,
                "option --compute: {} has no collectives; name a run of several ranks, or of one with --comm",
                origin);
  return step;
}

}  // namespace plumb
