// How a profile is shown: as a table for people, as profile.json, and its instructions as trace.json.
#include <algorithm>
#include <array>
#include <functional>

#include "base/text.h"
#include "base/units.h"
#include "bench/output/profile.h"
#include "results/record/profile.h"

namespace plumb {
namespace {

constexpr std::size_t kNameColumns = 37;

std::string totals_text(const RunProfile& profile) {
  std::string text = fmt::format("profile of {} iterations, {}, {}\n", profile.iterations, profile.precision,
                                 shortened(profile.device, 60));
  text += fmt::format("limits: {:.0f} GFLOP/s, {:.0f} GB/s; times are means of the {}\n\n",
                      profile.peak_flops_per_second / kGiga, profile.peak_bytes_per_second / kGiga,
                      profile.averaged_iterations == 1 ? "stamped iteration of middle length"
                                                       : fmt::format("{} stamped iterations of middle length",
                                                                     profile.averaged_iterations));
  const auto row = [&](const char* name, double seconds, const std::string& remark) {
    text += fmt::format("  {:<22}{:>12.3f} ms{}\n", name, seconds * kMilliseconds, remark);
  };
  row("stamped step", profile.iteration_seconds,
      profile.run_step_seconds
          ? fmt::format(", and {:.3f} ms without stamps", *profile.run_step_seconds * kMilliseconds)
          : "");
  row("in ops", profile.busy_seconds,
      fmt::format(", {:.1f} %", percent(profile.busy_seconds, profile.iteration_seconds)));
  row("in gaps between them", profile.gap_seconds,
      fmt::format(", {:.1f} %", percent(profile.gap_seconds, profile.iteration_seconds)));
  row("roofline", profile.roofline_seconds,
      fmt::format(", {:.1f} % of the time in ops", percent(profile.roofline_seconds, profile.busy_seconds)));
  return text;
}

// The share of the roofline that was reached; above 1 the data was in caches, faster than the memory that the
// roofline counts.
std::string roofline_share(double share) {
  return share > 1.005 ? "cached" : fmt::format("{:.0f} %", 100 * share);
}

std::string groups_text(const char* title, const std::vector<ProfiledKind>& totals, double all_seconds) {
  std::string text = fmt::format("\n{:<40}{:>6}{:>12}{:>8}{:>13}{:>12}\n", title, "count", "ms", "share",
                                 "roofline ms", "of roofline");
  for (const ProfiledKind& total : totals)
    text += fmt::format("  {:<38}{:>6}{:>12.3f}{:>6.1f} %{:>13.3f}{:>12}\n", total.name, total.instructions,
                        total.seconds * kMilliseconds, percent(total.seconds, all_seconds),
                        total.roofline_seconds * kMilliseconds,
                        roofline_share(total.seconds > 0 ? total.roofline_seconds / total.seconds : 0));
  return text;
}

// Instructions that compute, most lost first.
std::vector<ProfiledInstruction> by_loss(const RunProfile& profile) {
  std::vector<ProfiledInstruction> instructions = profile.instructions;
  std::erase_if(instructions,
                [](const ProfiledInstruction& instruction) { return instruction.lane != kComputeLane; });
  std::ranges::stable_sort(instructions, std::greater{}, &ProfiledInstruction::lost_seconds);
  return instructions;
}

std::string ops_text(const RunProfile& profile, std::size_t shown) {
  const std::vector<ProfiledInstruction> instructions = by_loss(profile);
  const std::size_t rows = std::min(shown, instructions.size());
  std::string text = fmt::format("\n{:<39}{:>9}{:>8}{:>9}{:>8}{:>9}{:>8} {:>9}\n",
                                 fmt::format("{} of {} ops, most lost first", rows, instructions.size()),
                                 "ms", "share", "GFLOP/s", "GB/s", "lost ms", "of roof", "bound by");
  for (const ProfiledInstruction& instruction : std::span(instructions).first(rows))
    text += fmt::format("  {:<37}{:>9.3f}{:>6.1f} %{:>9.0f}{:>8.1f}{:>9.3f}{:>8} {:>9}\n",
                        shortened(instruction.name, kNameColumns), instruction.seconds * kMilliseconds,
                        100 * instruction.share, instruction.flops_per_second / kGiga,
                        instruction.bytes_per_second / kGiga, instruction.lost_seconds() * kMilliseconds,
                        roofline_share(instruction.roofline_share), instruction.bound_by);
  return text;
}

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
          {"ts", begin * kMicrosecondsInSecond},
          {"dur", std::max(0.0, end - begin) * kMicrosecondsInSecond},
          {"name", name}};
}

}  // namespace

std::string profile_text(const RunProfile& profile, std::size_t shown) {
  return totals_text(profile) + groups_text("phase", profile.phases, profile.busy_seconds) +
         groups_text("kind of op", profile.kinds, profile.busy_seconds) + ops_text(profile, shown);
}

Json profile_json(const RunProfile& profile) {
  Json json{{"format", kProfileFormat}};
  json.update(fields::written(profile));
  return json;
}

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
