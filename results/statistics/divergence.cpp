#include "results/statistics/divergence.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace plumb {

std::string divergence_text(double first, double last) {
  constexpr double kLeastGrowth = 10;
  if (!std::isfinite(last)) return fmt::format("the loss became {}: training diverges", last);
  if (!(last > kLeastGrowth * std::max(first, 1.0))) return "";
  return fmt::format("the loss grew from {:.5g} to {:.5g}: training diverges", first, last);
}

}  // namespace plumb
