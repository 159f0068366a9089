#include "comm/communicator.h"

#include <stdexcept>

#include "base/error.h"

namespace plumb {
namespace {

bool can_carry(Collective::Kind kind, DType dtype) {
  switch (kind) {
    case Collective::Kind::allgather:
      return true;
    case Collective::Kind::allreduce_max:
      return dtype == DType::f32;
    case Collective::Kind::allreduce_sum:
    case Collective::Kind::reduce_scatter_sum:
      return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
  }
  return false;
}

}  // namespace

void require_sound(const Collective& collective, int world_size) {
  if (!can_carry(collective.kind, collective.dtype)) {
    const bool of_maxima = collective.kind == Collective::Kind::allreduce_max;
    throw Error(ExitCode::internal, "no communicator can {} in {}; use {}",
                of_maxima ? "take a maximum" : "sum gradients", name_of(collective.dtype),
                of_maxima ? "f32" : "--reduce-dtype fp32 or fp16");
  }
  if (has_parts(collective.kind) && collective.elements % static_cast<std::size_t>(world_size) != 0)
    throw std::logic_error(fmt::format("{} of {} elements can't be shared out to {} ranks",
                                       name_of(collective.kind), collective.elements, world_size));
}

}  // namespace plumb
