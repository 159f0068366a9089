// Tensors by name: safetensors files in and out, and the values that a fresh Graph starts from.
// Format: https://github.com/huggingface/safetensors (8-byte little-endian header length, JSON header, data).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "models/graph.h"

namespace plumb {

// A tensor as a weights file holds it: fp32 values in row-major (C) order of dims.
struct Tensor {
  std::vector<std::int64_t> dims;
  std::vector<float> values;
};
using TensorMap = std::map<std::string, Tensor>;

// int64 tensors (labels, num_batches_tracked) are kept apart from the fp32 ones.
struct TensorFile {
  TensorMap floats;
  std::map<std::string, std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>>
      integers;  // dims, values
};

// Throws Error(bad_data) that names the file and what is wrong: missing, truncated, junk header, a dtype
// other than F32 or I64, dims that don't match the byte count, offsets outside the file or that overlap or
// leave gaps. Refused too, so that no junk can exhaust memory: a header over 4 MiB, a file over 8 GiB.
// `option`: the option that names the file ("--weights"), for the sentence; may be empty.
TensorFile read_safetensors(const std::filesystem::path& path, const std::string& option = "");
// Throws Error(cannot_create) if the file exists or can't be created, Error(io_error) if writing fails. The
// file appears under its name only when it is complete, and never replaces another.
void write_safetensors(const std::filesystem::path& path, const TensorFile& file);

// Parameters and running statistics of `graph` by name, as a fresh run starts: every tensor from its own
// counter-based stream keyed by (seed, name), so that the values depend on nothing else. A sharded one has
// this rank's rows, with the values that they have in the whole tensor.
TensorMap initial_tensors(const Graph& graph, std::uint64_t seed);

// The tensors of `file` that `graph` wants; a sharded one, which the file holds whole, with this rank's rows.
// Throws Error(bad_data) naming the first tensor that is missing, of another shape (wanted, found) or unknown
// to the graph; "*.num_batches_tracked" is accepted and ignored.
TensorMap tensors_for(const Graph& graph, const TensorFile& file, const std::filesystem::path& path);

// A tensor's name for messages: quoted, shortened, control characters replaced by '?'.
std::string shown_name(const std::string& name);

}  // namespace plumb
