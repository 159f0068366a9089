#include "kernels/cpu/winograd/vectors.h"
#include "kernels/program/winograd_plan.h"

#define PLUMB_VECTORS __attribute__((target("avx512f")))

namespace plumb::cpu {
namespace winograd_avx512 {
namespace {

constexpr WinogradBlocking kWinograd = winograd_blocking(16);
#include "kernels/cpu/winograd/vectors.inc"

}  // namespace
}  // namespace winograd_avx512

const WinogradVectors kWinogradAvx512 = winograd_avx512::kVectors;

}  // namespace plumb::cpu

#undef PLUMB_VECTORS
