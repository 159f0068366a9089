// Margin losses (kernels/program/margin_lowering.h has the formulas).
#include <algorithm>
#include <limits>
#include <set>

#include "models/margin_head.h"
#include "tests/conformance/reference_run.h"

namespace plumb {
namespace {

double dot(const double* a, const double* b, std::size_t count) {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

std::int64_t Run::columns_in_use(const std::optional<Read>& sample_count, std::int64_t rows) const {
  return sample_count ? static_cast<std::int64_t>(in(*sample_count)[0]) : rows;
}

// -1: on another rank.
std::int64_t Run::target_column(BufferId columns, std::int64_t image, std::int64_t in_use) const {
  const MarginLoss& op = this->op<MarginLoss>();
  const std::int64_t first = op.head == Head::sampled ? 0 : op.first_class;
  const std::int64_t column = static_cast<std::int64_t>(in(columns)[static_cast<std::size_t>(image)]) - first;
  return column >= 0 && column < in_use ? column : -1;
}

void Run::of(const MarginNormalize& margin) {
  const Doubles& features = in(margin.features);
  const auto images = in(margin.labels).size(), embedding = features.size() / images;
  Expected unit{Doubles(features.size())}, inverses{Doubles(images)};
  for (std::size_t n = 0; n < images; ++n) {
    const double* x = &features[n * embedding];
    inverses.values[n] = inverse_norm(dot(x, x, embedding));
    for (std::size_t e = 0; e < embedding; ++e) unit.values[n * embedding + e] = x[e] * inverses.values[n];
  }
  for (Expected* one : {&unit, &inverses})
    for (double value : one->values) one->slack.push_back(kSumUnits * std::abs(value));
  expect(margin.normalized, std::move(unit));
  expect(margin.inverse_norms, std::move(inverses));
  expect(margin.own_labels, {in(margin.labels)});
}

// This rank's labels, unique and ascending, then the permutation's values that are none.
void Run::of(const MarginSampleClasses& margin) {
  const MarginLoss& op = this->op<MarginLoss>();
  const std::int64_t own = reference_.graph_.parameters[op.weight].dims[0];
  std::set<std::int64_t> positives;
  for (double label : in(margin.labels)) {
    const std::int64_t row = static_cast<std::int64_t>(label) - op.first_class;
    if (row >= 0 && row < own) positives.insert(row);
  }
  Doubles rows{positives.begin(), positives.end()}, columns;
  const std::size_t size = std::max(rows.size(), static_cast<std::size_t>(sampled_rows(op.sample_rate, own)));
  const auto permutation =
      class_permutation(sample_key(op), state_.iteration, static_cast<std::uint32_t>(own));
  for (std::uint32_t i = 0; rows.size() < size; ++i)
    if (!positives.contains(permutation(i))) rows.push_back(permutation(i));
  for (double label : in(margin.labels)) {
    const auto found = positives.find(static_cast<std::int64_t>(label) - op.first_class);
    columns.push_back(
        found == positives.end() ? -1 : static_cast<double>(std::distance(positives.begin(), found)));
  }
  rows.resize(made(margin.samples).size(), -1);
  expect(margin.samples, {std::move(rows)});
  expect(margin.sample_count, {{static_cast<double>(size)}});
  expect(margin.columns, {std::move(columns)});
}

void Run::of(const MarginGatherRows& margin) {
  const Doubles &samples = in(margin.samples), &weight = in(margin.weight);
  const std::size_t embedding = made(margin.rows).size() / samples.size();
  Doubles rows(made(margin.rows).size());
  for (std::size_t k = 0; k < static_cast<std::size_t>(in(margin.sample_count)[0]); ++k)
    std::copy_n(
        weight.begin() + static_cast<std::ptrdiff_t>(samples[k]) * static_cast<std::ptrdiff_t>(embedding),
        embedding, rows.begin() + static_cast<std::ptrdiff_t>(k * embedding));
  expect(margin.rows, {std::move(rows)});
}

void Run::of(const MarginClassNorms& margin) {
  const Doubles& rows = in(margin.rows);
  const std::size_t classes = made(margin.class_inverse_norms).size(), embedding = rows.size() / classes;
  Expected inverses{Doubles(classes), Doubles(classes)};
  for (std::size_t k = 0;
       k < static_cast<std::size_t>(columns_in_use(margin.sample_count, static_cast<std::int64_t>(classes)));
       ++k) {
    inverses.values[k] = inverse_norm(dot(&rows[k * embedding], &rows[k * embedding], embedding));
    inverses.slack[k] = kSumUnits * inverses.values[k];
  }
  expect(margin.class_inverse_norms, std::move(inverses));
}

// Features are rounded to the dtype of the rows first.
void Run::of(const MarginProducts& margin) {
  const MarginSizes sizes = margin_sizes(reference_.graph_, instruction_.op);
  const auto rows = static_cast<std::size_t>(sizes.rows),
             embedding = static_cast<std::size_t>(sizes.embedding);
  const Doubles features = rounded(dtype(margin.rows), in(margin.normalized));
  Sums products(static_cast<std::size_t>(sizes.images) * rows);
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < products.values.size(); ++i)
    for (std::size_t e = 0; e < embedding; ++e)
      products.add(i, features[i / rows * embedding + e] * in(margin.rows)[i % rows * embedding + e]);
  expect(margin.products, std::move(products).expected(product_units(embedding)));
}

void Run::of(const MarginStatistics& margin) {
  const MarginLoss& op = this->op<MarginLoss>();
  const MarginSizes sizes = margin_sizes(reference_.graph_, instruction_.op);
  const std::int64_t in_use = columns_in_use(margin.sample_count, sizes.rows);
  const auto images = static_cast<std::size_t>(sizes.images);
  const bool straight_through = op.gradient == MarginLoss::Gradient::straight_through;
  Expected largest{Doubles(images), Doubles(images, 8 * 0x1p-24 * op.scale)},
      factors{Doubles(images), Doubles(images)},
      sums{Doubles(2 * images), Doubles(2 * images, 8 * 0x1p-24 * op.scale)};
#pragma omp parallel for schedule(static)
  for (std::size_t n = 0; n < images; ++n) {
    const std::int64_t target = target_column(margin.columns, static_cast<std::int64_t>(n), in_use);
    Doubles logits;
    for (std::int64_t k = 0; k < in_use; ++k) {
      const double cosine =
          in(margin.products)[n * static_cast<std::size_t>(sizes.rows) + static_cast<std::size_t>(k)] *
          in(margin.class_inverse_norms)[static_cast<std::size_t>(k)];
      if (k != target) {
        logits.push_back(op.scale * cosine);
        continue;
      }
      const auto with_margin =
          margin_target(cosine, op.margins.m1, op.margins.m2, op.margins.m3, straight_through);
      logits.push_back(op.scale * with_margin.cosine);
      // acos and 1 / sin steepen towards cosines of 1 and -1.
      const double steep = 1 / std::max(1 - cosine * cosine, 1e-7);
      factors.values[n] = with_margin.factor;
      factors.slack[n] = 32 * 0x1p-24 * (1 + std::abs(with_margin.factor)) * steep;
      sums.values[images + n] = logits.back();
      sums.slack[images + n] *= std::sqrt(steep);
      largest.slack[n] *= std::sqrt(steep);
    }
    largest.values[n] = logits.empty() ? -std::numeric_limits<double>::infinity()
                                       : *std::max_element(logits.begin(), logits.end());
    for (double logit : logits) sums.values[n] += std::exp(logit - made(margin.local_max)[n]);
    sums.slack[n] = sums.values[n] * (16 * 0x1p-24 * op.scale + sums.slack[images + n]);
  }
  expect(margin.local_max, largest);
  expect(margin.row_max, std::move(largest));
  expect(margin.row_sums, std::move(sums));
  expect(margin.target_factor, std::move(factors));
}

void Run::of(const MarginRescale& margin) {
  Expected sums{in(margin.row_sums), Doubles(in(margin.row_sums).size())};
  for (std::size_t n = 0; n < in(margin.row_max).size(); ++n) {
    const double step = in(margin.local_max)[n] - in(margin.row_max)[n];
    sums.values[n] *= std::exp(step);
    sums.slack[n] = sums.values[n] * 0x1p-24 * (8 + 2 * std::abs(step));
  }
  expect(margin.row_sums, std::move(sums));
}

void Run::of(const MarginGradient& margin) {
  const MarginLoss& op = this->op<MarginLoss>();
  const MarginSizes sizes = margin_sizes(reference_.graph_, instruction_.op);
  const std::int64_t in_use = columns_in_use(margin.sample_count, sizes.rows);
  const auto images = static_cast<std::size_t>(sizes.images), rows = static_cast<std::size_t>(sizes.rows);
  const auto first_own = static_cast<std::size_t>(sizes.own_images * op.rank),
             own = static_cast<std::size_t>(sizes.own_images);
  Expected gradient{Doubles(images * rows), Doubles(images * rows)};
  double loss = 0;
  int top1 = 0;
#pragma omp parallel for schedule(static) reduction(+ : loss, top1)
  for (std::size_t n = 0; n < images; ++n) {
    const double largest = in(margin.row_max)[n], sum = in(margin.row_sums)[n],
                 target_logit = in(margin.row_sums)[images + n];
    const std::int64_t target = target_column(margin.columns, static_cast<std::int64_t>(n), in_use);
    for (std::size_t k = 0; k < static_cast<std::size_t>(in_use); ++k) {
      const bool is_target = static_cast<std::int64_t>(k) == target;
      const double inverse = in(margin.class_inverse_norms)[k];
      const double logit = is_target ? target_logit : op.scale * in(margin.products)[n * rows + k] * inverse;
      const double p = std::exp(logit - largest) / sum;
      const double factor = op.scale / static_cast<double>(own) * inverse * state_.loss_scale *
                            (is_target ? in(margin.target_factor)[n] : 1);
      gradient.values[n * rows + k] = (p - (is_target ? 1 : 0)) * factor;
      gradient.slack[n * rows + k] =
          std::abs(factor) * 0x1p-24 *
          (p * (16 + 4 * op.scale + std::abs(logit - largest)) + (is_target ? 8 : 0));
    }
    if (n < first_own || n >= first_own + own) continue;
    loss += (largest + std::log(sum) - target_logit) / static_cast<double>(own);
    top1 += target_logit >= largest;
  }
  expect(margin.products, std::move(gradient));
  reference_.metrics_ = {.loss = loss, .top1 = top1, .top5 = -1};
}

void Run::of(const MarginFeatureProducts& margin) {
  const MarginSizes sizes = margin_sizes(reference_.graph_, instruction_.op);
  const auto rows = static_cast<std::size_t>(sizes.rows),
             embedding = static_cast<std::size_t>(sizes.embedding);
  Sums gradient(static_cast<std::size_t>(sizes.images) * embedding);
#pragma omp parallel for schedule(static)
  for (std::size_t n = 0; n < static_cast<std::size_t>(sizes.images); ++n)
    for (std::size_t k = 0; k < rows; ++k)
      for (std::size_t e = 0; e < embedding; ++e)
        gradient.add(n * embedding + e,
                     in(margin.products)[n * rows + k] * in(margin.rows)[k * embedding + e]);
  expect(margin.d_normalized, std::move(gradient).expected(product_units(rows)));
}

// The gradient of w / |x|'s direction, less its part along w. A half type rounds x^ first, and the product
// behind.
void Run::of(const MarginWeightGradient& margin) {
  const MarginSizes sizes = margin_sizes(reference_.graph_, instruction_.op);
  const auto rows = static_cast<std::size_t>(sizes.rows),
             embedding = static_cast<std::size_t>(sizes.embedding);
  const DType stored = dtype(margin.rows);
  const Doubles features = rounded(stored, in(margin.normalized));
  Sums products(rows * embedding);
#pragma omp parallel for schedule(static)
  for (std::size_t k = 0; k < rows; ++k)
    for (std::size_t n = 0; n < static_cast<std::size_t>(sizes.images); ++n)
      for (std::size_t e = 0; e < embedding; ++e)
        products.add(k * embedding + e, in(margin.products)[n * rows + k] * features[n * embedding + e]);
  const double rounding = product_units(static_cast<std::size_t>(sizes.images)) +
                          (stored == DType::f32 ? 0 : 2 * unit_roundoff(stored));
  Expected gradient{Doubles(rows * embedding), Doubles(rows * embedding)};
  for (std::size_t k = 0; k < rows; ++k) {
    const double* w = &in(margin.rows)[k * embedding];
    const double* v = &products.values[k * embedding];
    const double inverse = in(margin.class_inverse_norms)[k],
                 along = dot(w, v, embedding) * inverse * inverse;
    double most = 0;
    for (std::size_t e = 0; e < embedding; ++e)
      most += std::abs(w[e]) * products.magnitudes[k * embedding + e] * inverse * inverse;
    for (std::size_t e = 0; e < embedding; ++e) {
      gradient.values[k * embedding + e] = v[e] - w[e] * along;
      gradient.slack[k * embedding + e] =
          rounding * (products.magnitudes[k * embedding + e] + std::abs(w[e]) * most);
    }
  }
  expect(margin.d_rows, std::move(gradient));
}

void Run::of(const MarginFeaturesBackward& margin) {
  const Doubles &unit = in(margin.normalized), &gradient = in(margin.d_normalized);
  const std::size_t images = in(margin.inverse_norms).size(), embedding = unit.size() / images;
  Sums d_features(unit.size());
  for (std::size_t n = 0; n < images; ++n) {
    const double *x = &unit[n * embedding], *g = &gradient[n * embedding];
    const double inverse = in(margin.inverse_norms)[n], along = dot(x, g, embedding);
    double most = 0;
    for (std::size_t e = 0; e < embedding; ++e) most += std::abs(x[e] * g[e]);
    for (std::size_t e = 0; e < embedding; ++e) {
      d_features.add(n * embedding + e, inverse * g[e]);
      d_features.add(n * embedding + e, -inverse * x[e] * along);
      d_features.magnitudes[n * embedding + e] += inverse * std::abs(x[e]) * most;
    }
  }
  expect(margin.d_features, std::move(d_features).expected());
}

}  // namespace plumb
