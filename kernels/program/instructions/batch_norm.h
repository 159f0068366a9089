// Batch norm with residual and activation. inv_std = 1 / sqrt(variance + epsilon); scale_shift [2, c]:
// normalized = scale_shift[0] * in + scale_shift[1]. Activations are [n, c, h, w]; other operands are f32 [c]
// unless noted.
#pragma once

#include "kernels/program/instructions/operand.h"

namespace plumb {

// out = activation(normalized in + residual).
struct BatchNormForward {
  static constexpr std::string_view kName = "norm_forward";
  Read in, scale, bias;
  ReadWrite running_mean, running_variance;
  Write out, mean, inv_std;
  std::optional<Read> residual;  // like in
  std::optional<Read> slope;     // PReLU: [c] or [1]
  static void operands(auto& self, auto&& each) {
    each("in", self.in, "scale", self.scale, "bias", self.bias, "running_mean", self.running_mean,
         "running_variance", self.running_variance, "out", self.out, "mean", self.mean, "inv_std",
         self.inv_std, "residual", self.residual, "slope", self.slope);
  }
};

// Shared operands of BatchNormStatistics and BatchNormFinalize.
struct BatchNormMoments {
  Read scale, bias;
  ReadWrite running_mean, running_variance;
  Write scale_shift;          // f32, or the activations' dtype if a convolution reads it
  std::optional<Write> mean;  // where backward reads it
  Write inv_std;
  static void operands(auto& self, auto&& each) {
    each("scale", self.scale, "bias", self.bias, "running_mean", self.running_mean, "running_variance",
         self.running_variance, "scale_shift", self.scale_shift, "mean", self.mean, "inv_std", self.inv_std);
  }
};

struct BatchNormStatistics {
  static constexpr std::string_view kName = "norm_statistics";
  Read in;
  BatchNormMoments moments;
  ReadWrite counters;  // i32, zero between instructions: thread blocks that have ended
  static void operands(auto& self, auto&& each) {
    each("in", self.in, "counters", self.counters);
    BatchNormMoments::operands(self.moments, each);
  }
};

// BatchNormStatistics from sums that a convolution's epilogue computed.
struct BatchNormFinalize {
  static constexpr std::string_view kName = "norm_finalize";
  Read sums;  // [2, c]: of elements and of their squares
  BatchNormMoments moments;
  static void operands(auto& self, auto&& each) {
    each("sums", self.sums);
    BatchNormMoments::operands(self.moments, each);
  }
};

// out = activation(normalized in + residual). in is normalized by scale_shift, or by what `finalize` makes of
// its sums. With residual_scale_shift the residual is the input of the shortcut's batch norm and is
// normalized too. relu_mask: bit j of byte i is 1 where element 8 i + j, counted as stored, passes the ReLU.
struct BatchNormApply {
  static constexpr std::string_view kName = "norm_apply";
  Read in;
  Write out;
  std::optional<Read> scale_shift;            // one of these two
  std::optional<BatchNormFinalize> finalize;  // in half precision; its scale_shift is f32
  std::optional<Write> relu_mask;             // u8, one bit per element
  std::optional<Read> residual, residual_scale_shift;
  std::optional<Read> slope;          // PReLU: [c] or [1]
  std::optional<Write> out_sums;      // [c]: of out's elements, as stored; excludes a residual and a slope
  std::optional<ReadWrite> counters;  // with out_sums; as BatchNormStatistics has them
  // The line that normalizes `in`.
  BufferId line() const {
    return finalize ? finalize->moments.scale_shift.buffer : scale_shift.value().buffer;
  }
  static void operands(auto& self, auto&& each) {
    each("in", self.in);
    if (self.finalize)
      BatchNormFinalize::operands(*self.finalize, each);
    else
      each("scale_shift", self.scale_shift);
    each("out", self.out, "relu_mask", self.relu_mask, "residual", self.residual, "residual_scale_shift",
         self.residual_scale_shift, "slope", self.slope, "out_sums", self.out_sums, "counters",
         self.counters);
  }
};

// The ReLU or PReLU mask comes from one of relu_mask (a bit per element), out (> 0, on a CPU) and scale_shift
// (scale * in + shift > 0). With none of them the CPU recomputes it from in, mean, inv_std, scale and bias,
// and a GPU applies none: there is no activation, or d_out is masked already.
struct BatchNormBackward {
  static constexpr std::string_view kName = "norm_backward";
  Read in, d_out, scale, bias, mean, inv_std;
  WriteOrAdd d_in;
  Write d_scale, d_bias;
  std::optional<Read> relu_mask, out, scale_shift;
  std::optional<Read> second_d_out;   // d_out is the sum of both
  std::optional<Write> d_residual;    // if its values differ from d_out's
  std::optional<Read> slope;          // PReLU: [c] or [1]
  std::optional<Write> d_slope;       // like slope
  std::optional<ReadWrite> counters;  // as BatchNormStatistics has them; on a GPU
  static void operands(auto& self, auto&& each) {
    each("in", self.in, "d_out", self.d_out, "scale", self.scale, "bias", self.bias, "mean", self.mean,
         "inv_std", self.inv_std, "d_in", self.d_in, "d_scale", self.d_scale, "d_bias", self.d_bias,
         "relu_mask", self.relu_mask, "out", self.out, "scale_shift", self.scale_shift, "second_d_out",
         self.second_d_out, "d_residual", self.d_residual, "slope", self.slope, "d_slope", self.d_slope,
         "counters", self.counters);
  }
};

// Backward of a norm and of the one that normalizes its residual, both of which have the gradient d_out (+
// second_d_out), masked by relu_mask if there is one.
struct BatchNormPairBackward {
  static constexpr std::string_view kName = "norm_pair_backward";
  struct Norm {
    Read in, scale, mean, inv_std;
    Write d_in, d_scale, d_bias;
  };
  Norm norm, shortcut;
  Read d_out;
  std::optional<Read> second_d_out, relu_mask;
  ReadWrite counters;  // as BatchNormStatistics has them
  static void operands(auto& self, auto&& each) {
    each("in", self.norm.in, "scale", self.norm.scale, "mean", self.norm.mean, "inv_std", self.norm.inv_std,
         "d_in", self.norm.d_in, "d_scale", self.norm.d_scale, "d_bias", self.norm.d_bias);
    each("shortcut_in", self.shortcut.in, "shortcut_scale", self.shortcut.scale, "shortcut_mean",
         self.shortcut.mean, "shortcut_inv_std", self.shortcut.inv_std, "d_shortcut_in", self.shortcut.d_in,
         "d_shortcut_scale", self.shortcut.d_scale, "d_shortcut_bias", self.shortcut.d_bias);
    each("d_out", self.d_out, "second_d_out", self.second_d_out, "relu_mask", self.relu_mask, "counters",
         self.counters);
  }
};

// Backward of a norm and of the max pool that alone reads its output, through a ReLU. d_out (+ second_d_out)
// is the gradient of the pool's output; winners, argmax and scale_shift are PoolForward's.
struct BatchNormPoolBackward {
  static constexpr std::string_view kName = "norm_pool_backward";
  Read in, winners, argmax, d_out, scale, mean, inv_std, scale_shift;
  Write d_in, d_scale, d_bias;
  ReadWrite counters;  // as BatchNormStatistics has them
  std::optional<Read> second_d_out;
  static void operands(auto& self, auto&& each) {
    each("in", self.in, "winners", self.winners, "argmax", self.argmax, "d_out", self.d_out, "scale",
         self.scale, "mean", self.mean, "inv_std", self.inv_std, "scale_shift", self.scale_shift, "d_in",
         self.d_in, "d_scale", self.d_scale, "d_bias", self.d_bias, "counters", self.counters, "second_d_out",
         self.second_d_out);
  }
};

// d_in = coefficients[0] * d_activated + coefficients[1] * in + coefficients[2]. At the end of a block the
// same for its shortcut's norm, by rows 3 to 5.
struct BatchNormBackwardApply {
  static constexpr std::string_view kName = "norm_backward_apply";
  Read d_activated, in, coefficients;  // coefficients: f32 [3, c], [6, c] with a shortcut
  Write d_in;
  std::optional<Read> shortcut_in;
  std::optional<Write> d_shortcut_in;
  static void operands(auto& self, auto&& each) {
    each("d_activated", self.d_activated, "in", self.in, "coefficients", self.coefficients, "d_in", self.d_in,
         "shortcut_in", self.shortcut_in, "d_shortcut_in", self.d_shortcut_in);
  }
};

}  // namespace plumb
