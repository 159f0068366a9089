// Samples class centers for a step of Partial FC and gathers their rows. Work scales with the sample; no loop
// runs over all classes. Order of a sample: models/margin_head.h.
#include <algorithm>
#include <span>

#include "kernels/cpu/binding.h"
#include "kernels/cpu/threads.h"
#include "models/margin_head.h"

namespace plumb::cpu {
namespace {

using Integers = std::span<std::int32_t>;

struct Sampling {
  PhiloxKey key{};
  std::int64_t first_class = 0, own_classes = 0;
  std::int64_t least_rows = 0;  // sample size, unless the labels alone have more classes
};

// Appends negatives to the first `positives` entries of `samples` (the labels) until `wanted`; returns the
// count. All threads compute the values that are needed if no negative is a label.
std::size_t add_negatives(const ClassPermutation& permutation, Integers samples, std::size_t positives,
                          std::size_t wanted) {
  const std::span<const std::int32_t> labels = samples.first(positives);
  const Integers others = samples.subspan(positives, wanted - positives);
  const auto count = static_cast<std::ptrdiff_t>(others.size());
#pragma omp parallel for schedule(static) if (count >= kWorthThreads)
  for (std::ptrdiff_t i = 0; i < count; ++i)
    others[static_cast<std::size_t>(i)] =
        static_cast<std::int32_t>(permutation(static_cast<std::uint32_t>(i)));
  const auto is_label = [labels](std::int32_t value) { return std::ranges::binary_search(labels, value); };
  auto kept = std::remove_if(others.begin(), others.end(), is_label);
  for (auto i = static_cast<std::uint32_t>(count); kept != others.end() && i < permutation.count; ++i) {
    const auto value = static_cast<std::int32_t>(permutation(i));
    if (!is_label(value)) *kept++ = value;
  }
  return positives + static_cast<std::size_t>(kept - others.begin());
}

// `own` is scratch space for all labels. Labels outside every rank's classes are ignored.
void sample(const Sampling& by, std::uint64_t step, std::span<const std::int32_t> labels, Integers own,
            Integers samples, std::int32_t& sample_count, std::int32_t* columns) {
  auto end = own.begin();
  for (std::int32_t label : labels) {
    const std::int64_t row = label - by.first_class;
    if (row >= 0 && row < by.own_classes) *end++ = static_cast<std::int32_t>(row);
  }
  std::sort(own.begin(), end);
  end = std::unique(own.begin(), end);
  const std::span<const std::int32_t> positives(own.begin(), end);
  std::copy(positives.begin(), positives.end(), samples.begin());
  const std::size_t wanted = std::max<std::size_t>(static_cast<std::size_t>(by.least_rows), positives.size());
  const auto permutation = class_permutation(by.key, step, static_cast<std::uint32_t>(by.own_classes));
  const std::size_t count = add_negatives(permutation, samples, positives.size(), wanted);
  std::fill(samples.begin() + static_cast<std::ptrdiff_t>(count), samples.end(), -1);
  sample_count = static_cast<std::int32_t>(count);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::int64_t row = labels[i] - by.first_class;
    const bool here = row >= 0 && row < by.own_classes;
    const auto place = std::lower_bound(positives.begin(), positives.end(), row);
    columns[i] = here ? static_cast<std::int32_t>(place - positives.begin()) : -1;
  }
}

}  // namespace

Binder prepare(Context& context, Instruction& instruction, const MarginSampleClasses& margin) {
  const MarginLoss& op = context.op<MarginLoss>(instruction);
  const std::int64_t own_classes = context.graph.parameters[op.weight].dims[0];
  const Sampling by{.key = sample_key(op),
                    .first_class = op.first_class,
                    .own_classes = own_classes,
                    .least_rows = sampled_rows(op.sample_rate, own_classes)};
  const MarginSizes sizes = margin_sizes(context.graph, instruction.op);
  const auto images = static_cast<std::size_t>(sizes.images), rows = static_cast<std::size_t>(sizes.rows);
  instruction.workspace_bytes = images * sizeof(std::int32_t);
  return bind_loop([=, lane = instruction.lane](const Arena& at) {
    sample(by, at.as<State>(margin.state)->step.iteration, {at.as<std::int32_t>(margin.labels), images},
           {at.workspace<std::int32_t>(lane), images}, {at.as<std::int32_t>(margin.samples), rows},
           *at.as<std::int32_t>(margin.sample_count), at.as<std::int32_t>(margin.columns));
  });
}

// Reads and writes 4 E bytes per row of the sample.
Binder prepare(Context& context, Instruction& instruction, const MarginGatherRows& margin) {
  const MarginLoss& op = context.op<MarginLoss>(instruction);
  const MarginSizes sizes = margin_sizes(context.graph, instruction.op);
  const std::ptrdiff_t rows = sizes.rows, embedding = sizes.embedding;
  context.settle(margin.weight, plain_layout(context.graph.parameters[op.weight].dims));
  return bind_loop([=](const Arena& at) {
    const auto *samples = at.as<std::int32_t>(margin.samples),
               *count = at.as<std::int32_t>(margin.sample_count);
    const float* from = at.as(margin.weight);
    float* to = at.as(margin.rows);
#pragma omp parallel for schedule(static) if (rows * embedding >= kWorthThreads)
    for (std::ptrdiff_t i = 0; i < rows; ++i) {
      if (i + kRowsAhead < *count) prefetch_row(from + samples[i + kRowsAhead] * embedding, embedding);
      if (i < *count)
        std::copy_n(from + samples[i] * embedding, embedding, to + i * embedding);
      else
        std::fill_n(to + i * embedding, embedding, 0.0f);
    }
  });
}

}  // namespace plumb::cpu
