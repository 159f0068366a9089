#include "kernels/cpu/winograd/vectors.h"
#include "kernels/program/winograd_plan.h"

#define PLUMB_VECTORS __attribute__((target("avx2,fma")))

namespace plumb::cpu {
namespace winograd_avx2 {
namespace {

constexpr WinogradBlocking kWinograd = winograd_blocking(8);
#include "kernels/cpu/winograd/vectors.inc"

}  // namespace
}  // namespace winograd_avx2

const WinogradVectors kWinogradAvx2 = winograd_avx2::kVectors;

}  // namespace plumb::cpu

#undef PLUMB_VECTORS
