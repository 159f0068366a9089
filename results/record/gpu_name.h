// Reads a GPU's name, as the driver reports it ("NVIDIA A100-SXM4-80GB", "Tesla T4") or a table prints it
// ("A100-SXM4-80GB", "A100 80GB").
#pragma once

#include <string>

namespace plumb {

// By architecture; `unknown` has CPUs, other makers' devices and GPUs before Volta.
enum class GpuGeneration { unknown, volta, turing, ampere, ada, hopper, blackwell };
GpuGeneration gpu_generation(const std::string& name);
std::string generation_name(GpuGeneration generation);  // "Hopper"; "" for unknown

// The same name, but for its case and the maker in front.
bool is_same_device(const std::string& a, const std::string& b);

// How far `other` is from `own`: 0 the same name, 1 the same product with other memory or another slot
// (A100-PCIE-40GB and A100-SXM4-80GB), 2 the same generation, 3 one of the same time (Volta and Turing, Ada
// and Hopper) or of the time before or after, 4 of the one behind that, and so on; farthest is a device
// without a generation. If `own` itself has none, everything else is 1 away.
int gpu_distance(const std::string& own, const std::string& other);

// `wanted` is part of the name, whatever their case, or of the generation's. It begins with a word and
// doesn't end inside a number: "h200" is in "NVIDIA H200" but not in "GH200", "a10" in "A10G" but not in
// "A100".
bool names_gpu(const std::string& wanted, const std::string& name);

}  // namespace plumb
