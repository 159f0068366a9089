#include "tests/models/margin_reference.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <stdexcept>

namespace plumb {
namespace {

double dot(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

double norm(std::span<const double> a) {
  return std::max(std::sqrt(dot(a, a)), 1e-12);
}

std::vector<double> normalized(std::span<const double> a) {
  std::vector<double> unit(a.begin(), a.end());
  for (double& x : unit) x /= norm(a);
  return unit;
}

// Adds the gradient of f(x / |x|) with respect to x; `direction` is f's gradient with respect to `unit`.
void add_through_norm(std::span<const double> unit, std::span<const double> direction, double length,
                      std::span<double> gradient) {
  const double along = dot(unit, direction);
  for (std::size_t i = 0; i < unit.size(); ++i) gradient[i] += (direction[i] - unit[i] * along) / length;
}

struct Logit {
  double value = 0;
  double by_cosine = 0;
};

Logit target_logit(const MarginProblem& problem, double cosine) {
  const auto [m1, m2, m3] = problem.margins;
  const bool straight_through = problem.gradient == MarginLoss::Gradient::straight_through;
  if (m1 == 1 && m2 == 0) return {problem.scale * (cosine - m3), problem.scale};
  const double theta = std::acos(std::clamp(cosine, -1 + 1e-7, 1 - 1e-7));
  const double factor = straight_through ? 1 : m1 * std::sin(m1 * theta + m2) / std::sin(theta);
  return {problem.scale * (std::cos(m1 * theta + m2) - m3), problem.scale * factor};
}

std::span<const double> row(const std::vector<double>& matrix, std::int64_t index, std::int64_t width) {
  return std::span(matrix).subspan(static_cast<std::size_t>(index * width), static_cast<std::size_t>(width));
}

std::span<double> row(std::vector<double>& matrix, std::int64_t index, std::int64_t width) {
  return std::span(matrix).subspan(static_cast<std::size_t>(index * width), static_cast<std::size_t>(width));
}

void check(const MarginProblem& problem, const std::vector<std::int64_t>& sample) {
  const auto holds = [](const std::vector<double>& matrix, std::int64_t rows, std::int64_t width) {
    return static_cast<std::int64_t>(matrix.size()) == rows * width;
  };
  if (!holds(problem.features, problem.images, problem.embedding) ||
      !holds(problem.centers, problem.classes, problem.embedding) ||
      static_cast<std::int64_t>(problem.labels.size()) != problem.images) {
    throw std::invalid_argument("sizes of the margin problem don't fit");
  }
  for (const std::int64_t label : problem.labels) {
    if (std::find(sample.begin(), sample.end(), label) == sample.end()) {
      throw std::invalid_argument("label " + std::to_string(label) + " takes no part");
    }
  }
}

// One image: its loss and its contribution to both gradients.
void add_image(const MarginProblem& problem, const std::vector<std::int64_t>& sample,
               const std::vector<std::vector<double>>& unit_centres, std::int64_t image,
               MarginAnswer& answer) {
  const std::int64_t label = problem.labels[static_cast<std::size_t>(image)];
  const std::span<const double> x = row(problem.features, image, problem.embedding);
  const std::vector<double> unit = normalized(x);
  std::vector<Logit> logits;
  for (std::size_t j = 0; j < sample.size(); ++j) {
    const double cosine = dot(unit, unit_centres[j]);
    logits.push_back(sample[j] == label ? target_logit(problem, cosine)
                                        : Logit{problem.scale * cosine, problem.scale});
  }
  double most = logits.front().value;
  for (const Logit& logit : logits) most = std::max(most, logit.value);
  double sum = 0;
  for (const Logit& logit : logits) sum += std::exp(logit.value - most);
  const double log_sum = most + std::log(sum);

  std::vector<double> by_unit(unit.size(), 0);
  for (std::size_t j = 0; j < sample.size(); ++j) {
    const double probability = std::exp(logits[j].value - log_sum);
    const double wanted = sample[j] == label ? 1 : 0;
    if (sample[j] == label) answer.image_losses.push_back(log_sum - logits[j].value);
    const double by_cosine =
        (probability - wanted) * logits[j].by_cosine / static_cast<double>(problem.images);
    std::vector<double> by_unit_centre(unit.size());
    for (std::size_t i = 0; i < unit.size(); ++i) {
      by_unit[i] += by_cosine * unit_centres[j][i];
      by_unit_centre[i] = by_cosine * unit[i];
    }
    add_through_norm(unit_centres[j], by_unit_centre,
                     norm(row(problem.centers, sample[j], problem.embedding)),
                     row(answer.centre_gradient, sample[j], problem.embedding));
  }
  add_through_norm(unit, by_unit, norm(x), row(answer.feature_gradient, image, problem.embedding));
}

}  // namespace

MarginAnswer margin_reference(const MarginProblem& problem) {
  std::vector<std::int64_t> sample = problem.sample;
  if (sample.empty()) {
    sample.resize(static_cast<std::size_t>(problem.classes));
    std::iota(sample.begin(), sample.end(), 0);
  }
  check(problem, sample);
  std::vector<std::vector<double>> unit_centres;
  for (const std::int64_t one : sample) {
    unit_centres.push_back(normalized(row(problem.centers, one, problem.embedding)));
  }
  MarginAnswer answer;
  answer.feature_gradient.assign(problem.features.size(), 0);
  answer.centre_gradient.assign(problem.centers.size(), 0);
  for (std::int64_t image = 0; image < problem.images; ++image) {
    add_image(problem, sample, unit_centres, image, answer);
  }
  answer.loss = std::accumulate(answer.image_losses.begin(), answer.image_losses.end(), 0.0) /
                static_cast<double>(problem.images);
  return answer;
}

}  // namespace plumb
