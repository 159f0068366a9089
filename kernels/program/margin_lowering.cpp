#include "kernels/program/margin_lowering.h"

#include <string>
#include <utility>

#include "models/margin_head.h"

namespace plumb {
namespace {

// State shared by the instructions of one margin loss.
struct MarginLowering {
  MarginLowering(Lowering& lowering, std::size_t index)
      : program(lowering.program),
        op_index(index),
        op(std::get<MarginLoss>(lowering.graph.ops[index])),
        sizes(margin_sizes(lowering.graph, index)) {}

  Program& program;
  std::size_t op_index;
  const MarginLoss& op;
  MarginSizes sizes;

  bool spread() const { return op.world_size > 1; }
  std::vector<std::int64_t> own_features() const { return {sizes.own_images, sizes.embedding}; }
  bool sampled() const { return op.head == Head::sampled; }
  // Multiply-accumulates of each of the three matrix products with the class centers.
  double product_macs() const {
    return static_cast<double>(sizes.images) * static_cast<double>(sizes.rows) *
           static_cast<double>(sizes.embedding);
  }

  BufferId add_buffer(const std::string& name, std::vector<std::int64_t> dims, DType dtype = DType::f32,
                      Role role = Role::activation) {
    return plumb::add_buffer(
        program, {.name = op.name + "." + name, .role = role, .dtype = dtype, .dims = std::move(dims)});
  }
  // View of this rank's part of `all`; `all` itself with a single rank.
  BufferId own_part(BufferId all, const std::string& name, std::vector<std::int64_t> dims) {
    if (!spread()) return all;
    Buffer part = program.buffers[all];
    part.name = op.name + "." + name;
    part.dims = std::move(dims);
    part.bytes /= static_cast<std::size_t>(op.world_size);
    part.view = View{.root = all, .offset = static_cast<std::size_t>(op.rank) * part.bytes};
    return plumb::add_buffer(program, std::move(part));
  }

  Instruction& add(Phase phase, const std::string& name, Operation operation, double macs = 0) {
    Instruction& instruction = add_instruction(
        program,
        {.name = op.name + "." + name, .operation = std::move(operation), .phase = phase, .op = op_index});
    instruction.work.macs = macs;
    return instruction;
  }
  // A single rank needs no collectives.
  void add_collective(Collective::Kind kind, const std::string& name, BufferId buffer) {
    if (!spread()) return;
    const Buffer& held = program.buffers[buffer];
    Instruction& instruction =
        add_instruction(program, {.name = op.name + "." + name,
                                  .operation = Collective{.kind = kind,
                                                          .buffer = buffer,
                                                          .elements = held.bytes / bytes_of(held.dtype),
                                                          .dtype = held.dtype,
                                                          .parts = {buffer}},
                                  .phase = Phase::reduce,
                                  .lane = Lane::communication});
    instruction.work = {};
  }
};

void gather_features(MarginLowering& head, MarginBuffers& buffers, BufferId features, BufferId labels) {
  buffers.normalized_all = head.add_buffer("normalized_all", {head.sizes.images, head.sizes.embedding});
  buffers.normalized = head.own_part(buffers.normalized_all, "normalized", head.own_features());
  buffers.labels_all = head.add_buffer("labels_all", {head.sizes.images}, DType::i32);
  const BufferId own_labels = head.own_part(buffers.labels_all, "labels", {head.sizes.own_images});
  buffers.inverse_norms = head.add_buffer("inverse_norms", {head.sizes.own_images});
  head.add(Phase::forward, "features",
           MarginNormalize{.features = features,
                           .labels = labels,
                           .normalized = buffers.normalized,
                           .own_labels = own_labels,
                           .inverse_norms = buffers.inverse_norms});
  head.add_collective(Collective::Kind::allgather, "features.allgather", buffers.normalized_all);
  head.add_collective(Collective::Kind::allgather, "labels.allgather", buffers.labels_all);
  buffers.columns = buffers.labels_all;
}

void sample_rows(MarginLowering& head, MarginBuffers& buffers, BufferId master, BufferId state,
                 DType rows_dtype) {
  buffers.samples = head.add_buffer("samples", {head.sizes.rows}, DType::i32);
  buffers.sample_count = head.add_buffer("sample_count", {1}, DType::i32);
  for (BufferId kept : {*buffers.samples, *buffers.sample_count})
    head.program.buffers[kept].persistent = true;  // they map gradient rows to classes
  buffers.columns = head.add_buffer("columns", {head.sizes.images}, DType::i32);
  buffers.rows = head.add_buffer("rows", {head.sizes.rows, head.sizes.embedding}, rows_dtype);
  head.add(Phase::forward, "sample",
           MarginSampleClasses{.labels = buffers.labels_all,
                               .state = state,
                               .samples = *buffers.samples,
                               .sample_count = *buffers.sample_count,
                               .columns = buffers.columns});
  Instruction& gather = head.add(Phase::forward, "gather",
                                 MarginGatherRows{.samples = *buffers.samples,
                                                  .sample_count = *buffers.sample_count,
                                                  .weight = master,
                                                  .rows = buffers.rows});
  // Reads only the sampled rows of the fp32 master.
  gather.work.bytes = static_cast<double>(head.sizes.rows * head.sizes.embedding) *
                      static_cast<double>(bytes_of(DType::f32) + bytes_of(rows_dtype));
}

void add_softmax(MarginLowering& head, MarginBuffers& buffers, DType rows_dtype, BufferId state) {
  buffers.products = head.add_buffer("products", {head.sizes.images, head.sizes.rows}, rows_dtype);
  buffers.local_max = head.add_buffer("local_max", {head.sizes.images});
  buffers.row_max = head.add_buffer("row_max", {head.sizes.images});
  buffers.row_sums = head.add_buffer("row_sums", {2, head.sizes.images});
  buffers.target_factor = head.add_buffer("target_factor", {head.sizes.images});
  head.add(Phase::forward, "products",
           MarginProducts{
               .normalized = buffers.normalized_all, .rows = buffers.rows, .products = buffers.products},
           head.product_macs());
  head.add(Phase::forward, "statistics",
           MarginStatistics{.products = buffers.products,
                            .class_inverse_norms = buffers.class_inverse_norms,
                            .columns = buffers.columns,
                            .sample_count = buffers.sample_count,
                            .local_max = buffers.local_max,
                            .row_max = buffers.row_max,
                            .row_sums = buffers.row_sums,
                            .target_factor = buffers.target_factor});
  head.add_collective(Collective::Kind::allreduce_max, "row_max.allreduce", buffers.row_max);
  if (head.spread())
    head.add(Phase::forward, "rescale",
             MarginRescale{
                 .local_max = buffers.local_max, .row_max = buffers.row_max, .row_sums = buffers.row_sums});
  head.add_collective(Collective::Kind::allreduce_sum, "row_sums.allreduce", buffers.row_sums);
  head.add(Phase::forward, "gradient",
           MarginGradient{.products = buffers.products,
                          .class_inverse_norms = buffers.class_inverse_norms,
                          .columns = buffers.columns,
                          .sample_count = buffers.sample_count,
                          .row_max = buffers.row_max,
                          .row_sums = buffers.row_sums,
                          .target_factor = buffers.target_factor,
                          .state = state});
}

// The gradient buffer of the sampled rows, used instead of the full gradient.
BufferId sampled_gradient(const Lowering& lowering, const MarginLowering& head, DType dtype) {
  return add_buffer(head.program, {.name = lowering.graph.parameters[head.op.weight].name + ".gradient",
                                   .role = Role::gradient,
                                   .dtype = dtype,
                                   .dims = {head.sizes.rows, head.sizes.embedding},
                                   .persistent = true,
                                   .sharded = true});
}

}  // namespace

MarginBuffers lower_margin_forward(Lowering& lowering, std::size_t op, BufferId features) {
  MarginLowering head(lowering, op);
  const DType rows_dtype = lowering.op_types[op];
  ParameterBuffers& parameter = lowering.tensors().parameters[head.op.weight];
  MarginBuffers buffers;
  gather_features(head, buffers, features, lowering.tensors().labels);
  buffers.rows = lowering.weights[head.op.weight];
  if (head.sampled()) {
    sample_rows(head, buffers, parameter.master, lowering.tensors().state, rows_dtype);
    parameter.gradient = sampled_gradient(lowering, head, rows_dtype);
    lowering.tensors().sampled_rows[head.op.weight] = {*buffers.samples, *buffers.sample_count};
  }
  buffers.d_rows = parameter.gradient;
  buffers.class_inverse_norms = head.add_buffer("class_inverse_norms", {head.sizes.rows});
  head.add(Phase::forward, "class_norms",
           MarginClassNorms{.rows = buffers.rows,
                            .sample_count = buffers.sample_count,
                            .class_inverse_norms = buffers.class_inverse_norms});
  add_softmax(head, buffers, rows_dtype, lowering.tensors().state);
  return buffers;
}

BufferId lower_margin_backward(Lowering& lowering, std::size_t op, const MarginBuffers& buffers) {
  MarginLowering head(lowering, op);
  const Role role = Role::activation_gradient;
  const BufferId d_normalized_all =
      head.add_buffer("d_normalized_all", {head.sizes.images, head.sizes.embedding}, DType::f32, role);
  const BufferId d_normalized = head.own_part(d_normalized_all, "d_normalized", head.own_features());
  head.add(Phase::backward, "feature_products",
           MarginFeatureProducts{
               .products = buffers.products, .rows = buffers.rows, .d_normalized = d_normalized_all},
           head.product_macs());
  head.add_collective(Collective::Kind::reduce_scatter_sum, "features.reduce_scatter", d_normalized_all);
  head.add(Phase::backward, "weight_gradient",
           MarginWeightGradient{.products = buffers.products,
                                .normalized = buffers.normalized_all,
                                .rows = buffers.rows,
                                .class_inverse_norms = buffers.class_inverse_norms,
                                .d_rows = buffers.d_rows},
           head.product_macs());
  const BufferId d_features = head.add_buffer("d_features", head.own_features(), DType::f32, role);
  head.add(Phase::backward, "features_backward",
           MarginFeaturesBackward{.d_normalized = d_normalized,
                                  .normalized = buffers.normalized,
                                  .inverse_norms = buffers.inverse_norms,
                                  .d_features = d_features});
  return d_features;
}

}  // namespace plumb
