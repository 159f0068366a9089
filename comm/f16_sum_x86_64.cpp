// Baseline x86-64 has no half-precision conversions and calls a function per element; F16C converts 8 at a
// time (measured: 32 vs 2 ns per element). Explicit dispatch at run time: ifuncs (target_clones) crash under
// ThreadSanitizer.
#include "comm/half_sum.h"

namespace plumb {
namespace {

[[gnu::always_inline]] inline void add(const _Float16* from, _Float16* into, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    into[i] = static_cast<_Float16>(static_cast<float>(from[i]) + static_cast<float>(into[i]));
}

[[gnu::target("avx2,f16c")]] void add_with_f16c(const _Float16* from, _Float16* into, std::size_t count) {
  add(from, into, count);
}

}  // namespace

void add_f16(const _Float16* from, _Float16* into, std::size_t count) {
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c"))
    return add_with_f16c(from, into, count);
  add(from, into, count);
}

}  // namespace plumb
