// One run of the reference: an overload per instruction. Shared by the files of instruction_reference.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <utility>

#include "tests/conformance/instruction_reference.h"

namespace plumb {

// Roundings of fp32 that a sum may be off, in units of all magnitudes added up: blocks add in any order.
inline constexpr double kSumUnits = 64 * 0x1p-24;
// TF32 takes both factors of a product with 11 bits. Tensor cores chop the others off: on an H200 gradients
// of weights were up to 1.05 times 2 * 2^-11 too small.
inline constexpr double kTf32Units = 2 * 0x1p-10;
// Tensor cores add 16 products at a time to a sum in fp32 and cut off what it has no bits for, on average
// half of its last one (Fasi, Higham, Mikaitis and Pranesh 2021, "Numerical behavior of NVIDIA tensor cores",
// PeerJ Computer Science 7:e330). The sum is at most all magnitudes. Per product:
inline constexpr double kChoppedUnits = 0x1p-24 / 16;
// Winograd's transforms multiply the roundings of a convolution (kernels/program/winograd.h).
inline constexpr double kWinogradUnits = 1024 * 0x1p-24;

// A tensor of sums, with the magnitudes that went into each.
struct Sums {
  explicit Sums(std::size_t elements) : values(elements), magnitudes(elements) {}
  void add(std::size_t i, double term) {
    values[i] += term;
    magnitudes[i] += std::abs(term);
  }
  // `units` of the magnitudes.
  Expected expected(double units = kSumUnits) && {
    for (double& magnitude : magnitudes) magnitude *= units;
    return {std::move(values), std::move(magnitudes)};
  }
  Doubles values, magnitudes;
};

// Where element i of [n, c, rows, columns] lies in [n, c, height, width], of which it has every second pixel
// of every second row, or one in more.
inline std::size_t sampled_from(std::size_t i, std::int64_t rows, std::int64_t columns, const Shape& extent) {
  const auto height = static_cast<std::size_t>(rows), width = static_cast<std::size_t>(columns),
             stride = static_cast<std::size_t>((extent.w + columns - 1) / columns);
  const std::size_t plane = i / (height * width), y = i / width % height * stride, x = i % width * stride;
  return (plane * static_cast<std::size_t>(extent.h) + y) * static_cast<std::size_t>(extent.w) + x;
}

double rounded(DType dtype, double value);
Doubles rounded(DType dtype, Doubles values);

class Run {
 public:
  Run(InstructionReference& reference, const Instruction& instruction, const Operands& before,
      const Operands& after, const StepState& state)
      : reference_(reference), instruction_(instruction), before_(before), after_(after), state_(state) {}
  Results results() {
    std::visit([this](const auto& operation) { of(operation); }, instruction_.operation);
    return std::move(results_);
  }

 private:
  // Convolutions (reference_conv.cpp).
  void of(const ConvForward& conv);
  void of(const ConvBackwardData& conv);
  void of(const ConvBackwardWeights& conv);
  void of(const ConvNormBackwardData& conv);
  // Norms (reference_norm.cpp).
  void of(const BatchNormForward& norm);
  void of(const BatchNormStatistics& norm);
  void of(const BatchNormFinalize& norm);
  void of(const BatchNormApply& norm);
  void of(const BatchNormBackward& norm);
  void of(const BatchNormPairBackward& pair);
  void of(const BatchNormPoolBackward& norm);
  void of(const BatchNormBackwardApply& norm);
  // Block ends without x (reference_block_end.cpp).
  void of(const SamplePixels& sample);
  void of(const ChannelProducts& product);
  void of(const ProductNormStatistics& norm);
  void of(const BlockEndForward& end);
  void of(const MaskedGradient& gradient);
  void of(const ProductNormBackward& norm);
  void of(const BlockEndBackwardData& end);
  // Other layers (reference_layers.cpp).
  void of(const PoolForward& pool);
  void of(const PoolBackward& pool);
  void of(const DenseForward& dense);
  void of(const DenseBackwardData& dense);
  void of(const DenseBackwardWeights& dense);
  void of(const DropoutForward& dropout) { drop(dropout.in, dropout.out); }
  void of(const DropoutBackward& dropout) { drop(dropout.d_out, dropout.d_in); }
  void of(const SoftmaxCrossEntropy& loss);
  // Margin losses (reference_margin.cpp).
  void of(const MarginNormalize& margin);
  void of(const MarginSampleClasses& margin);
  void of(const MarginGatherRows& margin);
  void of(const MarginClassNorms& margin);
  void of(const MarginProducts& margin);
  void of(const MarginStatistics& margin);
  void of(const MarginRescale& margin);
  void of(const MarginGradient& margin);
  void of(const MarginFeatureProducts& margin);
  void of(const MarginWeightGradient& margin);
  void of(const MarginFeaturesBackward& margin);
  // Batches, gradients and updates (reference_update.cpp).
  void of(const PackBatch& pack);
  void of(const Accumulate& accumulate);
  void of(const Cast& cast);
  void of(const FindOverflow& search);
  void of(const Update& update);
  void of(const UpdateRows& update);
  void of(const AdvanceState&) {}  // next_state()
  // Those of the runner and the communicator.
  void of(const LoadBatch&) {}
  void of(const Collective&) {}
  void of(const Recorded&) {}

  template <typename T>
  const T& op() const {
    return std::get<T>(reference_.graph_.ops.at(instruction_.op));
  }
  const Shape& shape(ValueId value) const { return reference_.graph_.values[value].shape; }
  DType dtype(BufferId buffer) const { return reference_.program_.buffers[buffer].dtype; }
  // Of what an instruction rounds so that tensor cores have nothing to chop, relative.
  double factor_roundoff(BufferId buffer) const {
    return reference_.program_.allow_tf32 && dtype(buffer) == DType::f32 ? 0x1p-11 : 0;
  }
  // A weight times its norm's scale, as ProductNormStatistics stores it in the buffer's dtype.
  double scaled_weight(BufferId buffer, double weight, double scale) const {
    if (dtype(buffer) == DType::f32) return weight * scale;
    return rounded(dtype(buffer), static_cast<float>(weight) * static_cast<float>(scale));
  }
  double roundoff(BufferId buffer) const { return unit_roundoff(dtype(buffer)); }
  bool on_gpu() const { return reference_.kind_ == DeviceKind::cuda; }
  // Roundings of a sum of so many products of these dtypes, per magnitude added up.
  double product_units(std::size_t products) const;
  Expected of_convolution(Sums&& sums, std::size_t products, double more_units = 0) const;

  const Doubles& in(BufferId buffer) const { return before_.at(buffer); }
  const Doubles& made(BufferId buffer) const { return after_.at(buffer); }
  // Empty without.
  template <Access kAccess>
  const Doubles* in(const std::optional<Operand<kAccess>>& operand) const {
    return operand ? &in(operand->buffer) : nullptr;
  }
  void expect(BufferId buffer, Expected expected) { results_[buffer] = std::move(expected); }
  void unchanged(BufferId buffer) { results_[buffer] = {in(buffer)}; }

  void drop(BufferId from, BufferId into);

  // in, or relu(scale * in + shift) rounded to its dtype.
  Doubles convolved_input(BufferId in, std::optional<Read> scale_shift) const;
  std::size_t products_of_input() const;
  Sums backward_data(BufferId d_out, BufferId weight);
  // Sums over each channel of a gradient, which engines may sum before they round it to `stored`.
  static Expected summed_gradient(const Doubles& gradient, const Shape& extent, DType stored);
  // Sums for a norm from the gradient of its output, as it was stored; and the coefficients' rows from
  // `first` on.
  struct SummedNorm {
    BufferId in, mean, inv_std, scale, d_scale, d_bias;
  };
  void sums_for(const SummedNorm& norm, const Doubles& gradient, const Shape& extent, Expected* coefficients,
                std::size_t first_row);

  void moments(const BatchNorm& op, const BatchNormMoments& moments, const Doubles& mean,
               const Doubles& square, const Doubles& magnitude);
  // The gradient of the norm's result before its activation. `line`: that result, where it decides.
  struct NormGradient {
    Doubles values;
    double rounding = 0;    // relative, of what the device keeps between its passes
    Doubles canceled = {};  // magnitudes that went into a value besides its own; empty: none
  };
  struct NormOperands {
    BufferId in, scale, mean, inv_std, d_in, d_scale, d_bias;
    bool adds = false;
  };
  void norm_backward(const NormOperands& norm, const Shape& extent, const NormGradient& gradient);
  Doubles summed(BufferId first, const std::optional<Read>& second) const;
  std::vector<bool> bits(BufferId mask, const Shape& extent) const;  // by element in public order
  Doubles on_line(const Doubles& in, const Doubles& scale_shift, const Shape& extent) const;

  std::int64_t columns_in_use(const std::optional<Read>& sample_count, std::int64_t rows) const;
  std::int64_t target_column(BufferId columns, std::int64_t image, std::int64_t in_use) const;

  void updated(BufferId master, BufferId momentum, std::size_t element, double gradient, bool decays,
               Expected& masters, Expected& momenta) const;

  InstructionReference& reference_;
  const Instruction& instruction_;
  const Operands &before_, &after_;
  const StepState& state_;
  Results results_;
};

// Element i of [n, c, h, w] belongs to this channel.
inline std::size_t channel_of(const Shape& shape, std::size_t i) {
  return i / static_cast<std::size_t>(shape.h * shape.w) % static_cast<std::size_t>(shape.c);
}
// The position of element i of [n, c, h, w] in NHWC.
inline std::size_t nhwc_position(const Shape& shape, std::size_t i) {
  const auto pixels = static_cast<std::size_t>(shape.h * shape.w), c = static_cast<std::size_t>(shape.c);
  const std::size_t image = i / (c * pixels), channel = i / pixels % c, pixel = i % pixels;
  return (image * pixels + pixel) * c + channel;
}

}  // namespace plumb
