#include "comm/communicator.h"

#include <stdexcept>

#include "base/error.h"

namespace plumb {

void require_sound(const Collective& collective, int world_size) {
  using enum DType;
  const bool takes_maximum = collective.kind == Collective::Kind::allreduce_max;
  const bool is_half = collective.dtype == f16 || collective.dtype == bf16;
  const bool only_moves =
      collective.kind == Collective::Kind::allgather || collective.kind == Collective::Kind::broadcast;
  if (!only_moves && collective.dtype != f32 && (takes_maximum || !is_half))
    throw Error(ExitCode::internal, "no communicator can {} in {}; use {}",
                takes_maximum ? "take a maximum" : "sum gradients", name_of(collective.dtype),
                takes_maximum ? "f32" : "--reduce-dtype fp32 or fp16");
  if (has_parts(collective.kind) && collective.elements % static_cast<std::size_t>(world_size) != 0)
    throw std::logic_error(fmt::format("{} of {} elements can't be shared out to {} ranks",
                                       name_of(collective.kind), collective.elements, world_size));
}

}  // namespace plumb
