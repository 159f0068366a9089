// Scaling losses as sentences and as JSON.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "results/scaling/scaling_loss.h"

namespace plumb {
namespace {

constexpr std::size_t kMostLossesNamed = 3;
// From here on points are whole numbers.
constexpr double kTenthsBelow = 0.0995;

struct NamedPart {
  double share = 0;
  std::string name;  // "in communication between nodes"
};

bool leaves_the_node(const ScalingLoss& loss) {
  const bool alone = loss.smaller.devices() == 1;
  return loss.smaller.nodes == 1 && loss.larger.nodes > 1 && (!alone || loss.larger.devices_per_node == 1);
}

std::vector<NamedPart> named_parts(const ScalingLoss& loss) {
  const LossParts& parts = *loss.parts;
  std::vector<NamedPart> named{
      {parts.communication, fmt::format("in communication{}{}", leaves_the_node(loss) ? " between nodes" : "",
                                        parts.slow_ranks ? "" : " and waiting for other ranks")}};
  if (parts.slow_ranks)
    named.push_back(
        {*parts.slow_ranks, "waiting for " + (loss.slow_ranks.empty() ? "slow ranks" : loss.slow_ranks)});
  named.push_back({parts.data, "waiting for data"});
  named.push_back({parts.computing, "in computing"});
  return named;
}

std::string points_text(double points, double unit) {
  return fmt::format("{:.{}f}", points, unit < 1 ? 1 : 0);
}

// "19 in communication between nodes, 8 waiting for rank 13; won back: 2 in computing"
std::string parts_text(const ScalingLoss& loss, double unit) {
  std::vector<NamedPart> parts = named_parts(loss);
  std::ranges::stable_sort(parts, std::ranges::greater(), &NamedPart::share);
  std::string lost, won_back;
  for (const NamedPart& part : parts)
    if (const double points = 100 * std::abs(part.share); points >= unit / 2)
      append_part(part.share > 0 ? lost : won_back, points_text(points, unit) + " " + part.name);
  return lost + (won_back.empty() ? "" : "; won back: " + won_back);
}

std::string steps_of(const ScalingLoss& loss) {
  return loss.ambiguous ? fmt::format("{} to {}", loss.smaller.case_name(), loss.larger.case_name())
                        : fmt::format("{} to {} devices", loss.smaller.devices(), loss.larger.devices());
}

const char* noise_name(ScalingLoss::Noise noise) {
  static constexpr std::array kNames{"above", "within", "unknown"};
  return kNames[static_cast<std::size_t>(noise)];
}

}  // namespace

std::string scaling_text(const ScalingLoss& loss) {
  const std::string subject = steps_of(loss);
  const std::string efficiencies =
      fmt::format("{:.1f} % to {:.1f} %", 100 * loss.efficiency_before, 100 * loss.efficiency_after);
  if (loss.noise == ScalingLoss::Noise::within)
    return fmt::format("{}: efficiency {}, within noise", subject, efficiencies);
  const double size = std::abs(loss.lost()), unit = size < kTenthsBelow ? 0.1 : 1;
  const double total = std::round(100 * size / unit);
  const std::string noise = loss.noise == ScalingLoss::Noise::unknown ? "; noise unknown from one run" : "";
  const std::string change =
      total == 0
          ? fmt::format("{} keep their efficiency ({}{})", subject, efficiencies, noise)
          : fmt::format("{} {} {} points of efficiency ({}{})", subject, loss.lost() > 0 ? "lose" : "gain",
                        points_text(total * unit, unit), efficiencies, noise);
  return loss.parts && loss.lost() > 0 && total > 0 ? change + ": " + parts_text(loss, unit) : change;
}

bool is_verdict(const ScalingLoss& loss) {
  return loss.noise != ScalingLoss::Noise::within && loss.lost() >= kLeastLoss;
}

std::vector<std::string> scaling_verdict(std::span<const ScalingLoss> losses) {
  std::vector<std::string> sentences;
  for (const ScalingLoss& loss : losses)
    if (is_verdict(loss) && sentences.size() < kMostLossesNamed) sentences.push_back(scaling_text(loss));
  return sentences;
}

nlohmann::ordered_json to_json(const ScalingLoss& loss) {
  nlohmann::ordered_json json{{"from", loss.smaller.case_name()},
                              {"to", loss.larger.case_name()},
                              {"efficiency_from", loss.efficiency_before},
                              {"efficiency_to", loss.efficiency_after},
                              {"lost", loss.lost()},
                              {"noise", noise_name(loss.noise)},
                              {"parts", nullptr},
                              {"slow_ranks", loss.slow_ranks},
                              {"text", scaling_text(loss)}};
  if (const auto& parts = loss.parts) {
    json["parts"] = {{"communication", parts->communication},
                     {"slow_ranks", nullptr},
                     {"data", parts->data},
                     {"computing", parts->computing}};
    if (parts->slow_ranks) json["parts"]["slow_ranks"] = *parts->slow_ranks;
  }
  return json;
}

}  // namespace plumb
