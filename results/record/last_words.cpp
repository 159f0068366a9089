#include "results/record/last_words.h"

#include <spdlog/fmt/fmt.h>

#include <cmath>

#include "results/record/object_reader.h"

namespace plumb {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostCollectives = 64;
constexpr std::int64_t kMostRanks = 1 << 24;

Json collective_json(const LastCollective& one) {
  Json json{{"sequence", one.sequence},
            {"name", one.name},
            {"kind", one.kind},
            {"bytes", one.bytes},
            {"entered_seconds_ago", one.entered_seconds_ago}};
  if (one.left_seconds_ago) json["left_seconds_ago"] = *one.left_seconds_ago;
  return json;
}

double finite_number(const ObjectReader& reader, const char* key) {
  const double number = reader.number(key);
  if (!std::isfinite(number)) reader.fail(key, "is no finite number");
  return number;
}

LastCollective read_collective(const ObjectReader& reader) {
  LastCollective one;
  one.sequence = static_cast<std::uint64_t>(reader.integer("sequence", 1));
  one.name = reader.text("name");
  one.kind = reader.text("kind");
  one.bytes = static_cast<std::uint64_t>(reader.integer("bytes", 0));
  one.entered_seconds_ago = finite_number(reader, "entered_seconds_ago");
  if (reader.has("left_seconds_ago")) one.left_seconds_ago = finite_number(reader, "left_seconds_ago");
  return one;
}

}  // namespace

std::string last_words_file(int rank) {
  return fmt::format("rank_{}.json", rank);
}

std::string kept_elsewhere(const std::string& run_id, int rank) {
  return fmt::format("plumbline_{}_{}", run_id, last_words_file(rank));
}

Json to_json(const LastWords& words) {
  Json json{{"schema", kLastWordsSchema},   {"run_id", words.run_id},
            {"rank", words.rank},           {"world_size", words.world_size},
            {"host", words.host},           {"pid", words.pid},
            {"failure", words.failure},     {"exit_code", words.exit_code},
            {"phase", words.phase},         {"phase_seconds", words.phase_seconds},
            {"iteration", words.iteration}, {"iterations_kept", words.iterations_kept}};
  if (words.last_step_seconds) json["last_step_seconds"] = *words.last_step_seconds;
  if (words.last_loss) json["last_loss"] = *words.last_loss;
  json["unix_seconds"] = words.unix_seconds;
  json["run_seconds"] = words.run_seconds;
  json["collectives"] = Json::array();
  for (const LastCollective& one : words.collectives) json["collectives"].push_back(collective_json(one));
  return json;
}

LastWords last_words_from_json(const Json& json, const std::string& origin) {
  const ObjectReader reader(json, origin, "", kLastWordsSchema);
  if (const std::string schema = reader.text("schema"); schema != kLastWordsSchema)
    reader.fail("schema", fmt::format("is '{}'", schema));
  LastWords words;
  words.run_id = reader.text("run_id");
  words.rank = static_cast<int>(reader.integer("rank", 0, kMostRanks - 1));
  words.world_size = static_cast<int>(reader.integer("world_size", words.rank + 1, kMostRanks));
  words.host = reader.text("host");
  words.pid = reader.integer("pid", 0);
  words.failure = reader.text("failure");
  words.exit_code = static_cast<int>(reader.integer("exit_code", 0, 255));
  words.phase = reader.text("phase");
  words.phase_seconds = finite_number(reader, "phase_seconds");
  words.iteration = reader.integer("iteration", -1);
  words.iterations_kept = reader.integer("iterations_kept", 0);
  if (reader.has("last_step_seconds")) words.last_step_seconds = finite_number(reader, "last_step_seconds");
  if (reader.has("last_loss")) words.last_loss = reader.number("last_loss");
  words.unix_seconds = finite_number(reader, "unix_seconds");
  words.run_seconds = finite_number(reader, "run_seconds");
  const Json& collectives = reader.list("collectives");
  if (collectives.size() > kMostCollectives)
    reader.fail("collectives", fmt::format("has more than {} entries", kMostCollectives));
  for (const Json& one : collectives)
    words.collectives.push_back(read_collective({one, origin, "collectives", kLastWordsSchema}));
  return words;
}

}  // namespace plumb
