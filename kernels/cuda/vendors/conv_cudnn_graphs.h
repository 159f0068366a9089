// Convolution instructions as cuDNN operation graphs. Includes the whole cuDNN frontend, which is slow
// to compile, so only conv_cudnn.cpp includes this file.
//
// The fused graphs are those that cuDNN documents under "Specialized Pre-compiled Engines" (developer guide,
// Graph API): ConvBNfprop, ConvBNwgrad and DgradDreluBNBwdWeight. With one operation more or less, no engine
// supports the graph.
#pragma once

#include <cudnn_frontend.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cuda/vendors/conv.h"

namespace plumb::cuda {

// Location of a graph's tensor: operand of the instruction and byte offset in it.
struct TensorPlace {
  std::size_t operand = 0, offset = 0;
};

// places[i] is the location of the tensor with unique id i + 1.
struct ConvGraph {
  std::unique_ptr<cudnn_frontend::graph::Graph> graph;
  std::vector<TensorPlace> places;
};

class ConvGraphBuilder {
 public:
  explicit ConvGraphBuilder(const ConvProblem& problem) : p_(problem) {
    built_.graph = std::make_unique<cudnn_frontend::graph::Graph>();
    built_.graph->set_io_data_type(type_of(p_.dtype))
        .set_intermediate_data_type(cudnn_frontend::DataType_t::FLOAT)
        .set_compute_data_type(cudnn_frontend::DataType_t::FLOAT);
  }

  ConvGraph build() && {
    if (p_.pass == ConvPass::forward)
      forward();
    else if (p_.pass == ConvPass::backward_data)
      backward_data();
    else if (p_.pass == ConvPass::backward_weights)
      backward_weights();
    else
      norm_backward_data();
    return std::move(built_);
  }

 private:
  using Tensor = std::shared_ptr<cudnn_frontend::graph::Tensor_attributes>;
  using Dims = std::array<std::int64_t, 4>;   // n, c, h, w
  using Strides = std::vector<std::int64_t>;  // of these
  using PointwiseMode = cudnn_frontend::PointwiseMode_t;

  static cudnn_frontend::DataType_t type_of(DType dtype) {
    using Type = cudnn_frontend::DataType_t;
    if (dtype == DType::f16) return Type::HALF;
    return dtype == DType::bf16 ? Type::BFLOAT16 : Type::FLOAT;
  }

  Dims in_dims() const { return {p_.n, p_.c, p_.h, p_.w}; }
  Dims out_dims() const { return {p_.n, p_.out_c, p_.out_h, p_.out_w}; }
  Dims weight_dims() const { return {p_.out_c, p_.c / p_.groups, p_.kernel, p_.kernel}; }
  static Dims per_channel(std::int64_t channels) { return {1, channels, 1, 1}; }

  // Sets the shape and location of `tensor`. `part` is its offset in the operand, in tensors of this size.
  void place(cudnn_frontend::graph::Tensor_attributes& tensor, const Dims& dims, DType dtype,
             std::size_t operand, std::size_t part) {
    const auto [n, c, h, w] = dims;
    const std::size_t bytes = static_cast<std::size_t>(n * c * h * w) * bytes_of(dtype);
    built_.places.push_back({operand, part * bytes});
    tensor.set_dim({n, c, h, w})
        .set_stride({c * h * w, 1, c * w, c})
        .set_data_type(type_of(dtype))
        .set_uid(static_cast<std::int64_t>(built_.places.size()));
  }
  Tensor input(const Dims& dims, DType dtype, std::size_t operand, std::size_t part = 0) {
    cudnn_frontend::graph::Tensor_attributes tensor;
    place(tensor, dims, dtype, operand, part);
    return built_.graph->tensor(tensor);
  }
  void output(const Tensor& tensor, const Dims& dims, DType dtype, std::size_t operand,
              std::size_t part = 0) {
    place(*tensor, dims, dtype, operand, part);
    tensor->set_output(true);
  }

  Tensor pointwise(PointwiseMode mode, const Tensor& a, const Tensor& b) {
    return built_.graph->pointwise(a, b, cudnn_frontend::graph::Pointwise_attributes().set_mode(mode));
  }
  template <typename Attributes>
  Attributes convolution() const {
    return Attributes()
        .set_padding({p_.padding, p_.padding})
        .set_stride({p_.stride, p_.stride})
        .set_dilation({1, 1});
  }

  // relu(scale_shift[0] * in + scale_shift[1]).
  Tensor normalize(const Tensor& in, std::size_t scale_shift) {
    const Dims dims = per_channel(p_.c);
    Tensor x = pointwise(PointwiseMode::MUL, in, input(dims, p_.scale_shift_dtype, scale_shift, 0));
    x = pointwise(PointwiseMode::ADD, x, input(dims, p_.scale_shift_dtype, scale_shift, 1));
    x = built_.graph->pointwise(
        x, cudnn_frontend::graph::Pointwise_attributes().set_mode(PointwiseMode::RELU_FWD));
    x->set_data_type(type_of(p_.dtype));
    return x;
  }

  void forward() {
    Tensor in = input(in_dims(), p_.dtype, 0);
    std::size_t operand = 3;
    if (p_.fusion.normalizes_input) in = normalize(in, operand++);
    const Tensor out = built_.graph->conv_fprop(in, input(weight_dims(), p_.dtype, 1),
                                                convolution<cudnn_frontend::graph::Conv_fprop_attributes>());
    output(out, out_dims(), p_.dtype, 2);
    if (!p_.fusion.gathers_statistics) return;
    const auto sums = built_.graph->genstats(out, cudnn_frontend::graph::Genstats_attributes());
    for (std::size_t part = 0; part < sums.size(); ++part) {
      output(sums[part], per_channel(p_.out_c), DType::f32, operand, part);
    }
  }

  Tensor data_gradient() {
    const Tensor d_in =
        built_.graph->conv_dgrad(input(out_dims(), p_.dtype, 0), input(weight_dims(), p_.dtype, 1),
                                 convolution<cudnn_frontend::graph::Conv_dgrad_attributes>());
    const auto [n, c, h, w] = in_dims();
    d_in->set_dim({n, c, h, w});
    return d_in;
  }
  void backward_data() { output(data_gradient(), in_dims(), p_.dtype, 2); }

  void backward_weights() {
    Tensor in = input(in_dims(), p_.dtype, 0);
    if (p_.fusion.normalizes_input) in = normalize(in, 3);
    const Tensor d_weight = built_.graph->conv_wgrad(
        input(out_dims(), p_.dtype, 1), in, convolution<cudnn_frontend::graph::Conv_wgrad_attributes>());
    output(d_weight, weight_dims(), p_.dtype, 2);
  }

  // The engine recomputes the ReLU mask from the norm's input.
  void norm_backward_data() {
    const Tensor d_in = data_gradient();
    const Dims dims = per_channel(p_.c);
    const Tensor x = input(in_dims(), p_.dtype, 2);
    const Tensor mean = input(dims, DType::f32, 4), inv_std = input(dims, DType::f32, 5);
    const Tensor scale = input(dims, DType::f32, 6);
    Tensor y = pointwise(PointwiseMode::SUB, x, mean);
    y = pointwise(PointwiseMode::MUL, y, inv_std);
    y = pointwise(PointwiseMode::MUL, y, scale);
    y = pointwise(PointwiseMode::ADD, y, input(dims, DType::f32, 3));
    const Tensor d_activated = pointwise(PointwiseMode::RELU_BWD, d_in, y);
    output(d_activated, in_dims(), p_.dtype, 7);
    const auto [d_scale, d_bias, by_gradient, by_input, constant] = built_.graph->dbn_weight(
        d_activated, x, mean, inv_std, scale, cudnn_frontend::graph::DBN_weight_attributes());
    output(d_scale, dims, DType::f32, 8);
    output(d_bias, dims, DType::f32, 9);
    output(by_gradient, dims, DType::f32, 10, 0);
    output(by_input, dims, DType::f32, 10, 1);
    output(constant, dims, DType::f32, 10, 2);
  }

  const ConvProblem& p_;
  ConvGraph built_;
};

}  // namespace plumb::cuda
