// Softmax over the logits of a margin loss, in two passes over the [N, C] products: the first reads them for
// maxima and sums (4 bytes per class and image), the second overwrites them with the gradient (reads 4,
// writes 4). Threads take blocks of kBlock classes; blocks are summed in a fixed order, so results don't
// depend on the number of threads. Formulas: kernels/program/margin_lowering.h, models/margin_head.h.
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "kernels/cpu/binding.h"
#include "kernels/cpu/fast_exp2.h"
#include "kernels/cpu/threads.h"
#include "models/margin_head.h"

namespace plumb::cpu {
namespace {

// Classes per fp32 partial sum.
constexpr std::ptrdiff_t kBlock = 1024;
// Consecutive blocks of an image per task: long enough for hardware prefetch, short enough to keep the
// inverse norms in the L2 cache for the next images.
constexpr std::ptrdiff_t kRun = 8;
constexpr float kNothing = -std::numeric_limits<float>::infinity();  // the maximum of no logits

struct Problem {
  std::ptrdiff_t images = 0;        // N, all ranks
  std::ptrdiff_t own_images = 0;    // n
  std::ptrdiff_t first_own = 0;     // index of the first own image
  std::ptrdiff_t classes = 0;       // C: columns of products
  std::ptrdiff_t first_column = 0;  // subtracted from `columns`
  float scale = 0;
  Margins margins;
  bool straight_through = false;
  std::ptrdiff_t blocks() const { return (classes + kBlock - 1) / kBlock; }
  std::ptrdiff_t runs() const { return (blocks() + kRun - 1) / kRun; }
};

Problem problem_of(const Context& context, const Instruction& instruction) {
  const MarginLoss& op = context.op<MarginLoss>(instruction);
  const MarginSizes sizes = margin_sizes(context.graph, instruction.op);
  return {.images = sizes.images,
          .own_images = sizes.own_images,
          .first_own = sizes.own_images * op.rank,
          .classes = sizes.rows,
          .first_column = op.head == Head::sampled ? 0 : op.first_class,
          .scale = static_cast<float>(op.scale),
          .margins = op.margins,
          .straight_through = op.gradient == MarginLoss::Gradient::straight_through};
}

// Inputs of both passes.
struct Logits {
  float* products = nullptr;             // [N, C]
  const float* inverse_norms = nullptr;  // [C]
  const std::int32_t* columns = nullptr;
  const std::int32_t* sample_count = nullptr;  // null: all classes are in use

  std::ptrdiff_t used(const Problem& of) const {
    return sample_count ? std::min<std::ptrdiff_t>(*sample_count, of.classes) : of.classes;
  }
  // The image's column, or -1.
  std::ptrdiff_t target(const Problem& of, std::ptrdiff_t image) const {
    const std::ptrdiff_t column = columns[image] - of.first_column;
    return column >= 0 && column < used(of) ? column : -1;
  }
};

// The loops below take pointers and scalars by value: members could alias the writes and prevent
// vectorization.
constexpr float kLog2E = 1.44269504f;
constexpr double kLog2EExact = 1.4426950408889634;

// Maximum of some logits, and the sum of exp(logit) / 2^shift.
struct Part {
  float largest = kNothing, sum = 0, shift = 0;
};

// SIMD lanes of partial sums.
constexpr std::ptrdiff_t kSideBySide = 16;

// Adds at most kSideBySide logits to as many partial sums. A NaN never becomes the maximum; it shows in the
// sum.
inline void add_lanes(const float* products, const float* inverse_norms, std::ptrdiff_t count, float scale,
                      float shift, float* largest, float* sum) {
#pragma omp simd
  for (std::ptrdiff_t lane = 0; lane < count; ++lane) {
    const float cosine = products[lane] * inverse_norms[lane];
    largest[lane] = cosine > largest[lane] ? cosine : largest[lane];
    sum[lane] += fast_exp2(cosine * scale - shift);
  }
}

Part sum_up(const float* products, const float* inverse_norms, std::ptrdiff_t count, float scale,
            float shift) {
  const float scale_of_two = scale * kLog2E;
  float largest[kSideBySide], sums[kSideBySide]{};
  std::fill_n(largest, kSideBySide, kNothing);
  std::ptrdiff_t j = 0;
  for (; j + kSideBySide <= count; j += kSideBySide)  // a constant count: one vector
    add_lanes(products + j, inverse_norms + j, kSideBySide, scale_of_two, shift, largest, sums);
  add_lanes(products + j, inverse_norms + j, count - j, scale_of_two, shift, largest, sums);
  Part part{kNothing, 0, shift};
  for (std::ptrdiff_t lane = 0; lane < kSideBySide; ++lane) {
    part.largest = std::max(part.largest, scale * largest[lane]);
    part.sum += sums[lane];
  }
  return part;
}

float largest_of(const float* products, const float* inverse_norms, std::ptrdiff_t count) {
  float largest = kNothing;
#pragma omp simd reduction(max : largest)
  for (std::ptrdiff_t j = 0; j < count; ++j) {
    const float cosine = products[j] * inverse_norms[j];
    largest = cosine > largest ? cosine : largest;
  }
  return largest;
}

// One pass: the shift is the maximum of the first kFew logits. Repeats it if the maximum is more than kFar
// (base 2) above the shift.
Part part_of(const float* products, const float* inverse_norms, std::ptrdiff_t count, float scale) {
  constexpr std::ptrdiff_t kFew = 64;
  constexpr float kFar = 100;  // sums of 2^10 terms stay below fp32's 2^128
  if (count <= 0) return {};
  const float guess = scale * kLog2E * largest_of(products, inverse_norms, std::min(kFew, count));
  const Part part = sum_up(products, inverse_norms, count, scale, guess);
  const float shift = part.largest * kLog2E;
  return shift - guess > kFar ? sum_up(products, inverse_norms, count, scale, shift) : part;
}

struct Target {
  float logit = 0, factor = 0;
};

Target target_of(const Problem& problem, const Logits& logits, std::ptrdiff_t image, std::ptrdiff_t column) {
  const double cosine =
      static_cast<double>(logits.products[image * problem.classes + column]) * logits.inverse_norms[column];
  const Margins& m = problem.margins;
  const auto with_margin = margin_target<double>(cosine, m.m1, m.m2, m.m3, problem.straight_through);
  return {static_cast<float>(problem.scale * with_margin.cosine), static_cast<float>(with_margin.factor)};
}

// Parts per block: before and after the target, whose logit has the margin and is added separately.
constexpr std::ptrdiff_t kParts = 2;

struct Statistics {
  float *local_max = nullptr, *row_max = nullptr;  // [N]
  float* sums = nullptr;                           // [2, N]
  float* target_factor = nullptr;                  // [N]
};

// Combines one image's blocks into its maximum and sum; in double because there may be many blocks.
void combine(const Problem& problem, const Logits& logits, std::span<const Part> parts, const Statistics& to,
             std::ptrdiff_t image) {
  const std::ptrdiff_t column = logits.target(problem, image);
  const Target target = column >= 0 ? target_of(problem, logits, image, column) : Target{};
  float largest = column >= 0 ? target.logit : kNothing;
  for (const Part& part : parts) largest = part.largest > largest ? part.largest : largest;
  double sum = column >= 0 ? std::exp(static_cast<double>(target.logit) - largest) : 0;
  for (const Part& part : parts)
    if (part.sum != 0)  // an empty part has no valid shift
      sum += part.sum * std::exp2(part.shift - largest * kLog2EExact);
  to.local_max[image] = to.row_max[image] = largest;
  to.sums[image] = static_cast<float>(sum);
  to.sums[problem.images + image] = target.logit;
  to.target_factor[image] = target.factor;
}

// One block of one image, skipping its target.
void gather_block(const Problem& problem, const Logits& logits, std::ptrdiff_t image, std::ptrdiff_t block,
                  Part* parts) {
  const float* products = logits.products + image * problem.classes;
  const std::ptrdiff_t begin = block * kBlock, end = std::min(begin + kBlock, logits.used(problem));
  const std::ptrdiff_t target = logits.target(problem, image);
  const bool inside = target >= begin && target < end;
  const std::ptrdiff_t until = inside ? target : end, from = inside ? target + 1 : end;
  Part* two = parts + (image * problem.blocks() + block) * kParts;
  two[0] = part_of(products + begin, logits.inverse_norms + begin, until - begin, problem.scale);
  two[1] = part_of(products + from, logits.inverse_norms + from, end - from, problem.scale);
}

void gather_statistics(const Problem& problem, const Logits& logits, Part* parts, const Statistics& to) {
  const std::ptrdiff_t blocks = problem.blocks();
  const bool worth = problem.images * problem.classes >= kWorthThreads;
#pragma omp parallel for schedule(static) if (worth)
  for (std::ptrdiff_t task = 0; task < problem.images * problem.runs(); ++task) {
    const std::ptrdiff_t image = task % problem.images, run = task / problem.images;
    for (std::ptrdiff_t block = run * kRun; block < std::min((run + 1) * kRun, blocks); ++block)
      gather_block(problem, logits, image, block, parts);
  }
#pragma omp parallel for schedule(static) if (worth)
  for (std::ptrdiff_t image = 0; image < problem.images; ++image)
    combine(problem, logits, {parts + image * blocks * kParts, static_cast<std::size_t>(blocks * kParts)}, to,
            image);
}

// For one image: softmax probability times the loss gradient = 2^(logit - shift) * slope.
struct Slope {
  float shift = 0, slope = 0;
};

Slope slope_of(const Statistics& statistics, std::ptrdiff_t image, float slope) {
  const double largest = statistics.row_max[image], sum = statistics.sums[image];
  const auto shift = static_cast<float>(largest * kLog2EExact);
  const double lost = std::exp2(shift - largest * kLog2EExact);  // corrects for rounding of shift
  return {shift, static_cast<float>(slope / sum * lost)};
}

// products := 2^(cosine * scale - shift) * slope * inverse norm
inline void put_gradient(float* products, const float* inverse_norms, std::ptrdiff_t count, float scale,
                         float shift, float slope) {
#pragma omp simd
  for (std::ptrdiff_t j = 0; j < count; ++j) {
    const float inverse_norm = inverse_norms[j];
    products[j] = fast_exp2(products[j] * inverse_norm * scale - shift) * (slope * inverse_norm);
  }
}

void put_target(const Problem& problem, const Logits& logits, const Statistics& statistics,
                std::ptrdiff_t image, float slope) {
  const std::ptrdiff_t target = logits.target(problem, image);
  if (target < 0) return;
  const double logit = statistics.sums[problem.images + image];
  const double probability = std::exp(logit - statistics.row_max[image]) / statistics.sums[image];
  logits.products[image * problem.classes + target] = static_cast<float>(
      (probability - 1) * slope * logits.inverse_norms[target] * statistics.target_factor[image]);
}

// The gradient of an image over one run of classes.
void put_run(const Problem& problem, const Logits& logits, const Statistics& statistics, std::ptrdiff_t image,
             std::ptrdiff_t run, float slope) {
  const std::ptrdiff_t begin = run * kRun * kBlock, end = std::min(begin + kRun * kBlock, problem.classes);
  const std::ptrdiff_t used_end = std::clamp(logits.used(problem), begin, end);
  const Slope of = slope_of(statistics, image, slope);
  float* row = logits.products + image * problem.classes;
  put_gradient(row + begin, logits.inverse_norms + begin, used_end - begin, problem.scale * kLog2E, of.shift,
               of.slope);
  std::fill(row + used_end, row + end, 0.0f);
}

void put_gradients(const Problem& problem, const Logits& logits, const Statistics& statistics, float slope) {
#pragma omp parallel for schedule(static) if (problem.images * problem.classes >= kWorthThreads)
  for (std::ptrdiff_t task = 0; task < problem.images * problem.runs(); ++task)
    put_run(problem, logits, statistics, task % problem.images, task / problem.images, slope);
  for (std::ptrdiff_t image = 0; image < problem.images; ++image)
    put_target(problem, logits, statistics, image, slope);
}

// Over this rank's images. An image counts for top1 if its target has the largest logit.
IterationMetrics metrics_of(const Problem& problem, const Statistics& statistics) {
  double loss = 0;
  int top1 = 0;
  for (std::ptrdiff_t i = problem.first_own; i < problem.first_own + problem.own_images; ++i) {
    const double largest = statistics.row_max[i], target = statistics.sums[problem.images + i];
    loss += largest + std::log(static_cast<double>(statistics.sums[i])) - target;
    top1 += target >= largest ? 1 : 0;
  }
  return {.loss = loss / static_cast<double>(problem.own_images), .top1 = top1, .top5 = -1};
}

Logits logits_of(const Arena& arena, const auto& margin) {
  return {.products = arena.as(margin.products),
          .inverse_norms = arena.as(margin.class_inverse_norms),
          .columns = arena.as<std::int32_t>(margin.columns),
          .sample_count = arena.optional<std::int32_t>(margin.sample_count)};
}

}  // namespace

Binder prepare(Context& context, Instruction& instruction, const MarginStatistics& margin) {
  const Problem problem = problem_of(context, instruction);
  instruction.workspace_bytes =
      static_cast<std::size_t>(problem.images * problem.blocks() * kParts) * sizeof(Part);
  return bind_loop([=, lane = instruction.lane](const Arena& at) {
    gather_statistics(problem, logits_of(at, margin), at.workspace<Part>(lane),
                      {at.as(margin.local_max), at.as(margin.row_max), at.as(margin.row_sums),
                       at.as(margin.target_factor)});
  });
}

Binder prepare(Context& context, Instruction& instruction, const MarginGradient& margin) {
  const Problem problem = problem_of(context, instruction);
  return bind_loop([=](const Arena& at) {
    const Statistics statistics{nullptr, at.as(margin.row_max), at.as(margin.row_sums),
                                at.as(margin.target_factor)};
    State& state = *at.as<State>(margin.state);
    state.metrics[state.step.iteration % kMetricsKept] = metrics_of(problem, statistics);
    const float slope = problem.scale / static_cast<float>(problem.own_images) * state.step.loss_scale;
    put_gradients(problem, logits_of(at, margin), statistics, slope);
  });
}

Binder prepare(Context& context, Instruction& instruction, const MarginRescale& margin) {
  return bind_loop([=, images = problem_of(context, instruction).images](const Arena& at) {
    const float *local_max = at.as(margin.local_max), *row_max = at.as(margin.row_max);
    float* sums = at.as(margin.row_sums);
    for (std::ptrdiff_t i = 0; i < images; ++i)
      if (sums[i] != 0) sums[i] *= std::exp(local_max[i] - row_max[i]);
  });
}

}  // namespace plumb::cpu
