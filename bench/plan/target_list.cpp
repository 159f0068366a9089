#include "bench/plan/target_list.h"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <cstdint>
#include <string>

#include "base/units.h"
#include "base/wrapped_lines.h"

namespace plumb {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kColumns = 100, kSourceIndent = 4;
constexpr std::array kPrecisions{Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16};

}  // namespace

std::string targets_text(const std::vector<DeviceLimits>& targets) {
  std::string text = fmt::format("{:<12}{:<6}{:>12}{:>10}", "target", "kind", "memory GiB", "GB/s");
  for (const Precision precision : kPrecisions) text += fmt::format("{:>9}", name_of(precision));
  text += "  sustained TFLOP/s\n";
  for (const DeviceLimits& target : targets) {
    text += fmt::format("{:<12}{:<6}{:>12.1f}{:>10.0f}", target.name, name_of(target.kind),
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

}  // namespace plumb
