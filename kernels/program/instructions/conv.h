// Convolutions and the operations fused into them.
#pragma once

#include "kernels/program/instructions/operand.h"

namespace plumb {

// out = conv(in, weight). With scale_shift [2, c]: conv(relu(scale * in + shift), weight).
struct ConvForward {
  static constexpr std::string_view kName = "conv_forward";
  Read in, weight;                  // [n, c, h, w], forward's copy of [out, in, kh, kw]
  Write out;                        // [n, out_c, out_h, out_w]
  std::optional<Read> scale_shift;  // [2, c]
  std::optional<Write> sums;        // f32 [2, out_c]: of out's elements and of their squares
  static void operands(auto& self, auto&& each) {
    each("in", self.in, "weight", self.weight, "out", self.out, "scale_shift", self.scale_shift, "sums",
         self.sums);
  }
};

// With relu_mask: of the ReLU's input, d_in = product + added where the mask's bit is 1, else 0. `added` may
// have every stride-th pixel of every stride-th row only, and is 0 elsewhere. With norm_in: the norm before
// that ReLU has so much of its backward done; with shortcut_in the shortcut's, too. With d_bias alone it is
// d_in's sum over each channel.
struct ConvBackwardData {
  static constexpr std::string_view kName = "conv_backward_data";
  Read d_out, weight;             // like out; backward-data's copy
  Write d_in;                     // like in
  std::optional<Read> added;      // like in: the gradient that another reader of the input has left
  std::optional<Read> relu_mask;  // u8, as BatchNormApply writes it
  std::optional<Read> norm_in, mean, inv_std, scale;   // like d_in, then f32 [c]
  std::optional<Write> d_scale, d_bias, coefficients;  // f32 [c], [c], [3 or 6, c]: BatchNormBackwardApply's
  std::optional<Read> shortcut_in, shortcut_mean, shortcut_inv_std, shortcut_scale;  // likewise
  std::optional<Write> d_shortcut_scale, d_shortcut_bias;
  static void operands(auto& self, auto&& each) {
    each("d_out", self.d_out, "weight", self.weight, "d_in", self.d_in, "added", self.added, "relu_mask",
         self.relu_mask);
    each("norm_in", self.norm_in, "mean", self.mean, "inv_std", self.inv_std, "scale", self.scale, "d_scale",
         self.d_scale, "d_bias", self.d_bias, "coefficients", self.coefficients);
    each("shortcut_in", self.shortcut_in, "shortcut_mean", self.shortcut_mean, "shortcut_inv_std",
         self.shortcut_inv_std, "shortcut_scale", self.shortcut_scale, "d_shortcut_scale",
         self.d_shortcut_scale, "d_shortcut_bias", self.d_shortcut_bias);
  }
};

struct ConvBackwardWeights {
  static constexpr std::string_view kName = "conv_backward_weights";
  Read in, d_out;
  Write d_weight;
  std::optional<Read> scale_shift;  // [2, c]: reads relu(scale * in + shift) instead of in
  static void operands(auto& self, auto&& each) {
    each("in", self.in, "d_out", self.d_out, "d_weight", self.d_weight, "scale_shift", self.scale_shift);
  }
};

// Backward through the convolution and the ReLU of the preceding batch norm, with the norm's gradient sums.
struct ConvNormBackwardData {
  static constexpr std::string_view kName = "conv_norm_backward_data";
  Read d_out, weight;
  Read norm_in, bias, mean, inv_std, scale;  // of the batch norm: [n, c, h, w], then f32 [c]
  Write d_activated;                         // gradient of the ReLU's input, like norm_in
  Write d_scale, d_bias, coefficients;       // f32 [c], [c], [3, c]: see BatchNormBackwardApply
  static void operands(auto& self, auto&& each) {
    each("d_out", self.d_out, "weight", self.weight, "norm_in", self.norm_in, "bias", self.bias, "mean",
         self.mean, "inv_std", self.inv_std, "scale", self.scale, "d_activated", self.d_activated, "d_scale",
         self.d_scale, "d_bias", self.d_bias, "coefficients", self.coefficients);
  }
};

}  // namespace plumb
