#include "bench/plan/dry_run.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <functional>
#include <span>
#include <utility>

#include "base/text_table.h"
#include "base/units.h"
#include "bench/output/program_json.h"
#include "comm/gradient_reduction.h"
#include "kernels/program/roofline.h"
#include "models/cost.h"
#include "results/simulation/simulator.h"
#include "results/simulation/step_model.h"

namespace plumb {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLongestShown = 10;
constexpr std::size_t kNameColumns = 48;
constexpr std::size_t kColumns = 100, kSourceIndent = 4;  // of the list of targets
constexpr std::array kPrecisions{Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16};

// "25,557,032"
std::string grouped(std::int64_t number) {
  std::string text = std::to_string(number);
  for (auto at = std::ssize(text) - 3; at > 0; at -= 3) text.insert(static_cast<std::size_t>(at), 1, ',');
  return text;
}

std::string exchange_text(const DryRun& run, const PredictedExchange& exchange) {
  constexpr double kBits = 8;
  const Link& link = exchange.link;
  const auto row = [](const char* name, double seconds, const std::string& remark) {
    return fmt::format("{:<20}{:>16.3f} ms{}\n", name, seconds * kMilliseconds, remark);
  };
  std::string text =
      row("exchange", exchange.seconds,
          fmt::format(" over {}n{}g, {:g} Gbit/s and {:g} us between nodes", exchange.layout.nodes,
                      exchange.layout.devices_per_node, kBits * link.bytes_per_second / kGiga,
                      link.latency_seconds * kMicrosecondsInSecond));
  text += fmt::format("{:<20}2 (n - 1) / n x bytes / bandwidth + 2 (nodes - 1) x latency, each bucket\n",
                      "  as a ring");
  if (!exchange.exposed_seconds) return text;
  const double step = run.roofline_seconds + *exchange.exposed_seconds;
  const double images = static_cast<double>(run.batch_per_device * run.world_size);
  return text + row("  exposed", *exchange.exposed_seconds,
                    fmt::format(", simulated beside the roofline: {:.1f} images/s in all",
                                step > 0 ? images / step : 0));
}

std::string totals_text(const DryRun& run) {
  std::string text = fmt::format("{}, {}, batch {} per device, world size {}\n", run.model,
                                 name_of(run.precision), grouped(run.batch_per_device), run.world_size);
  text += fmt::format("on {}\n\n", shortened(run.target, 90));
  text += fmt::format("{:<20}{:>16}\n", "parameters", grouped(run.parameters));
  text += fmt::format("{:<20}{:>16}\n", "MACs per image", grouped(run.macs_per_image));
  if (run.head_parameters > 0) {
    text += fmt::format("{:<20}{:>16} parameters in all, {} MACs per image\n", "class centers",
                        grouped(run.head_parameters), grouped(run.head_macs_per_image));
  }
  text += fmt::format("{:<20}{:>16.3f} ms, {:.1f} images/s per device, {:.0f} % of it bound by bandwidth\n",
                      "roofline step", run.roofline_seconds * kMilliseconds,
                      run.roofline_seconds > 0 ? run.batch_per_device / run.roofline_seconds : 0,
                      100 * run.bandwidth_share);
  text += fmt::format("{:<20}{:>16.3f} GB per step and rank\n", "sent to others", run.traffic_bytes / kGiga);
  if (run.exchange) text += exchange_text(run, *run.exchange);
  text += fmt::format("{:<20}{:>16} {:.2f} GiB planned of {:.2f} GiB\n", "fits",
                      run.fits ? "yes:" : "no:", static_cast<double>(run.memory.planned) / kGiB,
                      run.device_memory_bytes / kGiB);
  text += fmt::format("{:<20}{:>16} per device\n", "largest batch", grouped(run.largest_batch));
  return text;
}

std::string memory_text(const DryRun& run) {
  std::string text = fmt::format("\n{:<20}{:>16}\n", "memory", "GiB");
  for (const auto& [name, bytes] : memory_parts(run.memory))
    text += fmt::format("  {:<18}{:>16.3f}\n", name, static_cast<double>(bytes) / kGiB);
  return text;
}

std::string phases_text(const DryRun& run) {
  std::string text = fmt::format("\n{:<20}{:>8}{:>12}{:>12}{:>14}{:>8}\n", "phase", "count", "GMAC", "GB",
                                 "roofline ms", "share");
  for (const Phase phase : {Phase::input, Phase::forward, Phase::backward, Phase::reduce, Phase::update}) {
    std::size_t count = 0;
    double macs = 0, bytes = 0, seconds = 0;
    for (const DryRunInstruction& instruction : run.instructions) {
      if (instruction.phase != phase) continue;
      ++count;
      macs += instruction.macs;
      bytes += instruction.bytes;
      seconds += instruction.roofline_seconds;
    }
    if (count == 0) continue;
    text += fmt::format("  {:<18}{:>8}{:>12.2f}{:>12.3f}{:>14.3f}{:>6.0f} %\n", name_of(phase), count,
                        macs / kGiga, bytes / kGiga, seconds * kMilliseconds,
                        percent(seconds, run.roofline_seconds));
  }
  return text;
}

std::string longest_text(const DryRun& run) {
  std::vector<DryRunInstruction> longest = run.instructions;
  std::ranges::stable_sort(longest, std::greater{}, &DryRunInstruction::roofline_seconds);
  const std::size_t shown = std::min(longest.size(), kLongestShown);
  const std::string title = fmt::format("longest {} of {} instructions", shown, longest.size());
  std::string text =
      fmt::format("\n{:<50}{:>10}{:>10}{:>14}{:>8}\n", title, "GMAC", "GB", "roofline ms", "share");
  for (const DryRunInstruction& instruction : std::span(longest).first(shown))
    text += fmt::format("  {:<48}{:>10.2f}{:>10.3f}{:>14.3f}{:>6.0f} %\n",
                        shortened(instruction.name, kNameColumns), instruction.macs / kGiga,
                        instruction.bytes / kGiga, instruction.roofline_seconds * kMilliseconds,
                        percent(instruction.roofline_seconds, run.roofline_seconds));
  return text + "(--json lists them all)\n";
}

Json exchange_json(const PredictedExchange& exchange) {
  return {{"nodes", exchange.layout.nodes},
          {"devices_per_node", exchange.layout.devices_per_node},
          {"bytes_per_second", exchange.link.bytes_per_second},
          {"latency_seconds", exchange.link.latency_seconds},
          {"seconds", exchange.seconds},
          {"exposed_seconds", exchange.exposed_seconds ? Json(*exchange.exposed_seconds) : Json(nullptr)}};
}

}  // namespace

std::vector<double> roofline_seconds(const DryRun& run) {
  std::vector<double> seconds;
  for (const DryRunInstruction& one : run.instructions) seconds.push_back(one.roofline_seconds);
  return seconds;
}

DryRun dry_run(const StepPlan& plan, const DeviceLimits& limits, Precision precision, int world_size,
               std::int64_t largest_batch) {
  const Graph& graph = plan.graph;
  const Program& program = plan.program;
  DryRun run;
  run.model = graph.model;
  run.target = limits.name;
  run.precision = precision;
  run.batch_per_device = graph.batch();
  run.world_size = world_size;
  run.parameters = backbone_parameter_count(graph);
  run.macs_per_image = macs_per_image(graph);
  run.head_parameters = head_parameter_count(graph);
  run.head_macs_per_image = head_macs_per_image(graph);
  run.memory = memory_bytes(program, plan.memory);
  run.device_memory_bytes = limits.memory_bytes;
  run.fits = plan.needed_bytes <= limits.memory_bytes;
  run.largest_batch = largest_batch;
  const Roofline least = roofline(program, limits, precision);
  run.roofline_seconds = least.seconds;
  run.bandwidth_share = least.seconds > 0 ? least.bytes_seconds / least.seconds : 0;
  run.traffic_bytes = sent_bytes_per_rank(program, world_size);
  for (const Instruction& instruction : program.instructions) {
    const bool counts = instruction.lane == Lane::compute;
    run.instructions.push_back(
        {instruction.name, instruction.phase, instruction.lane, instruction.work.macs, instruction.work.bytes,
         counts ? roofline_seconds(instruction.work, limits, precision_of(program, instruction, precision))
                : 0});
  }
  return run;
}

Json to_json(const DryRun& run) {
  Json memory = Json::object();
  for (const auto& [name, bytes] : memory_parts(run.memory)) memory[name] = bytes;
  memory["peak"] = nullptr;
  Json instructions = Json::array();
  for (const DryRunInstruction& instruction : run.instructions) {
    instructions.push_back({{"name", instruction.name},
                            {"phase", name_of(instruction.phase)},
                            {"lane", name_of(instruction.lane)},
                            {"macs", static_cast<std::int64_t>(instruction.macs)},
                            {"bytes", static_cast<std::int64_t>(instruction.bytes)},
                            {"roofline_seconds", instruction.roofline_seconds}});
  }
  Json json = {{"model", run.model},
               {"precision", name_of(run.precision)},
               {"batch_per_device", run.batch_per_device},
               {"world_size", run.world_size},
               {"target", run.target},
               {"parameters", run.parameters},
               {"macs_per_image", run.macs_per_image},
               {"memory_bytes", std::move(memory)},
               {"device_memory_bytes", static_cast<std::int64_t>(run.device_memory_bytes)},
               {"fits", run.fits},
               {"largest_batch", run.largest_batch},
               {"roofline_seconds", run.roofline_seconds},
               {"traffic_bytes", static_cast<std::int64_t>(run.traffic_bytes)},
               {"steps", std::move(instructions)}};
  if (run.exchange) json["exchange"] = exchange_json(*run.exchange);
  if (run.head_parameters > 0) {
    json["head_parameters"] = run.head_parameters;
    json["head_macs_per_image"] = run.head_macs_per_image;
  }
  return json;
}

std::string to_text(const DryRun& run) {
  return totals_text(run) + memory_text(run) + phases_text(run) + longest_text(run);
}

std::string targets_text(const std::vector<DeviceLimits>& targets) {
  std::string text = fmt::format("{:<13}{:<6}{:>11}{:>10}", "target", "kind", "memory GiB", "GB/s");
  for (const Precision precision : kPrecisions) text += fmt::format("{:>9}", name_of(precision));
  text += "  sustained TFLOP/s\n";
  for (const DeviceLimits& target : targets) {
    text += fmt::format("{:<13}{:<6}{:>11.1f}{:>10.0f}", target.name, name_of(target.kind),
                        target.memory_bytes / kGiB, target.bytes_per_second / 1e9);
    for (const Precision precision : kPrecisions) {
      const auto peak = target.flops_per_second.find(precision);
      const bool lacks = peak == target.flops_per_second.end();
      text += fmt::format("{:>9}", lacks ? "-" : fmt::format("{:.1f}", peak->second / 1e12));
    }
    text += '\n';
    for (const std::string& line : wrapped_lines(target.source, kColumns - kSourceIndent))
      text += std::string(kSourceIndent, ' ') + line + '\n';
  }
  return text;
}

Json targets_json(const std::vector<DeviceLimits>& targets) {
  Json list = Json::array();
  for (const DeviceLimits& target : targets) {
    Json peaks = Json::object();
    for (const Precision precision : kPrecisions) {
      const auto peak = target.flops_per_second.find(precision);
      peaks[std::string(name_of(precision))] =
          peak == target.flops_per_second.end() ? Json() : Json(peak->second);
    }
    list.push_back({{"name", target.name},
                    {"kind", name_of(target.kind)},
                    {"memory_bytes", static_cast<std::int64_t>(target.memory_bytes)},
                    {"bytes_per_second", target.bytes_per_second},
                    {"flops_per_second", std::move(peaks)},
                    {"compute_capability", target.compute_capability},
                    {"source", target.source}});
  }
  return list;
}

double modeled_exchange_seconds(const Program& program, const CollectiveCost& cost) {
  double seconds = 0;
  for (const Instruction& instruction : program.instructions)
    if (const auto* one = instruction.as<Collective>())
      seconds += cost.seconds(name_of(one->kind),
                              static_cast<double>(one->elements) * static_cast<double>(bytes_of(one->dtype)));
  return seconds;
}

PredictedExchange predict_exchange(const StepPlan& plan, std::span<const double> instruction_seconds,
                                   Layout layout, const Link& link) {
  const Program& program = plan.program;
  const CollectiveCost cost({.between_hosts = link}, layout);
  PredictedExchange predicted{
      .layout = layout, .link = link, .seconds = modeled_exchange_seconds(program, cost)};
  if (std::ranges::any_of(program.buffers, &Buffer::sharded)) return predicted;
  const StepModel step =
      step_model(program_json(program, plan.memory), instruction_seconds, "the program of a dry run");
  predicted.exposed_seconds = simulate(step, [&](const StepCollective& one) {
                                return cost.seconds(one.kind, one.bytes);
                              }).exposed_seconds;
  return predicted;
}

}  // namespace plumb
