// Tensors by name: safetensors input and output, and initial values of a Graph.
// Format: https://github.com/huggingface/safetensors (8-byte little-endian header length, JSON header, data).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/graph.h"

namespace plumb {

// A tensor in a weights file; values in row-major (C) order of dims.
template <typename Value>
struct TensorOf {
  std::vector<std::int64_t> dims;
  std::vector<Value> values;
  bool operator==(const TensorOf&) const = default;
};
using Tensor = TensorOf<float>;
using TensorMap = std::map<std::string, Tensor>;

struct TensorFile {
  TensorMap floats;
  std::map<std::string, TensorOf<std::int64_t>> integers;  // labels, num_batches_tracked
};

// Throws Error(bad_data) naming the file and the defect: missing, truncated, junk header, a dtype other than
// F32 or I64, dims that don't match the byte count, offsets that are outside the file, overlap or leave gaps.
// To bound memory, also rejects a header over 4 MiB and a file over 8 GiB. `option`: the option that names
// the file ("--weights"), for the message; may be empty.
TensorFile read_safetensors(const std::filesystem::path& path, const std::string& option = "");
// Throws Error(cannot_create) if the file exists or can't be created, Error(io_error) if writing fails. The
// file gets its name only when complete, and never replaces another. `option`: as above.
void write_safetensors(const std::filesystem::path& path, const TensorFile& file,
                       const std::string& option = "");

// The class centers of a graph that ends with a margin loss.
std::optional<ParameterId> class_centres(const Graph& graph);

// Initial values of a parameter: from its own counter-based stream keyed by (seed, name), so they depend on
// nothing else and are the same bits on every machine. A shard has this rank's rows, with the values they
// have in the whole tensor. Large ones are drawn by as many threads as there are CPUs.
std::vector<float> initial_values(const Parameter& parameter, std::uint64_t seed);
// The same of the rows from this rank's `first_row` on.
void draw_rows(const Parameter& parameter, std::uint64_t seed, std::int64_t first_row, std::span<float> rows);
std::vector<float> initial_values(const Statistic& statistic);

// fill(part of values, its first element) for all parts, in parallel where that is worth it.
void fill_together(std::span<float> values,
                   const std::function<void(std::span<float> part, std::size_t first)>& fill);

// The tensors of `file` that `graph` needs; the file holds sharded tensors whole, the result this rank's
// rows. Throws Error(bad_data) naming the first tensor that is missing, has another shape (wanted, found) or
// is unknown to the graph, or holds NaN or infinity; "*.num_batches_tracked" is accepted and ignored.
TensorMap tensors_for(const Graph& graph, const TensorFile& file, const std::filesystem::path& path);

// A tensor's name for messages: quoted, shortened, control characters replaced by '?'.
std::string shown_name(const std::string& name);

}  // namespace plumb
