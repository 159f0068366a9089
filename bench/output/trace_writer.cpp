// trace.json.
#include <algorithm>
#include <array>

#include "base/text.h"
#include "bench/output/profile.h"

namespace plumb {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMicroseconds = 1e6;
constexpr int kRank = 0, kIterationsThread = 0;
// Collectives overlap: they take as many threads, from this one on, as are in flight at once.
constexpr int kCommunicationThread = 1 + static_cast<int>(Lane::communication);

int thread_of(Lane lane) {
  return 1 + static_cast<int>(lane);
}

// The lines of the list of events.
using Events = std::vector<std::string>;

void add(Events& events, const Json& event) {
  events.push_back(event.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void add_name(Events& events, const char* what, int thread, const std::string& text) {
  add(events, {{"ph", "M"}, {"pid", kRank}, {"tid", thread}, {"name", what}, {"args", {{"name", text}}}});
}

void add_thread(Events& events, int thread, std::string_view text) {
  add_name(events, "thread_name", thread, std::string(text));
  add(events, {{"ph", "M"},
               {"pid", kRank},
               {"tid", thread},
               {"name", "thread_sort_index"},
               {"args", {{"sort_index", thread}}}});
}

void name_process_and_threads(Events& events, const std::string& device) {
  add_name(events, "process_name", 0, fmt::format("rank {}: {}", kRank, device));
  add_thread(events, kIterationsThread, "iterations");
  for (const Lane lane : {Lane::input, Lane::compute, Lane::communication})
    add_thread(events, thread_of(lane), name_of(lane));
}

// The end of the first thread that is free at `begin`, or of a new one.
double& free_thread(std::vector<double>& ends, double begin) {
  const auto free = std::ranges::find_if(ends, [&](double end) { return end <= begin; });
  return free == ends.end() ? ends.emplace_back(begin) : *free;
}

// Message size of a collective; memory traffic of any other instruction.
double bytes_of(const Program& program, const Instruction& instruction) {
  const auto* collective = instruction.as<Collective>();
  return collective ? static_cast<double>(program.buffers[collective->buffer].bytes) : instruction.work.bytes;
}

Json complete_event(int thread, const std::string& name, double begin, double end) {
  return {{"ph", "X"},
          {"pid", kRank},
          {"tid", thread},
          {"ts", begin * kMicroseconds},
          {"dur", std::max(0.0, end - begin) * kMicroseconds},
          {"name", name}};
}

}  // namespace

std::string trace_text(const Program& program, std::span<const InstructionTime> times,
                       const std::string& device) {
  Events events;
  name_process_and_threads(events, device);
  const auto begin_of = [](std::span<const InstructionTime> some) {
    return std::ranges::min(some, {}, &InstructionTime::begin).begin;
  };
  const double zero = times.empty() ? 0 : begin_of(times);
  std::array<double, kLanes> lane_end{};
  std::vector<double> collectives_end;  // by thread: when its last collective ended
  std::size_t number = 0;
  for (const std::span<const InstructionTime> iteration : split_iterations(times)) {
    const double begin = begin_of(iteration) - zero;
    double end = begin;
    for (const InstructionTime& time : iteration) end = std::max(end, time.end - zero);
    add(events, complete_event(kIterationsThread, fmt::format("iteration {}", number), begin, end));
    for (const InstructionTime& time : iteration) {
      const Instruction& instruction = program.instructions.at(time.instruction);
      const bool overlaps = instruction.lane == Lane::communication;
      double& free_from = overlaps ? free_thread(collectives_end, time.begin - zero)
                                   : lane_end[static_cast<std::size_t>(instruction.lane)];
      const double step_begin = std::max(time.begin - zero, free_from);
      free_from = std::max(step_begin, time.end - zero);
      const int thread = overlaps
                             ? kCommunicationThread + static_cast<int>(&free_from - collectives_end.data())
                             : thread_of(instruction.lane);
      Json event = complete_event(thread, instruction.name, step_begin, time.end - zero);
      event["cat"] = name_of(instruction.phase);
      event["args"] = {{"kind", instruction.kind()},
                       {"phase", name_of(instruction.phase)},
                       {"iteration", number},
                       {"macs", instruction.work.macs},
                       {"bytes", bytes_of(program, instruction)}};
      add(events, event);
    }
    ++number;
  }
  for (std::size_t i = 1; i < collectives_end.size(); ++i)
    add_thread(events, kCommunicationThread + static_cast<int>(i),
               fmt::format("{} {}", name_of(Lane::communication), i + 1));
  return fmt::format("{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n{}\n]}}\n", fmt::join(events, ",\n"));
}

}  // namespace plumb
