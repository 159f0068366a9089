// Row operations of a margin loss on features and class centers of length E: norms, the three matrix products
// of all images with all centers, and backward through the normalization.
// Formulas: kernels/program/margin_lowering.h, models/margin_head.h.
#include <algorithm>

#include "kernels/cpu/binding.h"
#include "kernels/cpu/onednn.h"
#include "kernels/cpu/threads.h"
#include "models/margin_head.h"

namespace plumb::cpu {
namespace {

using dnnl::matmul;
using dnnl::memory;

// Centers per task of the weight gradient: 512 KiB at E = 512, fits the core's cache.
constexpr std::ptrdiff_t kRowBlock = 256;

double dot(const float* a, const float* b, std::ptrdiff_t count) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::ptrdiff_t i = 0; i < count; ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

// In fp32: for values of similar magnitude in memory-bound loops.
float fast_dot(const float* a, const float* b, std::ptrdiff_t count) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::ptrdiff_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

// Row-major matrix product with oneDNN's sgemm: c[m, n] = a[m, k] * b[k, n]; `a` may be stored as [k, m].
// Returns its status, as no exception may leave a parallel loop.
dnnl_status_t multiply(bool a_transposed, std::ptrdiff_t m, std::ptrdiff_t n, std::ptrdiff_t k,
                       const float* a, std::ptrdiff_t a_stride, const float* b, float* c) {
  return dnnl_sgemm(a_transposed ? 'T' : 'N', 'N', m, n, k, 1.0f, a, a_stride, b, n, 0.0f, c, n);
}

void require_success(dnnl_status_t status) {
  dnnl::error::wrap_c_api(status, "could not multiply two matrices");
}

// Row-major, with the dims of the instruction that wrote them: [n, E] or [n, E, 1, 1].
memory::desc features_layout(const Context& context, const Instruction& instruction) {
  const BufferId features = context.tensors().values[context.op<MarginLoss>(instruction).in];
  const auto& held = context.layouts[features];
  return plain_layout(held ? dims_of(*held) : context.program.buffers[features].dims);
}

// In double, so that the norm of any fp32 row neither overflows nor underflows.
void normalize(const MarginSizes& p, const float* features, float* normalized, float* inverse_norms) {
  for (std::ptrdiff_t i = 0; i < p.own_images; ++i) {
    const float* x = features + i * p.embedding;
    const double inverse = inverse_norm(dot(x, x, p.embedding));
    for (std::ptrdiff_t e = 0; e < p.embedding; ++e)
      normalized[i * p.embedding + e] = static_cast<float>(x[e] * inverse);
    inverse_norms[i] = static_cast<float>(inverse);
  }
}

// d_x = (d_x^ - x^ (x^ . d_x^)) / |x|
void features_backward(const MarginSizes& p, const float* d_normalized, const float* normalized,
                       const float* inverse_norms, float* d_features) {
  for (std::ptrdiff_t i = 0; i < p.own_images; ++i) {
    const float* d = d_normalized + i * p.embedding;
    const float* x = normalized + i * p.embedding;
    const double along = dot(d, x, p.embedding);
    for (std::ptrdiff_t e = 0; e < p.embedding; ++e)
      d_features[i * p.embedding + e] = static_cast<float>((d[e] - along * x[e]) * inverse_norms[i]);
  }
}

// Reads 4 E bytes per center.
void class_norms(const MarginSizes& p, const float* rows, std::ptrdiff_t used, float* inverse_norms) {
#pragma omp parallel for schedule(static) if (used * p.embedding >= kWorthThreads)
  for (std::ptrdiff_t j = 0; j < used; ++j) {
    const float* row = rows + j * p.embedding;
    inverse_norms[j] = inverse_norm(fast_dot(row, row, p.embedding));
  }
  std::fill(inverse_norms + used, inverse_norms + p.rows, 0.0f);
}

// u = products^T x^, then d_w = u - w (w . u) / |w|^2; the products already include 1 / |w|. A block of
// centers stays in cache: reads 4 (N + E), writes 4 E bytes per center.
void weight_gradient(const MarginSizes& p, const float* products, const float* normalized, const float* rows,
                     const float* inverse_norms, float* d_rows) {
  int status = dnnl_success;
#pragma omp parallel for schedule(static) reduction(max : status) if (p.images * p.rows >= kWorthThreads)
  for (std::ptrdiff_t begin = 0; begin < p.rows; begin += kRowBlock) {
    const std::ptrdiff_t count = std::min(kRowBlock, p.rows - begin);
    status = std::max<int>(status, multiply(true, count, p.embedding, p.images, products + begin, p.rows,
                                            normalized, d_rows + begin * p.embedding));
    for (std::ptrdiff_t j = begin; j < begin + count; ++j) {
      const float* w = rows + j * p.embedding;
      float* u = d_rows + j * p.embedding;
      const float inverse_norm = inverse_norms[j];
      const float along = fast_dot(w, u, p.embedding) * inverse_norm * inverse_norm;
#pragma omp simd
      for (std::ptrdiff_t e = 0; e < p.embedding; ++e) u[e] -= along * w[e];
    }
  }
  require_success(static_cast<dnnl_status_t>(status));
}

}  // namespace

Binder prepare(Context& context, Instruction& instruction, const MarginNormalize& margin) {
  const MarginSizes p = margin_sizes(context.graph, instruction.op);
  Call call(context, instruction);
  const auto features = call.input(0, margin.features, features_layout(context, instruction));
  return call.finish([=](const BoundOperands& at) {
    std::copy_n(at.arena.as<std::int32_t>(margin.labels), p.own_images,
                at.arena.as<std::int32_t>(margin.own_labels));
    normalize(p, at.as(features), at.arena.as(margin.normalized), at.arena.as(margin.inverse_norms));
  });
}

Binder prepare(Context& context, Instruction& instruction, const MarginFeaturesBackward& margin) {
  const MarginSizes p = margin_sizes(context.graph, instruction.op);
  Call call(context, instruction);
  const auto d_features = call.output(0, margin.d_features, features_layout(context, instruction));
  return call.finish([=](const BoundOperands& at) {
    features_backward(p, at.arena.as(margin.d_normalized), at.arena.as(margin.normalized),
                      at.arena.as(margin.inverse_norms), at.as(d_features));
  });
}

Binder prepare(Context& context, Instruction& instruction, const MarginClassNorms& margin) {
  const MarginSizes p = margin_sizes(context.graph, instruction.op);
  context.settle(margin.rows, plain_layout({p.rows, p.embedding}));
  return bind_loop([=](const Arena& at) {
    const auto* count = at.optional<std::int32_t>(margin.sample_count);
    class_norms(p, at.as(margin.rows), count ? *count : p.rows, at.as(margin.class_inverse_norms));
  });
}

Binder prepare(Context& context, Instruction& instruction, const MarginProducts& margin) {
  const MarginSizes p = margin_sizes(context.graph, instruction.op);
  const memory::desc images = plain_layout({p.images, p.embedding});
  const memory::desc centers({p.embedding, p.rows}, memory::data_type::f32,
                             memory::dims{1, p.embedding});  // [C, E] transposed
  const memory::desc products = plain_layout({p.images, p.rows});
  const auto descriptor = describe_primitive<matmul>(context.engine, images, centers, products);
  Call call(context, instruction);
  call.raw(DNNL_ARG_SRC, margin.normalized, images);
  call.raw(DNNL_ARG_WEIGHTS, margin.rows, centers);
  call.raw(DNNL_ARG_DST, margin.products, products);
  return call.finish<matmul>(descriptor);
}

Binder prepare(Context& context, Instruction& instruction, const MarginFeatureProducts& margin) {
  return bind_loop([=, p = margin_sizes(context.graph, instruction.op)](const Arena& at) {
    require_success(multiply(false, p.images, p.embedding, p.rows, at.as(margin.products), p.rows,
                             at.as(margin.rows), at.as(margin.d_normalized)));
  });
}

Binder prepare(Context& context, Instruction& instruction, const MarginWeightGradient& margin) {
  const MarginSizes p = margin_sizes(context.graph, instruction.op);
  context.settle(margin.d_rows, plain_layout({p.rows, p.embedding}));
  return bind_loop([=](const Arena& at) {
    weight_gradient(p, at.as(margin.products), at.as(margin.normalized), at.as(margin.rows),
                    at.as(margin.class_inverse_norms), at.as(margin.d_rows));
  });
}

}  // namespace plumb::cpu
