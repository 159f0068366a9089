// Collectives of the stamped iterations: what each rank timed, and the table over all ranks.
#include <algorithm>

#include "base/text_table.h"
#include "base/units.h"
#include "bench/output/profile.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

constexpr std::size_t kCollectiveNameColumns = 23;

std::vector<InstructionId> collectives_of(const Program& program) {
  std::vector<InstructionId> ids;
  for (InstructionId id = 0; id < program.instructions.size(); ++id)
    if (program.instructions[id].as<Collective>()) ids.push_back(id);
  return ids;
}

TextRow collective_row(const CollectiveRecord& record) {
  const auto milliseconds = [](double seconds) { return fmt::format("{:.3f}", seconds * kMilliseconds); };
  const auto speed = [](double bytes_per_second) { return fmt::format("{:.2f}", bytes_per_second / kGiga); };
  const ValueRange &time = record.seconds, &bus = record.bus_bytes_per_second;
  return {shortened(record.name, kCollectiveNameColumns),
          fmt::format("{:.2f}", static_cast<double>(record.bytes) / (1 << 20)),
          milliseconds(time.min),
          milliseconds(time.median),
          milliseconds(time.max),
          speed(bus.min),
          speed(bus.median),
          speed(bus.max),
          std::to_string(record.slowest_rank),
          std::to_string(record.last_rank)};
}

}  // namespace

std::vector<double> collective_seconds(const Program& program, std::span<const InstructionTime> times) {
  std::vector<double> medians;
  for (const InstructionId id : collectives_of(program)) {
    std::vector<double> seconds;
    for (const InstructionTime& time : times)
      if (time.instruction == id) seconds.push_back(std::max(0.0, time.end - time.begin));
    medians.push_back(seconds.empty() ? 0 : median(seconds));
  }
  return medians;
}

std::vector<CollectiveRecord> collective_records(const Program& program, std::span<const double> seconds) {
  const std::vector<InstructionId> ids = collectives_of(program);
  std::vector<CollectiveRecord> records;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const Instruction& instruction = program.instructions[ids[i]];
    const Collective& collective = *instruction.as<Collective>();
    std::vector<double> of_ranks;
    for (std::size_t at = i; at < seconds.size(); at += ids.size()) of_ranks.push_back(seconds[at]);
    records.push_back(collective_record(
        instruction.name, std::string(name_of(collective.kind)),
        static_cast<std::int64_t>(collective.elements * bytes_of(collective.dtype)), of_ranks));
  }
  return records;
}

std::string collectives_text(std::span<const CollectiveRecord> collectives) {
  if (collectives.empty()) return "";
  std::vector<TextRow> rows{
      {"collective", "MiB", "ms: min", "median", "max", "GB/s: min", "median", "max", "slowest", "last"}};
  for (const CollectiveRecord& record : collectives) rows.push_back(collective_row(record));
  return "collectives over the ranks: time from start to end, bus bandwidth as nccl-tests defines it;\n"
         "the slowest rank waited longest, the last one was waited for\n\n" +
         padded_table(rows, "lr", "  ");
}

}  // namespace plumb
