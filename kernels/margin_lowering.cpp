#include "kernels/margin_lowering.h"

#include <string>
#include <utility>

#include "models/margin_head.h"

namespace plumb {
namespace {

// What the steps of one margin loss have in common.
struct MarginLowering {
  MarginLowering(Lowering& lowering, std::size_t index)
      : program(lowering.program),
        op_index(index),
        op(std::get<MarginLoss>(lowering.graph.ops[index])),
        images(lowering.graph.batch()),
        all_images(images * op.world_size),
        embedding(lowering.graph.parameters[op.weight].dims[1]),
        rows(margin_rows(op, lowering.graph.parameters[op.weight].dims[0], images)) {}

  Program& program;
  std::size_t op_index;
  const MarginLoss& op;
  std::int64_t images, all_images, embedding;
  std::int64_t rows;  // of class centres that a step works with

  bool spread() const { return op.world_size > 1; }
  std::vector<std::int64_t> own_features() const { return {images, embedding}; }
  bool sampled() const { return op.head == Head::sampled; }
  // Multiply-accumulates of each of the three products with the class centres.
  double product_macs() const {
    return static_cast<double>(all_images) * static_cast<double>(rows) * static_cast<double>(embedding);
  }

  BufferId add_buffer(const std::string& name, std::vector<std::int64_t> dims, DType dtype = DType::f32,
                      Role role = Role::activation) {
    return plumb::add_buffer(
        program, {.name = op.name + "." + name, .role = role, .dtype = dtype, .dims = std::move(dims)});
  }
  // This rank's part of what all ranks have a part of; all of it where there is one rank.
  BufferId own_part(BufferId all, const std::string& name, std::vector<std::int64_t> dims) {
    if (!spread()) return all;
    Buffer part = program.buffers[all];
    part.name = op.name + "." + name;
    part.dims = std::move(dims);
    part.bytes /= static_cast<std::size_t>(op.world_size);
    part.view = View{.root = all, .offset = static_cast<std::size_t>(op.rank) * part.bytes};
    return plumb::add_buffer(program, std::move(part));
  }

  Step& add(StepKind kind, Phase phase, const std::string& name, std::vector<BufferUse> uses,
            double macs = 0) {
    Step step{
        .name = op.name + "." + name, .kind = kind, .phase = phase, .op = op_index, .uses = std::move(uses)};
    step.work = {.macs = macs, .bytes = memory_traffic_bytes(program, step.uses)};
    return add_step(program, std::move(step));
  }
  // With one rank there is nobody to meet.
  void meet(Collective::Kind kind, const std::string& name, BufferId buffer) {
    if (!spread()) return;
    const Buffer& held = program.buffers[buffer];
    Step step{.name = op.name + "." + name,
              .kind = StepKind::reduce,
              .phase = Phase::reduce,
              .lane = Lane::communication,
              .uses = {updates(buffer)}};
    step.action = Collective{
        .kind = kind, .buffer = buffer, .elements = held.bytes / bytes_of(held.dtype), .dtype = held.dtype};
    add_step(program, std::move(step));
  }
  // `before`, the count of a sample where there is one, `after`.
  static std::vector<BufferUse> with_count(const MarginBuffers& buffers, std::vector<BufferUse> before,
                                           const std::vector<BufferUse>& after) {
    if (buffers.sample_count) before.push_back(reads(*buffers.sample_count));
    for (const BufferUse& use : after) before.push_back(use);
    return before;
  }
};

void gather_features(MarginLowering& head, MarginBuffers& buffers, BufferId features, BufferId labels) {
  buffers.normalized_all = head.add_buffer("normalized_all", {head.all_images, head.embedding});
  buffers.normalized = head.own_part(buffers.normalized_all, "normalized", head.own_features());
  buffers.labels_all = head.add_buffer("labels_all", {head.all_images}, DType::i32);
  const BufferId own_labels = head.own_part(buffers.labels_all, "labels", {head.images});
  buffers.inverse_norms = head.add_buffer("inverse_norms", {head.images});
  head.add(StepKind::margin_features, Phase::forward, "features",
           {reads(features), reads(labels), writes(buffers.normalized), writes(own_labels),
            writes(buffers.inverse_norms)});
  head.meet(Collective::Kind::allgather, "features.allgather", buffers.normalized_all);
  head.meet(Collective::Kind::allgather, "labels.allgather", buffers.labels_all);
  buffers.columns = buffers.labels_all;
}

void sample_rows(MarginLowering& head, MarginBuffers& buffers, BufferId master, BufferId state,
                 DType rows_dtype) {
  buffers.samples = head.add_buffer("samples", {head.rows}, DType::i32);
  buffers.sample_count = head.add_buffer("sample_count", {1}, DType::i32);
  for (BufferId kept : {*buffers.samples, *buffers.sample_count})
    head.program.buffers[kept].persistent = true;  // they say which rows the gradient is of
  buffers.columns = head.add_buffer("columns", {head.all_images}, DType::i32);
  buffers.rows = head.add_buffer("rows", {head.rows, head.embedding}, rows_dtype);
  head.add(StepKind::margin_sample, Phase::forward, "sample",
           {reads(buffers.labels_all), reads(state), writes(*buffers.samples), writes(*buffers.sample_count),
            writes(buffers.columns)});
  Step& gather =
      head.add(StepKind::margin_gather, Phase::forward, "gather",
               {reads(*buffers.samples), reads(*buffers.sample_count), reads(master), writes(buffers.rows)});
  // Of the master only the sampled rows are read, in fp32.
  gather.work.bytes = static_cast<double>(head.rows * head.embedding) *
                      static_cast<double>(bytes_of(DType::f32) + bytes_of(rows_dtype));
}

void add_softmax(MarginLowering& head, MarginBuffers& buffers, DType rows_dtype, BufferId state) {
  buffers.products = head.add_buffer("products", {head.all_images, head.rows}, rows_dtype);
  buffers.local_max = head.add_buffer("local_max", {head.all_images});
  buffers.row_max = head.add_buffer("row_max", {head.all_images});
  buffers.row_sums = head.add_buffer("row_sums", {2, head.all_images});
  buffers.target_factor = head.add_buffer("target_factor", {head.all_images});
  head.add(StepKind::margin_products, Phase::forward, "products",
           {reads(buffers.normalized_all), reads(buffers.rows), writes(buffers.products)},
           head.product_macs());
  head.add(StepKind::margin_statistics, Phase::forward, "statistics",
           MarginLowering::with_count(
               buffers, {reads(buffers.products), reads(buffers.class_inverse_norms), reads(buffers.columns)},
               {writes(buffers.local_max), writes(buffers.row_max), writes(buffers.row_sums),
                writes(buffers.target_factor)}));
  head.meet(Collective::Kind::allreduce_max, "row_max.allreduce", buffers.row_max);
  if (head.spread())
    head.add(StepKind::margin_rescale, Phase::forward, "rescale",
             {reads(buffers.local_max), reads(buffers.row_max), updates(buffers.row_sums)});
  head.meet(Collective::Kind::allreduce_sum, "row_sums.allreduce", buffers.row_sums);
  head.add(
      StepKind::margin_gradient, Phase::forward, "gradient",
      MarginLowering::with_count(
          buffers, {updates(buffers.products), reads(buffers.class_inverse_norms), reads(buffers.columns)},
          {reads(buffers.row_max), reads(buffers.row_sums), reads(buffers.target_factor), updates(state)}));
}

// The gradient of the sampled rows, which stands for that of all rows.
BufferId sampled_gradient(const Lowering& lowering, const MarginLowering& head, DType dtype) {
  return add_buffer(head.program, {.name = lowering.graph.parameters[head.op.weight].name + ".gradient",
                                   .role = Role::gradient,
                                   .dtype = dtype,
                                   .dims = {head.rows, head.embedding},
                                   .persistent = true,
                                   .sharded = true});
}

}  // namespace

MarginBuffers lower_margin_forward(Lowering& lowering, std::size_t op, BufferId features, BufferId weight,
                                   DType rows_dtype) {
  MarginLowering head(lowering, op);
  ParameterBuffers& parameter = lowering.parameters[head.op.weight];
  MarginBuffers buffers;
  gather_features(head, buffers, features, lowering.labels);
  buffers.rows = weight;
  if (head.sampled()) {
    sample_rows(head, buffers, parameter.master, lowering.state, rows_dtype);
    parameter.gradient = sampled_gradient(lowering, head, rows_dtype);
  }
  buffers.d_rows = parameter.gradient;
  buffers.class_inverse_norms = head.add_buffer("class_inverse_norms", {head.rows});
  head.add(StepKind::margin_class_norms, Phase::forward, "class_norms",
           MarginLowering::with_count(buffers, {reads(buffers.rows)}, {writes(buffers.class_inverse_norms)}));
  add_softmax(head, buffers, rows_dtype, lowering.state);
  return buffers;
}

BufferId lower_margin_backward(Lowering& lowering, std::size_t op, const MarginBuffers& buffers) {
  MarginLowering head(lowering, op);
  const Role role = Role::activation_gradient;
  const BufferId d_normalized_all =
      head.add_buffer("d_normalized_all", {head.all_images, head.embedding}, DType::f32, role);
  const BufferId d_normalized = head.own_part(d_normalized_all, "d_normalized", head.own_features());
  head.add(StepKind::margin_feature_products, Phase::backward, "feature_products",
           {reads(buffers.products), reads(buffers.rows), writes(d_normalized_all)}, head.product_macs());
  head.meet(Collective::Kind::reduce_scatter_sum, "features.reduce_scatter", d_normalized_all);
  head.add(StepKind::margin_weight_gradient, Phase::backward, "weight_gradient",
           {reads(buffers.products), reads(buffers.normalized_all), reads(buffers.rows),
            reads(buffers.class_inverse_norms), writes(buffers.d_rows)},
           head.product_macs());
  const BufferId d_features = head.add_buffer("d_features", head.own_features(), DType::f32, role);
  head.add(
      StepKind::margin_features_backward, Phase::backward, "features_backward",
      {reads(d_normalized), reads(buffers.normalized), reads(buffers.inverse_norms), writes(d_features)});
  return d_features;
}

}  // namespace plumb
