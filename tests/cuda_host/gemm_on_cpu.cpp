// The emulated GPU's matrix products: oneDNN's, in f32.
#include <cstdlib>
#include <oneapi/dnnl/dnnl.hpp>

#include "base/error.h"
#include "kernels/cpu/threads.h"
#include "kernels/cuda/runtime/runtime.h"
#include "kernels/cuda/vendors/dense.h"
#include "tests/cuda_host/host_numbers.h"
#include "tests/cuda_host/runtime_state.h"

namespace plumb::cuda {
namespace {

// Copies a matrix without its row padding, and back.
std::vector<float> read_rows(const std::byte* from, std::int64_t rows, std::int64_t columns,
                             std::int64_t stride, DType dtype, bool allow_tf32) {
  if (stride == 0 || stride == columns)
    return read_factors(from, static_cast<std::size_t>(rows * columns), dtype, allow_tf32);
  std::vector<float> matrix;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::vector<float> values =
        read_factors(from + static_cast<std::size_t>(row * stride) * bytes_of(dtype),
                     static_cast<std::size_t>(columns), dtype, allow_tf32);
    matrix.insert(matrix.end(), values.begin(), values.end());
  }
  return matrix;
}
void write_rows(std::byte* to, const std::vector<float>& matrix, std::int64_t columns, std::int64_t stride,
                DType dtype) {
  if (stride == 0 || stride == columns) return write_floats(to, matrix, dtype);
  for (auto row = matrix.begin(); row != matrix.end(); row += columns) {
    write_floats(to, {row, row + columns}, dtype);
    to += static_cast<std::size_t>(stride) * bytes_of(dtype);
  }
}

// A NaN passes the ReLU.
void mask(std::vector<float>& c, std::byte* bits) {
  for (std::size_t i = 0; i < c.size(); ++i) {
    const std::byte bit{static_cast<unsigned char>(1U << i % 8)};
    bits[i / 8] = c[i] <= 0 ? bits[i / 8] & ~bit : bits[i / 8] | bit;
    if ((bits[i / 8] & bit) == std::byte{}) c[i] = 0;
  }
}

void multiply(const GemmProblem& p, const GemmOperands& operands) {
  const auto count = [](std::int64_t rows, std::int64_t columns) {
    return static_cast<std::size_t>(rows * columns);
  };
  const std::vector<float> a = read_rows(operands.a, p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k,
                                         p.a_stride, p.in, p.allow_tf32);
  const std::vector<float> b = read_factors(operands.b, count(p.k, p.n), p.in, p.allow_tf32);
  std::vector<float> c(count(p.m, p.n));
  const dnnl::status status =
      dnnl::sgemm(p.transpose_a ? 'T' : 'N', p.transpose_b ? 'T' : 'N', p.m, p.n, p.k,
                  p.has_factor ? *operands.factor : 1, a.data(), p.transpose_a ? p.m : p.k, b.data(),
                  p.transpose_b ? p.k : p.n, 0, c.data(), p.n);
  if (status != dnnl::status::success) throw Error(ExitCode::internal, "oneDNN refused a matrix product");
  if (p.bias) {
    const std::vector<float> bias = read_floats(operands.bias, count(p.n, 1), p.out);
    for (std::size_t i = 0; i < c.size(); ++i) c[i] += bias[i % bias.size()];
  }
  if (p.adds) {
    const std::vector<float> added = read_floats(operands.added, c.size(), p.out);
    for (std::size_t i = 0; i < c.size(); ++i) c[i] += added[i];
  }
  if (p.makes_mask) mask(c, operands.relu_mask);
  write_rows(operands.c, c, p.n, p.c_stride, p.out);
}

std::vector<GemmPlan> plans_on_cpu(const GemmProblem& problem, std::size_t, std::size_t) {
  if (problem.makes_mask && (problem.n % kMaskColumns != 0 || std::getenv("EMULATED_NO_FUSED_ENGINES")))
    return {};
  const auto run = [problem, threads = cpu::threads_in_use()](cudaStream_t stream,
                                                              const GemmOperands& operands, std::byte*) {
    check(gpu::emulated::enqueue(stream, gpu::emulated::once([=] {
                                   // Sums come in the same order, whichever thread waits for the GPU.
                                   cpu::use_threads(threads);
                                   multiply(problem, operands);
                                 })));
  };
  return {{"oneDNN sgemm", 0, run}};
}

}  // namespace

std::string gemm_library() {
  return "oneDNN";
}

bool has_gemm_library(bool) {
  return true;
}

GemmEngine make_gemm_engine() {
  return {.library = gemm_library(), .plans = plans_on_cpu};
}

}  // namespace plumb::cuda
