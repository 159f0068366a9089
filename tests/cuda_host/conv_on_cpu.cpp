// The emulated GPU's convolutions: oneDNN's in f32; the prologues and epilogues of fused
// engines are plain loops. Formulas: kernels/program/instructions/conv.h.
//
// EMULATED_NO_FUSED_ENGINES: none for fused convolutions.
#include <algorithm>
#include <cstdlib>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/onednn.h"
#include "kernels/cpu/threads.h"
#include "kernels/cuda/runtime/runtime.h"
#include "kernels/cuda/vendors/conv.h"
#include "kernels/device.h"
#include "tests/cuda_host/host_numbers.h"
#include "tests/cuda_host/runtime_state.h"

namespace plumb::cuda {
namespace {

using Operands = std::vector<std::byte*>;
using dnnl::memory;

std::size_t input_elements(const ConvProblem& p) {
  return static_cast<std::size_t>(p.n * p.h * p.w * p.c);
}
std::size_t output_elements(const ConvProblem& p) {
  return static_cast<std::size_t>(p.n * p.out_h * p.out_w * p.out_c);
}
std::size_t weight_elements(const ConvProblem& p) {
  return static_cast<std::size_t>(p.out_c * p.kernel * p.kernel * (p.c / p.groups));
}

// The convolution itself in one direction: a primitive with its inputs and outputs.
class Product {
 public:
  explicit Product(const ConvProblem& p)
      : engine_(dnnl::engine::kind::cpu, 0),
        in_({p.n, p.c, p.h, p.w}, memory::data_type::f32, Tag::nhwc),
        out_({p.n, p.out_c, p.out_h, p.out_w}, memory::data_type::f32, Tag::nhwc),
        weight_(weight_dims(p), memory::data_type::f32, weight_tag(p)) {
    const memory::desc any(weight_dims(p), memory::data_type::f32, memory::format_tag::any);
    const memory::dims strides{p.stride, p.stride}, padding{p.padding, p.padding};
    const auto algorithm = dnnl::algorithm::convolution_direct;
    const auto forward = cpu::describe_primitive<dnnl::convolution_forward>(
        engine_, dnnl::prop_kind::forward_training, algorithm, in_, any, out_, strides, padding, padding);
    if (p.pass == ConvPass::forward) {
      held_weight_ = forward.weights_desc();
      scratchpad_ = forward.scratchpad_desc();
      primitive_ = dnnl::convolution_forward(forward);
    } else if (p.pass == ConvPass::backward_weights) {
      const auto described = cpu::describe_backward<dnnl::convolution_backward_weights>(
          engine_, forward, algorithm, in_, any, out_, strides, padding, padding);
      held_weight_ = described.diff_weights_desc();
      scratchpad_ = described.scratchpad_desc();
      primitive_ = dnnl::convolution_backward_weights(described);
    } else {
      const auto described = cpu::describe_backward<dnnl::convolution_backward_data>(
          engine_, forward, algorithm, in_, any, out_, strides, padding, padding);
      held_weight_ = described.weights_desc();
      scratchpad_ = described.scratchpad_desc();
      primitive_ = dnnl::convolution_backward_data(described);
    }
  }

  void forward(std::vector<float>& in, std::vector<float>& weight, std::vector<float>& out) const {
    execute({{DNNL_ARG_SRC, memory(in_, engine_, in.data())},
             {DNNL_ARG_WEIGHTS, reordered(weight)},
             {DNNL_ARG_DST, memory(out_, engine_, out.data())}});
  }
  void backward_data(std::vector<float>& d_out, std::vector<float>& weight, std::vector<float>& d_in) const {
    execute({{DNNL_ARG_DIFF_DST, memory(out_, engine_, d_out.data())},
             {DNNL_ARG_WEIGHTS, reordered(weight)},
             {DNNL_ARG_DIFF_SRC, memory(in_, engine_, d_in.data())}});
  }
  void backward_weights(std::vector<float>& in, std::vector<float>& d_out,
                        std::vector<float>& d_weight) const {
    memory held(held_weight_, engine_);
    execute({{DNNL_ARG_SRC, memory(in_, engine_, in.data())},
             {DNNL_ARG_DIFF_DST, memory(out_, engine_, d_out.data())},
             {DNNL_ARG_DIFF_WEIGHTS, held}});
    memory plain(weight_, engine_, d_weight.data());
    dnnl::stream stream(engine_);
    dnnl::reorder(held, plain).execute(stream, held, plain);
    stream.wait();
  }

 private:
  using Tag = memory::format_tag;
  static Tag weight_tag(const ConvProblem& p) { return p.groups > 1 ? Tag::gohwi : Tag::ohwi; }
  static memory::dims weight_dims(const ConvProblem& p) {
    if (p.groups == 1) return {p.out_c, p.c, p.kernel, p.kernel};
    return {p.groups, p.out_c / p.groups, p.c / p.groups, p.kernel, p.kernel};
  }
  memory reordered(std::vector<float>& weight) const {
    cpu::use_threads(threads_);
    memory plain(weight_, engine_, weight.data()), held(held_weight_, engine_);
    dnnl::stream stream(engine_);
    dnnl::reorder(plain, held).execute(stream, plain, held);
    stream.wait();
    return held;
  }
  void execute(std::unordered_map<int, memory> arguments) const {
    cpu::use_threads(threads_);
    arguments.emplace(DNNL_ARG_SCRATCHPAD, memory(scratchpad_, engine_));
    dnnl::stream stream(engine_);
    primitive_.execute(stream, arguments);
    stream.wait();
  }

  // Those that the primitive was made for: whichever thread waits for the GPU does its work.
  const int threads_ = cpu::threads_in_use();
  dnnl::engine engine_;
  memory::desc in_, out_, weight_, held_weight_, scratchpad_;
  dnnl::primitive primitive_;
};

// relu(factors[0] * in + factors[1]), rounded as an engine rounds before multiplying.
void normalize(std::vector<float>& in, const std::byte* factors_at, const ConvProblem& p) {
  const auto channels = static_cast<std::size_t>(p.c);
  const std::vector<float> factors = read_floats(factors_at, 2 * channels, p.scale_shift_dtype);
  for (std::size_t i = 0; i < in.size(); ++i) {
    const std::size_t c = i % channels;
    in[i] = std::max(factors[c] * in[i] + factors[channels + c], 0.0F);
  }
  round_floats(in, p.dtype);
}

std::vector<float> channel_sums(const std::vector<float>& values, std::size_t channels) {
  std::vector<double> sums(2 * channels);
  for (std::size_t i = 0; i < values.size(); ++i) {
    sums[i % channels] += values[i];
    sums[channels + i % channels] += static_cast<double>(values[i]) * values[i];
  }
  return {sums.begin(), sums.end()};
}

void forward(const Product& product, const ConvProblem& p, const Operands& operands) {
  std::size_t next = 3;
  std::vector<float> in = read_factors(operands[0], input_elements(p), p.dtype, p.allow_tf32);
  std::vector<float> weight = read_factors(operands[1], weight_elements(p), p.dtype, p.allow_tf32);
  if (p.fusion.normalizes_input) normalize(in, operands.at(next++), p);
  std::vector<float> out(output_elements(p));
  product.forward(in, weight, out);
  write_floats(operands[2], out, p.dtype);
  if (p.fusion.gathers_statistics)
    write_floats(operands.at(next), channel_sums(out, static_cast<std::size_t>(p.out_c)), DType::f32);
}

std::vector<float> backward_data(const Product& product, const ConvProblem& p, const Operands& operands) {
  std::vector<float> d_out = read_factors(operands[0], output_elements(p), p.dtype, p.allow_tf32);
  std::vector<float> weight = read_factors(operands[1], weight_elements(p), p.dtype, p.allow_tf32);
  std::vector<float> d_in(input_elements(p));
  product.backward_data(d_out, weight, d_in);
  return d_in;
}

void backward_weights(const Product& product, const ConvProblem& p, const Operands& operands) {
  std::vector<float> in = read_factors(operands[0], input_elements(p), p.dtype, p.allow_tf32);
  if (p.fusion.normalizes_input) normalize(in, operands.at(3), p);
  std::vector<float> d_out = read_factors(operands[1], output_elements(p), p.dtype, p.allow_tf32);
  std::vector<float> d_weight(weight_elements(p));
  product.backward_weights(in, d_out, d_weight);
  write_floats(operands[2], d_weight, p.dtype);
}

// Batch norm backward (Ioffe and Szegedy 2015, section 3), the part with sums over a channel; the
// coefficients are those of the remaining a * d + b * x + c per element.
void norm_backward_data(const Product& product, const ConvProblem& p, const Operands& operands) {
  std::vector<float> d = backward_data(product, p, operands);
  const auto channels = static_cast<std::size_t>(p.c);
  const std::vector<float> x = read_floats(operands[2], d.size(), p.dtype);
  const auto of_channels = [&](std::size_t use) { return read_floats(operands[use], channels, DType::f32); };
  const std::vector<float> bias = of_channels(3), mean = of_channels(4), inverse = of_channels(5),
                           scale = of_channels(6);
  std::vector<double> d_scale(channels), d_bias(channels);
  for (std::size_t i = 0; i < d.size(); ++i) {
    const std::size_t c = i % channels;
    const float standard = (x[i] - mean[c]) * inverse[c];
    if (!(scale[c] * standard + bias[c] > 0)) d[i] = 0;
    d_scale[c] += static_cast<double>(d[i]) * standard;
    d_bias[c] += d[i];
  }
  std::vector<float> coefficients(3 * channels);
  const double pixels = static_cast<double>(d.size()) / static_cast<double>(channels);
  for (std::size_t c = 0; c < channels; ++c) {
    const double factor = static_cast<double>(scale[c]) * inverse[c];
    const double slope = factor * inverse[c] * d_scale[c] / pixels;
    coefficients[c] = static_cast<float>(factor);
    coefficients[channels + c] = static_cast<float>(-slope);
    coefficients[2 * channels + c] = static_cast<float>(slope * mean[c] - factor * d_bias[c] / pixels);
  }
  write_floats(operands[7], d, p.dtype);
  write_floats(operands[8], {d_scale.begin(), d_scale.end()}, DType::f32);
  write_floats(operands[9], {d_bias.begin(), d_bias.end()}, DType::f32);
  write_floats(operands[10], coefficients, DType::f32);
}

void compute(const Product& product, const ConvProblem& p, const Operands& operands) {
  switch (p.pass) {
    case ConvPass::forward:
      return forward(product, p, operands);
    case ConvPass::backward_data:
      return write_floats(operands[2], backward_data(product, p, operands), p.dtype);
    case ConvPass::backward_weights:
      return backward_weights(product, p, operands);
    case ConvPass::norm_backward_data:
      return norm_backward_data(product, p, operands);
  }
}

ConvPlan plan_on_cpu(const ConvProblem& problem) {
  constexpr std::size_t kWorkspaceBytes = 1024;  // small but nonzero, to test its place in the plan
  return {"oneDNN", kWorkspaceBytes,
          [problem, product = std::make_shared<const Product>(problem)](
              cudaStream_t stream, std::span<std::byte* const> operands, std::byte* workspace) {
            const Operands held(operands.begin(), operands.end());
            check(gpu::emulated::enqueue(stream, gpu::emulated::once([=] {
                                           std::fill_n(workspace, kWorkspaceBytes, std::byte{0xFF});
                                           compute(*product, problem, held);
                                         })));
          }};
}

ConvCandidates candidates_on_cpu(const ConvProblem& problem, std::size_t) {
  const auto build = [problem](std::string&) -> std::optional<ConvPlan> {
    if (is_fused(problem) && std::getenv("EMULATED_NO_FUSED_ENGINES")) return {};
    return plan_on_cpu(problem);
  };
  return {.engines = {{"oneDNN", build}}};
}

}  // namespace

std::string conv_library() {
  return "oneDNN";
}

ConvEngine make_conv_engine(const ConvEngineOptions&) {
  return {.library = conv_library(), .candidates = candidates_on_cpu};
}

}  // namespace plumb::cuda
