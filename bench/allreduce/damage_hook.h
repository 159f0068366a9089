// Damage to results of bench_allreduce, for tests.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

namespace plumb {

// Changes what a rank reads of a result, before it is checked.
using DamageHook = std::function<void(std::span<std::byte> result)>;

}  // namespace plumb
