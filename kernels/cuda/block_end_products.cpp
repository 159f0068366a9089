#include "kernels/cuda/block_end_products.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "base/text.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/norm_partition.h"

namespace plumb::cuda {
namespace {

constexpr std::size_t kMostWays = 4;  // algorithms of a product

// An algorithm for each product of an instruction, in order.
struct Products {
  std::vector<std::shared_ptr<const GemmPlan>> plans;
  std::string engine() const {
    std::vector<std::string> names;
    for (const auto& plan : plans) names.push_back(plan->engine());
    return fmt::format("{}", fmt::join(names, " + "));
  }
  std::size_t workspace_bytes() const {
    std::size_t most = 0;
    for (const auto& plan : plans) most = std::max(most, plan->workspace_bytes());
    return most;
  }
};

// The products' best algorithms, then their second ones, and so on; of those with fewer the last.
std::vector<Products> list_products(GemmEngine& engine, std::span<const GemmProblem> problems,
                                    std::size_t workspace_limit) {
  std::vector<Products> listed;
  for (std::size_t product = 0; product < problems.size(); ++product) {
    std::vector<std::shared_ptr<const GemmPlan>> plans;
    for (auto& plan : engine.plans(problems[product], workspace_limit, kMostWays))
      plans.push_back(std::move(plan));
    if (plans.empty()) return {};
    if (product == 0) listed.resize(1);
    while (listed.size() < plans.size()) listed.push_back(listed.back());
    for (std::size_t i = 0; i < listed.size(); ++i)
      listed[i].plans.push_back(plans[std::min(i, plans.size() - 1)]);
  }
  return listed;
}

// Places in the workspace of what goes with the products, before their own workspace.
struct Places {
  std::size_t counters = 0, partials = 0, products = 0;  // the bias is at 0
};
constexpr std::size_t padded(std::size_t bytes) {
  return static_cast<std::size_t>(divide_up(static_cast<std::int64_t>(bytes), 256) * 256);
}

struct Work {
  std::vector<GemmProblem> problems;  // none: the library can't compute the instruction
  Places places;
};

Work work_of(const Context& context, const Instruction& instruction, const BlockEndForward& end) {
  const ProductNormShape shape = product_shape(context, instruction);
  if (end.residual_scale_shift || end.shortcut_in || shape.outputs % kMaskColumns != 0) return {};
  const DType dtype = context.dtype(end.out);
  return {.problems = {{.m = shape.pixels,
                        .n = shape.outputs,
                        .k = shape.inputs,
                        .in = dtype,
                        .out = dtype,
                        .bias = true,
                        .adds = true,
                        .mask = ProductMask::makes}},
          .places = {.products = padded(static_cast<std::size_t>(shape.outputs) * bytes_of(dtype))}};
}

Work work_of(const Context& context, const Instruction& instruction, const BlockEndBackwardData& end) {
  if (!end.norm_in) return {};
  const ProductNormShape shape = product_shape(context, instruction);
  const NormPartition partition = partition_norm(shape.pixels, shape.inputs);
  const DType dtype = context.dtype(end.in);
  const GemmProblem of_input{.m = shape.pixels,
                             .n = shape.inputs,
                             .k = shape.inputs,
                             .in = dtype,
                             .out = dtype,
                             .bias = true,
                             .has_factor = true};
  const GemmProblem of_gradient{
      .m = shape.pixels, .n = shape.inputs, .k = shape.outputs, .in = dtype, .out = dtype, .adds = true};
  Places places{.counters = padded(static_cast<std::size_t>(shape.inputs) * bytes_of(dtype))};
  places.partials =
      places.counters + padded(sizeof(unsigned) * static_cast<std::size_t>(norm_counters(partition)));
  places.products = places.partials + padded(norm_partials_bytes(partition));
  return {.problems = {of_input, of_gradient}, .places = places};
}

template <typename End>
std::vector<Products> list_products(Context& context, const Instruction& instruction, const End& end) {
  const Work work = work_of(context, instruction, end);
  if (instruction.workspace_bytes < work.places.products) return {};
  return list_products(context.products, work.problems, instruction.workspace_bytes - work.places.products);
}

// The products to take; none where our own kernel is wanted, or nothing is listed.
template <typename End>
Products choose_products(Context& context, Instruction& instruction, const End& end) {
  if (instruction.engine.empty() || instruction.engine == kOwnKernel) return {};
  std::vector<Products> listed = list_products(context, instruction, end);
  if (listed.empty()) return {};
  const auto named = std::ranges::find(listed, instruction.engine, &Products::engine);
  Products chosen = std::move(named == listed.end() ? listed.front() : *named);
  instruction.engine = chosen.engine();
  instruction.workspace_bytes = work_of(context, instruction, end).places.products + chosen.workspace_bytes();
  return chosen;
}

}  // namespace

Binder prepare_products(Context& context, Instruction& instruction, const BlockEndForward& end) {
  const Products products = choose_products(context, instruction, end);
  if (products.plans.empty()) return {};
  return launching(context, [=, plan = products.plans[0], dtype = context.dtype(end.out),
                             outputs = product_shape(context, instruction).outputs,
                             places = work_of(context, instruction, end).places](const Arena& arena,
                                                                                 cudaStream_t stream) {
    std::byte* const workspace = arena.workspace();
    const float* const shift = arena.as<float>(end.scale_shift) + outputs;
    launch_cast(DType::f32, reinterpret_cast<const std::byte*>(shift), dtype, workspace, outputs, 1, stream);
    plan->run(stream,
              {.a = arena.data(end.in),
               .b = arena.data(end.scaled_transposed),
               .bias = workspace,
               .added = arena.data(*end.residual),
               .relu_mask = arena.data(end.relu_mask),
               .c = arena.data(end.out)},
              workspace + places.products);
  });
}

// The product with the input comes first: it is the smaller one, so its rounding costs less.
Binder prepare_products(Context& context, Instruction& instruction, const BlockEndBackwardData& end) {
  const Products products = choose_products(context, instruction, end);
  if (products.plans.empty()) return {};
  const ProductNormShape shape = product_shape(context, instruction);
  return launching(
      context, [=, of_input = products.plans[0], of_gradient = products.plans[1],
                dtype = context.dtype(end.in), partition = partition_norm(shape.pixels, shape.inputs),
                places = work_of(context, instruction, end).places](const Arena& arena, cudaStream_t stream) {
        std::byte *const workspace = arena.workspace(), *const d_in = arena.data(end.d_in);
        auto* const counters = reinterpret_cast<unsigned*>(workspace + places.counters);
        const float* const shift = arena.as<float>(end.shift);
        check(cudaMemsetAsync(counters, 0, places.partials - places.counters, stream));
        launch_cast(DType::f32, arena.data(end.shift), dtype, workspace, shape.inputs, 1, stream);
        of_input->run(stream,
                      {.a = arena.data(end.in),
                       .b = arena.data(end.factors),
                       .bias = workspace,
                       .factor = shift + shape.inputs,
                       .zero = reinterpret_cast<const float*>(counters),
                       .c = d_in},
                      workspace + places.products);
        of_gradient->run(stream,
                         {.a = arena.data(end.d_out), .b = arena.data(end.scaled), .added = d_in, .c = d_in},
                         workspace + places.products);
        launch_norm_backward_sums(
            partition, dtype,
            {.in = arena.data(*end.norm_in), .d_out = d_in, .scale_shift = arena.data(*end.scale_shift)},
            d_in, {reinterpret_cast<float*>(workspace + places.partials), counters},
            norm_in_front_of(end, arena), {}, stream);
      });
}

std::vector<std::string> engines_of(Context& context, const Instruction& instruction) {
  std::vector<std::string> engines{kOwnKernel};
  const auto add_products = [&](const auto* end) {
    if (!end) return;
    for (const Products& products : list_products(context, instruction, *end))
      engines.push_back(products.engine());
  };
  add_products(instruction.as<BlockEndForward>());
  add_products(instruction.as<BlockEndBackwardData>());
  return engines;
}

}  // namespace plumb::cuda
