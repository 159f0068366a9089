#include "bench/output/trace_writer.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/text.h"
#include "bench/output/profile.h"

namespace plumb {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMicroseconds = 1e6;
constexpr int kRank = 0, kIterationsThread = 0;

int thread_of(Lane lane) {
  return 1 + static_cast<int>(lane);
}

// The lines of the list of events.
using Events = std::vector<std::string>;

void add(Events& events, const Json& event) {
  events.push_back(event.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void name_process_and_threads(Events& events, const std::string& device) {
  const auto name = [&](const char* what, int thread, const std::string& text) {
    add(events, {{"ph", "M"}, {"pid", kRank}, {"tid", thread}, {"name", what}, {"args", {{"name", text}}}});
  };
  name("process_name", 0, fmt::format("rank {}: {}", kRank, device));
  const auto add_thread = [&](int thread, const std::string& text) {
    name("thread_name", thread, text);
    add(events, {{"ph", "M"},
                 {"pid", kRank},
                 {"tid", thread},
                 {"name", "thread_sort_index"},
                 {"args", {{"sort_index", thread}}}});
  };
  add_thread(kIterationsThread, "iterations");
  for (const Lane lane : {Lane::input, Lane::compute, Lane::communication})
    add_thread(thread_of(lane), std::string(name_of(lane)));
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
  std::size_t number = 0;
  for (const std::span<const InstructionTime> iteration : split_iterations(times)) {
    const double begin = begin_of(iteration) - zero;
    double end = begin;
    for (const InstructionTime& time : iteration) end = std::max(end, time.end - zero);
    add(events, complete_event(kIterationsThread, fmt::format("iteration {}", number), begin, end));
    for (const InstructionTime& time : iteration) {
      const Instruction& instruction = program.instructions.at(time.instruction);
      double& free_from = lane_end[static_cast<std::size_t>(instruction.lane)];
      const double step_begin = std::max(time.begin - zero, free_from);
      free_from = std::max(step_begin, time.end - zero);
      Json event = complete_event(thread_of(instruction.lane), instruction.name, step_begin, time.end - zero);
      event["cat"] = name_of(instruction.phase);
      event["args"] = {{"kind", instruction.kind()},
                       {"phase", name_of(instruction.phase)},
                       {"iteration", number},
                       {"macs", instruction.work.macs},
                       {"bytes", instruction.work.bytes}};
      add(events, event);
    }
    ++number;
  }
  return fmt::format("{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n{}\n]}}\n", fmt::join(events, ",\n"));
}

}  // namespace plumb
