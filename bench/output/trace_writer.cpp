#include "bench/output/trace_writer.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/text.h"
#include "bench/output/profile.h"
#include "bench/output/result_writer.h"

namespace plumb {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMicroseconds = 1e6;
constexpr int kIterationsThread = 0;

int thread_of(Lane lane) {
  return 1 + static_cast<int>(lane);
}

// The list of events, written one by one.
class EventList {
 public:
  explicit EventList(std::ostream& stream) : stream_(stream) {
    stream_ << R"({"displayTimeUnit":"ms","traceEvents":[)";
  }
  void add(const Json& event) {
    stream_ << (first_ ? "\n" : ",\n")
            << event.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    first_ = false;
  }
  void end() { stream_ << "\n]}\n"; }

 private:
  std::ostream& stream_;
  bool first_ = true;
};

void name_process_and_threads(EventList& events, const TraceDescription& description) {
  const int rank = description.rank;
  const auto name = [&](const char* what, int thread, const std::string& text) {
    events.add({{"ph", "M"}, {"pid", rank}, {"tid", thread}, {"name", what}, {"args", {{"name", text}}}});
  };
  name("process_name", 0, fmt::format("rank {}: {}", rank, description.device));
  const auto add_thread = [&](int thread, const std::string& text) {
    name("thread_name", thread, text);
    events.add({{"ph", "M"},
                {"pid", rank},
                {"tid", thread},
                {"name", "thread_sort_index"},
                {"args", {{"sort_index", thread}}}});
  };
  add_thread(kIterationsThread, "iterations");
  for (const Lane lane : {Lane::input, Lane::compute, Lane::communication})
    add_thread(thread_of(lane), std::string(name_of(lane)));
}

Json complete_event(int rank, int thread, const std::string& name, double begin, double end) {
  return {{"ph", "X"},
          {"pid", rank},
          {"tid", thread},
          {"ts", begin * kMicroseconds},
          {"dur", std::max(0.0, end - begin) * kMicroseconds},
          {"name", name}};
}

}  // namespace

void write_trace(std::ostream& stream, const Program& program, std::span<const InstructionTime> times,
                 const TraceDescription& description) {
  EventList events(stream);
  name_process_and_threads(events, description);
  const auto earlier = [](const InstructionTime& a, const InstructionTime& b) { return a.begin < b.begin; };
  const double zero = times.empty() ? 0 : std::min_element(times.begin(), times.end(), earlier)->begin;
  std::array<double, kLanes> lane_end{};
  std::size_t number = 0;
  for (const std::span<const InstructionTime> iteration : split_iterations(times)) {
    const double begin = std::min_element(iteration.begin(), iteration.end(), earlier)->begin - zero;
    double end = begin;
    for (const InstructionTime& time : iteration) end = std::max(end, time.end - zero);
    events.add(
        complete_event(description.rank, kIterationsThread, fmt::format("iteration {}", number), begin, end));
    for (const InstructionTime& time : iteration) {
      const Instruction& instruction = program.instructions.at(time.instruction);
      double& free_from = lane_end[static_cast<std::size_t>(instruction.lane)];
      const double step_begin = std::max(time.begin - zero, free_from);
      free_from = std::max(step_begin, time.end - zero);
      Json event = complete_event(description.rank, thread_of(instruction.lane), instruction.name, step_begin,
                                  time.end - zero);
      event["cat"] = name_of(instruction.phase);
      event["args"] = {{"kind", instruction.kind()},
                       {"phase", name_of(instruction.phase)},
                       {"iteration", number},
                       {"macs", instruction.work.macs},
                       {"bytes", instruction.work.bytes}};
      events.add(event);
    }
    ++number;
  }
  events.end();
}

void write_trace_file(const std::string& path, const Program& program, std::span<const InstructionTime> times,
                      const TraceDescription& description) {
  std::ostringstream stream;
  write_trace(stream, program, times, description);
  replace_output(path, stream.view());
}

}  // namespace plumb
