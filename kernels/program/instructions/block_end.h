// The end of a ResNet block without x, the output of its last convolution, which is 1x1 of stride 1: neither
// x nor its gradient is stored. The convolution's input a is [n, c, h, w], its weights W [k, c], the block's
// output [n, k, h, w]; over all N = n h w pixels G = a^T a, t = sum of a, and with g, the gradient of the
// block's output behind the ReLU's mask, R = g^T a, s = sum of g. Forward, before x would be computed:
//
//   mean = W t / N            variance = diag(W (G / N - t t^T / N^2) W^T)
//   A = scale inv_std         scaled = diag(A) W             shift = bias - scaled t / N
//   out = relu(a scaled^T + shift + shortcut)
//
// Backward, from x's gradient A (g - s / N) + B (x - mean), where B = -A inv_std d_scale / N:
//
//   d_scale = inv_std rowwise dot(W, R - s t^T / N)        d_bias = s
//   d_W = diag(A) (R - s t^T / N) + diag(B) N W (G / N - t t^T / N^2)
//   factors = W^T diag(B) W
//   d_a = g scaled + a factors + shift                     shift = -(s scaled + t factors) / N
//
// Both shifts come from scaled and factors as they are stored, so that what these multiply is centered: a
// channel's mean doesn't multiply the rounding of its factors.
//
// A shortcut that is a 1x1 convolution and a norm needs no output of its own either: the same with b, every
// stride-th pixel of the block's input, for a, and out = relu(a scaled^T + b shortcut_scaled^T + both
// shifts).
//
// Products accumulate in f32. Operands are f32 unless noted; "half" is the dtype of a, which may be f32. Only
// GPUs have these instructions. Under TF32 (Program::allow_tf32) each of them but ChannelProducts rounds what
// products read, to the nearest: tensor cores would chop it, which makes a product too small, and R - s t^T /
// N is a small difference of large numbers.
#pragma once

#include "kernels/program/instructions/batch_norm.h"
#include "kernels/program/instructions/operand.h"

namespace plumb {

// b and its sum t, of the shortcut's convolution; at stride 1 b is `in`, and `out` is absent, but under TF32.
struct SamplePixels {
  static constexpr std::string_view kName = "sample_pixels";
  Read in;                   // [n, c, h, w]; half
  std::optional<Write> out;  // likewise, every stride-th pixel of every stride-th row
  Write sums;                // [c]
  ReadWrite counters;        // as BatchNormStatistics has them
  static void operands(auto& self, auto&& each) {
    each("in", self.in, "out", self.out, "sums", self.sums, "counters", self.counters);
  }
};

// products[i][j] = over all pixels of left's channel i * right's channel j: G and R.
struct ChannelProducts {
  static constexpr std::string_view kName = "channel_products";
  Read left, right;  // [n, i, h, w], [n, j, h, w]; half
  Write products;    // [i, j]
  static void operands(auto& self, auto&& each) {
    each("left", self.left, "right", self.right, "products", self.products);
  }
};

// The norm's statistics. Writes what the two products that make out and d_a read.
struct ProductNormStatistics {
  static constexpr std::string_view kName = "product_norm_statistics";
  Read products, sums;              // G [c, c], t [c]
  Read weight;                      // [k, c, 1, 1]
  BatchNormMoments moments;         // [k]
  Write scaled, scaled_transposed;  // half [k, c], [c, k]
  Write deviations;                 // [k, c]: W (G / N - t t^T / N^2)
  static void operands(auto& self, auto&& each) {
    each("products", self.products, "sums", self.sums, "weight", self.weight, "scaled", self.scaled,
         "scaled_transposed", self.scaled_transposed, "deviations", self.deviations);
    BatchNormMoments::operands(self.moments, each);
  }
};

// out and the ReLU's mask, as BatchNormApply writes it. With residual_scale_shift the shortcut is the input
// of its batch norm and is normalized too; without a residual it is a product, and row 1 is its shift.
struct BlockEndForward {
  static constexpr std::string_view kName = "block_end_forward";
  Read in, scaled_transposed;                                   // half
  Read scale_shift;                                             // [2, k], of which row 1 is the shift
  std::optional<Read> residual;                                 // like out
  std::optional<Read> residual_scale_shift;                     // [2, k]
  std::optional<Read> shortcut_in, shortcut_scaled_transposed;  // b, and as above
  Write out, relu_mask;                                         // half [n, k, h, w]; u8
  bool by_products = false;  // of a library, where our own kernel is not; likewise below
  static void operands(auto& self, auto&& each) {
    each("in", self.in, "scaled_transposed", self.scaled_transposed, "scale_shift", self.scale_shift,
         "residual", self.residual, "residual_scale_shift", self.residual_scale_shift, "shortcut_in",
         self.shortcut_in, "shortcut_scaled_transposed", self.shortcut_scaled_transposed, "out", self.out,
         "relu_mask", self.relu_mask);
  }
};

// g and s, where no convolution makes them while it computes a gradient (ConvBackwardData).
struct MaskedGradient {
  static constexpr std::string_view kName = "masked_gradient";
  Read d_out;                        // [n, k, h, w]; half
  std::optional<Read> second_d_out;  // likewise, or every second pixel of every second row; is added
  Read relu_mask;                    // BlockEndForward's
  Write d_in, sums;                  // like d_out; [k]
  ReadWrite counters;                // as BatchNormStatistics has them
  static void operands(auto& self, auto&& each) {
    each("d_out", self.d_out, "second_d_out", self.second_d_out, "relu_mask", self.relu_mask, "d_in",
         self.d_in, "sums", self.sums, "counters", self.counters);
  }
};

// The gradients of the norm's and the convolution's parameters, and the factors of d_a. W^T diag(B) W is too
// small for f16 where the gradient is: a half type stores it times a power of two, 2^p, which keeps it below
// 2^15. In f32 p is 0.
struct ProductNormBackward {
  static constexpr std::string_view kName = "product_norm_backward";
  Read products, d_out_sums;    // R [k, c], s [k]
  Read sums, deviations;        // t [c], ProductNormStatistics'
  Read weight;                  // [k, c, 1, 1]
  Read scale, inv_std;          // [k]
  Write d_weight, d_scale;      // [k, c, 1, 1] in the gradient's dtype, [k]
  std::optional<Write> d_bias;  // [k], where it is another buffer than d_out_sums
  Write factors;                // half [c, c]: 2^p W^T diag(B) W
  Write shift;                  // [c + 1]: that of d_a, then 2^-p
  static void operands(auto& self, auto&& each) {
    each("products", self.products, "d_out_sums", self.d_out_sums, "sums", self.sums, "deviations",
         self.deviations, "weight", self.weight, "scale", self.scale, "inv_std", self.inv_std);
    each("d_weight", self.d_weight, "d_scale", self.d_scale, "d_bias", self.d_bias, "factors", self.factors,
         "shift", self.shift);
  }
};

// d_a. With norm_in, back through the ReLU and with the sums of the norm in front, whose output a is: as
// ConvNormBackwardData. By products without norm_in.
struct BlockEndBackwardData {
  static constexpr std::string_view kName = "block_end_backward_data";
  Read d_out, in, scaled;           // half: g, a, ProductNormStatistics'
  Read factors, shift;              // ProductNormBackward's
  std::optional<Read> norm_in;      // half, like a: the input of the norm in front; then its operands, [c]
  std::optional<Read> scale_shift;  // [2, c]; a > 0 where scale_shift[0] * norm_in + scale_shift[1] > 0
  std::optional<Read> mean, inv_std, scale;
  Write d_in;  // half, like a: gradient of a, with norm_in of the ReLU's input
  std::optional<Write> d_scale, d_bias, coefficients;  // [c], [c], [3, c]: see BatchNormBackwardApply
  bool by_products = false;
  static void operands(auto& self, auto&& each) {
    each("d_out", self.d_out, "in", self.in, "scaled", self.scaled, "factors", self.factors, "shift",
         self.shift, "norm_in", self.norm_in, "scale_shift", self.scale_shift, "mean", self.mean, "inv_std",
         self.inv_std, "scale", self.scale);
    each("d_in", self.d_in, "d_scale", self.d_scale, "d_bias", self.d_bias, "coefficients",
         self.coefficients);
  }
};

}  // namespace plumb
