// Pooling, dense layers, dropout and the softmax loss.
#pragma once

#include "kernels/program/instructions/operand.h"

namespace plumb {

struct PoolForward {
  static constexpr std::string_view kName = "pool_forward";
  Read in;
  Write out;
  std::optional<Write> argmax;      // max pool: u8, like out, index of the maximum in its window
  std::optional<Read> scale_shift;  // [2, c]: pools relu(scale * in + shift)
  std::optional<Write> winners;     // like out, the element of `in` at argmax, which is 255 where out is 0
  static void operands(auto& self, auto&& each) {
    each("in", self.in, "out", self.out, "argmax", self.argmax, "scale_shift", self.scale_shift, "winners",
         self.winners);
  }
};

struct PoolBackward {
  static constexpr std::string_view kName = "pool_backward";
  Read d_out;
  Write d_in;
  std::optional<Read> argmax;
  static void operands(auto& self, auto&& each) {
    each("d_out", self.d_out, "d_in", self.d_in, "argmax", self.argmax);
  }
};

// out [n, o] = in [n, c * h * w] * weight [o, c * h * w]^T + bias [o].
struct DenseForward {
  static constexpr std::string_view kName = "dense_forward";
  Read in, weight, bias;
  Write out;
  static void operands(auto& self, auto&& each) {
    each("in", self.in, "weight", self.weight, "bias", self.bias, "out", self.out);
  }
};

struct DenseBackwardData {
  static constexpr std::string_view kName = "dense_backward_data";
  Read d_out, weight;
  Write d_in;
  static void operands(auto& self, auto&& each) {
    each("d_out", self.d_out, "weight", self.weight, "d_in", self.d_in);
  }
};

struct DenseBackwardWeights {
  static constexpr std::string_view kName = "dense_backward_weights";
  Read in, d_out;
  Write d_weight, d_bias;
  static void operands(auto& self, auto&& each) {
    each("in", self.in, "d_out", self.d_out, "d_weight", self.d_weight, "d_bias", self.d_bias);
  }
};

struct DropoutForward {
  static constexpr std::string_view kName = "dropout_forward";
  Read in, state;
  Write out;
  static void operands(auto& self, auto&& each) { each("in", self.in, "state", self.state, "out", self.out); }
};

// Regenerates forward's random numbers and drops the same elements.
struct DropoutBackward {
  static constexpr std::string_view kName = "dropout_backward";
  Read d_out, state;
  Write d_in;
  static void operands(auto& self, auto&& each) {
    each("d_out", self.d_out, "state", self.state, "d_in", self.d_in);
  }
};

// Softmax cross-entropy and its gradient, which share the exponentials. Metrics go to the state.
struct SoftmaxCrossEntropy {
  static constexpr std::string_view kName = "softmax_loss";
  Read logits, labels;  // [n, classes], i32 [n]
  Write d_logits;
  ReadWrite state;
  static void operands(auto& self, auto&& each) {
    each("logits", self.logits, "labels", self.labels, "d_logits", self.d_logits, "state", self.state);
  }
};

}  // namespace plumb
