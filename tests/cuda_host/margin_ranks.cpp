#include "tests/cuda_host/margin_ranks.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <span>

#include "kernels/cuda/storage.h"
#include "kernels/margin_lowering.h"
#include "models/margin_head.h"
#include "tests/cuda_host/bound_instruction.h"

namespace plumb::cuda {
namespace {

Graph graph_of(const HeadCase& by, int rank) {
  const ClassShard shard = class_shard(by.classes, rank, by.ranks);
  Graph graph;
  graph.values = {{"features", {.n = by.images, .c = by.embedding}}};
  graph.parameters = {{.name = "head.weight",
                       .dims = {shard.count, by.embedding},
                       .shard = RowShard{.first_row = shard.first, .all_rows = by.classes}}};
  graph.ops = {MarginLoss{.name = "head",
                          .classes = by.classes,
                          .first_class = shard.first,
                          .margins = by.margins,
                          .scale = by.scale,
                          .gradient = by.gradient,
                          .head = by.head,
                          .rank = rank,
                          .world_size = by.ranks,
                          .sample_rate = by.sample_rate,
                          .seed = 5}};
  return graph;
}

class Rank {
 public:
  Rank(const HeadCase& by, const HeadInput& input, int rank)
      : by_(by), rank_(rank), shard_(class_shard(by.classes, rank, by.ranks)), graph_(graph_of(by, rank)) {
    lower();
    bind();
    const std::int64_t first = rank * by.images * by.embedding;
    fill(features_, DType::f32, input.features, first, by.images * by.embedding);
    const std::vector<double> labels(input.labels.begin(), input.labels.end());
    fill(labels_, DType::i32, labels, rank * by.images, by.images);
    const std::int64_t first_row = shard_.first * by.embedding, elements = shard_.count * by.embedding;
    fill(master_, DType::f32, input.centres, first_row, elements);
    if (copy_ != master_) fill(copy_, by.rows_dtype, input.centres, first_row, elements);
    *reinterpret_cast<State*>(at(state_)) = {
        .step = {.iteration = by.iteration, .loss_scale = by.loss_scale}};
  }

  const Program& program() const { return program_; }
  void compute(InstructionId instruction) {
    if (program_.instructions[instruction].run) program_.instructions[instruction].run();
  }
  template <typename T = std::byte>
  T* at(BufferId buffer) {
    return reinterpret_cast<T*>(arena_->data() + plan_.offsets[buffer]);
  }

  // Adds this rank's part.
  void tell(HeadAnswer& answer) {
    const IterationRecord& record = records_[by_.iteration % kMetricsKept];
    answer.loss += record.loss / by_.ranks;
    answer.top1 += record.top1;
    for (double value : values(d_features_, by_.images * by_.embedding))
      answer.feature_gradient.push_back(value / by_.loss_scale / by_.ranks);
    const std::int64_t rows = buffers_.samples ? *at<std::int32_t>(*buffers_.sample_count) : shard_.count;
    const std::vector<double> d_rows = values(buffers_.d_rows, rows * by_.embedding);
    for (std::int64_t k = 0; k < rows; ++k) {
      const std::int64_t row = shard_.first + (buffers_.samples ? at<std::int32_t>(*buffers_.samples)[k] : k);
      answer.sample.push_back(row);
      for (std::int64_t i = 0; i < by_.embedding; ++i)
        answer.centre_gradient[static_cast<std::size_t>(row * by_.embedding + i)] =
            d_rows[static_cast<std::size_t>(k * by_.embedding + i)] / by_.loss_scale / by_.ranks;
    }
  }

 private:
  void lower() {
    Lowering lowering = start_lowering(
        graph_, {.weight_gradients = by_.rows_dtype, .image_channels = by_.embedding}, sizeof(State));
    const Tensors& tensors = lowering.tensors();
    features_ = tensors.values[0], labels_ = tensors.labels, state_ = tensors.state;
    copy_ = master_ = tensors.parameters[0].master;
    if (by_.rows_dtype != DType::f32)
      copy_ = add_buffer(lowering.program, {.name = "head.weight.copy",
                                            .dtype = by_.rows_dtype,
                                            .dims = graph_.parameters[0].dims,
                                            .persistent = true});
    buffers_ = lower_margin_forward(lowering, 0, features_, copy_, by_.rows_dtype);
    d_features_ = lower_margin_backward(lowering, 0, buffers_);
    program_ = std::move(lowering.program);
    keep(d_features_), keep(buffers_.d_rows);
    if (buffers_.samples) keep(*buffers_.samples), keep(*buffers_.sample_count);
  }
  void keep(BufferId buffer) { program_.buffers[buffer].persistent = true; }

  void bind() {
    NoConvolutions convolutions;
    const std::unique_ptr<GemmEngine> products = make_gemm_engine();
    const UpdateRule rule;
    Context context{{convolutions, *products, nullptr, records_.data()}, graph_, rule, program_};
    set_margin_workspaces(program_, 0, by_.images * by_.ranks, program_.buffers[buffers_.rows]);
    std::vector<Binder> binders;
    for (Instruction& instruction : program_.instructions)
      binders.push_back(prepare_instruction(context, instruction));
    plan_ = plan_memory(program_, 16);
    arena_.emplace(DType::u8, plan_.arena_bytes);
    for (InstructionId instruction = 0; instruction < program_.instructions.size(); ++instruction)
      if (binders[instruction])
        program_.instructions[instruction].run = binders[instruction](Arena(arena_->data(), plan_));
  }

  void fill(BufferId buffer, DType dtype, const std::vector<double>& all, std::int64_t first,
            std::int64_t count) {
    GuardedTensor values(dtype, std::vector<double>(all.begin() + first, all.begin() + first + count));
    const std::vector<std::byte> bytes = values.bytes();
    std::copy(bytes.begin(), bytes.end(), at(buffer));
  }
  std::vector<double> values(BufferId buffer, std::int64_t count) {
    GuardedTensor held(program_.buffers[buffer].dtype, static_cast<std::size_t>(count));
    std::copy_n(at(buffer), held.bytes().size(), held.data());
    return held.values();
  }

  HeadCase by_;
  int rank_;
  ClassShard shard_;
  Graph graph_;
  Program program_;
  MarginBuffers buffers_;
  BufferId features_ = 0, labels_ = 0, state_ = 0, master_ = 0, copy_ = 0, d_features_ = 0;
  std::vector<IterationRecord> records_ = std::vector<IterationRecord>(kMetricsKept);
  MemoryPlan plan_;
  std::optional<GuardedTensor> arena_;
};

using Ranks = std::vector<std::unique_ptr<Rank>>;

// Writes combine(a, b) over all ranks' elements to elements [first, first + count) of rank `into`.
template <typename Combine>
void reduce(Ranks& ranks, BufferId buffer, std::size_t first, std::size_t count, std::span<float> into,
            const Combine& combine) {
  for (std::size_t i = 0; i < count; ++i) {
    float value = ranks.front()->at<float>(buffer)[first + i];
    for (std::size_t other = 1; other < ranks.size(); ++other)
      value = combine(value, ranks[other]->at<float>(buffer)[first + i]);
    into[i] = value;
  }
}

void allgather(Ranks& ranks, BufferId buffer, std::size_t part_bytes) {
  for (std::size_t from = 0; from < ranks.size(); ++from)
    for (std::size_t to = 0; to < ranks.size(); ++to)
      if (from != to)
        std::copy_n(ranks[from]->at(buffer) + from * part_bytes, part_bytes,
                    ranks[to]->at(buffer) + from * part_bytes);
}

void meet(Ranks& ranks, const Collective& collective) {
  const std::size_t part = collective.elements / ranks.size();
  if (collective.kind == Collective::Kind::allgather)
    return allgather(ranks, collective.buffer, part * bytes_of(collective.dtype));
  std::vector<float> all(collective.elements);
  const auto sum = [](float a, float b) { return a + b; };
  const auto largest = [](float a, float b) { return std::max(a, b); };
  if (collective.kind == Collective::Kind::allreduce_max)
    reduce(ranks, collective.buffer, 0, all.size(), all, largest);
  else
    reduce(ranks, collective.buffer, 0, all.size(), all, sum);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    auto* held = ranks[rank]->at<float>(collective.buffer);
    if (collective.kind != Collective::Kind::reduce_scatter_sum) {
      std::copy(all.begin(), all.end(), held);
      continue;
    }
    std::fill_n(held, all.size(), std::numeric_limits<float>::quiet_NaN());
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(rank * part);
    std::copy_n(begin, part, held + rank * part);
  }
}

}  // namespace

HeadAnswer run_head(const HeadCase& by, const HeadInput& input) {
  Ranks ranks;
  for (int rank = 0; rank < by.ranks; ++rank) ranks.push_back(std::make_unique<Rank>(by, input, rank));
  const std::vector<Instruction>& instructions = ranks.front()->program().instructions;
  for (InstructionId instruction = 0; instruction < instructions.size(); ++instruction) {
    if (const auto* collective = instructions[instruction].as<Collective>())
      meet(ranks, *collective);
    else
      for (const auto& rank : ranks) rank->compute(instruction);
  }
  HeadAnswer answer;
  answer.centre_gradient.assign(input.centres.size(), 0);
  for (const auto& rank : ranks) rank->tell(answer);
  return answer;
}

}  // namespace plumb::cuda
