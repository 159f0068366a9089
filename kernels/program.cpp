#include "kernels/program.h"

#include <stdexcept>
#include <string_view>

#include "base/hash.h"

namespace plumb {
namespace {

// Least significant byte first, so that machines of either byte order agree.
std::uint64_t hash_number(std::uint64_t hash, std::uint64_t number) {
  for (int i = 0; i < 8; ++i, number >>= 8) {
    const char byte = static_cast<char>(number & 0xff);
    hash = fnv1a({&byte, 1}, hash);
  }
  return hash;
}

// The collective's own buffer, and the buckets that are cast into it.
std::vector<BufferId> reduced_roots(const Program& program, BufferId reduced) {
  std::vector<BufferId> roots{reduced};
  for (const Step& step : program.steps) {
    if (step.kind == StepKind::cast && step.uses.at(1).buffer == reduced)
      roots.push_back(step.uses[0].buffer);
  }
  return roots;
}

[[noreturn]] void unknown(const char* type) {
  throw std::logic_error(std::string("no such ") + type);
}

}  // namespace

std::size_t bytes_of(DType dtype) {
  switch (dtype) {
    case DType::u8:
      return 1;
    case DType::f16:
    case DType::bf16:
      return 2;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::i64:
      return 8;
  }
  unknown("DType");
}

std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "f32";
    case DType::f16:
      return "f16";
    case DType::bf16:
      return "bf16";
    case DType::i32:
      return "i32";
    case DType::i64:
      return "i64";
    case DType::u8:
      return "u8";
  }
  unknown("DType");
}

std::string_view name_of(Role role) {
  switch (role) {
    case Role::input:
      return "input";
    case Role::parameter:
      return "parameter";
    case Role::gradient:
      return "gradient";
    case Role::optimizer:
      return "optimizer";
    case Role::statistic:
      return "statistic";
    case Role::activation:
      return "activation";
    case Role::activation_gradient:
      return "activation_gradient";
    case Role::state:
      return "state";
    case Role::overflow:
      return "overflow";
  }
  unknown("Role");
}

std::string_view name_of(Lane lane) {
  switch (lane) {
    case Lane::input:
      return "input";
    case Lane::compute:
      return "compute";
    case Lane::communication:
      return "communication";
  }
  unknown("Lane");
}

std::string_view name_of(Phase phase) {
  switch (phase) {
    case Phase::input:
      return "input";
    case Phase::forward:
      return "forward";
    case Phase::backward:
      return "backward";
    case Phase::reduce:
      return "reduce";
    case Phase::update:
      return "update";
  }
  unknown("Phase");
}

std::string_view name_of(StepKind kind) {
  switch (kind) {
    case StepKind::load_batch:
      return "load_batch";
    case StepKind::pack_batch:
      return "pack_batch";
    case StepKind::conv_forward:
      return "conv_forward";
    case StepKind::conv_backward_data:
      return "conv_backward_data";
    case StepKind::conv_backward_weights:
      return "conv_backward_weights";
    case StepKind::conv_norm_backward_data:
      return "conv_norm_backward_data";
    case StepKind::norm_forward:
      return "norm_forward";
    case StepKind::norm_statistics:
      return "norm_statistics";
    case StepKind::norm_finalize:
      return "norm_finalize";
    case StepKind::norm_apply:
      return "norm_apply";
    case StepKind::norm_backward_apply:
      return "norm_backward_apply";
    case StepKind::norm_backward:
      return "norm_backward";
    case StepKind::pool_forward:
      return "pool_forward";
    case StepKind::pool_backward:
      return "pool_backward";
    case StepKind::dense_forward:
      return "dense_forward";
    case StepKind::dense_backward_data:
      return "dense_backward_data";
    case StepKind::dense_backward_weights:
      return "dense_backward_weights";
    case StepKind::softmax_loss:
      return "softmax_loss";
    case StepKind::accumulate:
      return "accumulate";
    case StepKind::cast:
      return "cast";
    case StepKind::reduce:
      return "reduce";
    case StepKind::find_overflow:
      return "find_overflow";
    case StepKind::update:
      return "update";
    case StepKind::dropout_forward:
      return "dropout_forward";
    case StepKind::dropout_backward:
      return "dropout_backward";
    case StepKind::margin_features:
      return "margin_features";
    case StepKind::margin_sample:
      return "margin_sample";
    case StepKind::margin_gather:
      return "margin_gather";
    case StepKind::margin_class_norms:
      return "margin_class_norms";
    case StepKind::margin_products:
      return "margin_products";
    case StepKind::margin_statistics:
      return "margin_statistics";
    case StepKind::margin_rescale:
      return "margin_rescale";
    case StepKind::margin_gradient:
      return "margin_gradient";
    case StepKind::margin_feature_products:
      return "margin_feature_products";
    case StepKind::margin_weight_gradient:
      return "margin_weight_gradient";
    case StepKind::margin_features_backward:
      return "margin_features_backward";
    case StepKind::update_rows:
      return "update_rows";
    case StepKind::advance_state:
      return "advance_state";
  }
  unknown("StepKind");
}

std::string_view name_of(Collective::Kind kind) {
  switch (kind) {
    case Collective::Kind::allreduce_sum:
      return "allreduce_sum";
    case Collective::Kind::allreduce_max:
      return "allreduce_max";
    case Collective::Kind::allgather:
      return "allgather";
    case Collective::Kind::reduce_scatter_sum:
      return "reduce_scatter_sum";
  }
  unknown("Collective::Kind");
}

bool has_parts(Collective::Kind kind) {
  return kind == Collective::Kind::allgather || kind == Collective::Kind::reduce_scatter_sum;
}

BufferId root_of(const Program& program, BufferId id) {
  const Buffer& buffer = program.buffers.at(id);
  return buffer.view ? buffer.view->root : id;
}

std::uint64_t reduction_hash(const Program& program) {
  std::vector<std::vector<BufferId>> views(program.buffers.size());
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    if (program.buffers[id].view) views[root_of(program, id)].push_back(id);
  }
  std::uint64_t hash = kFnvOffset;
  for (const Step& step : program.steps) {
    const Collective* collective = std::get_if<Collective>(&step.action);
    if (!collective) continue;
    hash = fnv1a(name_of(collective->kind), hash);
    hash = fnv1a(name_of(collective->dtype), hash);
    hash = hash_number(hash, collective->elements);
    const Buffer& root = program.buffers.at(collective->buffer);
    hash = hash_number(fnv1a(root.name, hash), root.bytes);
    hash = fnv1a(root.layout, hash);
    if (has_parts(collective->kind)) continue;
    for (BufferId source : reduced_roots(program, collective->buffer)) {
      for (BufferId id : views[source]) {
        const Buffer& part = program.buffers[id];
        hash = hash_number(fnv1a(part.name, hash), part.view->offset);
        hash = fnv1a(part.layout, hash);
        hash = hash_number(hash, part.bytes);
      }
    }
  }
  return hash;
}

}  // namespace plumb
