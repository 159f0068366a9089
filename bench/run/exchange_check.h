// Integers through a step's collectives, before the first iteration: a sum that is wrong on all ranks alike
// leaves replicas identical, and no check after the run finds it.
#pragma once

#include <cstddef>

#include "bench/run/device_memory.h"
#include "bench/run/stages.h"

namespace plumb {

// Carries every collective of the Program that differs in kind, dtype or size out once, the smallest first,
// and checks every element. Messages of over 2 MiB that would take over 5 s each, by the speed of the one
// before, are left out: all together send no more than a step, which takes minutes on the slowest networks.
// Every rank calls it, it leaves zeros in the messages' buffers. Returns the
// bytes of the largest message that was checked, if a larger one was left out; else 0. Throws
// Error(verification_failed), on all ranks, that names rank, collective, dtype and element.
std::size_t check_exchange(BoundStep& step, const MessageDamage& damage = {});

}  // namespace plumb
