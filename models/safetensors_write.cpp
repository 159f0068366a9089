#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "base/atomic_file.h"
#include "base/error.h"
#include "models/weights.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;
using Bytes = std::span<const std::byte>;

template <typename Element>
Bytes bytes_of(const std::string& name, const std::vector<std::int64_t>& dims,
               const std::vector<Element>& values) {
  std::int64_t elements = 1;
  for (const std::int64_t dim : dims) elements *= dim;
  if (elements != static_cast<std::int64_t>(values.size())) {
    throw Error(ExitCode::internal, "tensor {} has {} values where its shape wants {}", shown_name(name),
                values.size(), elements);
  }
  return std::as_bytes(std::span(values));
}

// Header length, and JSON padded so that the data starts at a multiple of 8 bytes.
std::string framed(const nlohmann::ordered_json& header) {
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t bytes = text.size();
  std::string frame(sizeof(bytes), '\0');
  std::memcpy(frame.data(), &bytes, sizeof(bytes));
  return frame + text;
}

}  // namespace

void write_safetensors(const fs::path& path, const TensorFile& file) {
  refuse_existing(path);
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  std::vector<Bytes> data;
  std::size_t end = 0;
  const auto add = [&](const std::string& name, const char* dtype, const std::vector<std::int64_t>& dims,
                       Bytes bytes) {
    header[name] = {{"dtype", dtype}, {"shape", dims}, {"data_offsets", {end, end + bytes.size()}}};
    end += bytes.size();
    data.push_back(bytes);
  };
  // Writing the wider type first keeps every tensor aligned.
  for (const auto& [name, tensor] : file.integers) {
    add(name, "I64", tensor.first, bytes_of(name, tensor.first, tensor.second));
  }
  for (const auto& [name, tensor] : file.floats) {
    add(name, "F32", tensor.dims, bytes_of(name, tensor.dims, tensor.values));
  }

  PartialFile out(path);
  const std::string frame = framed(header);
  out.write(std::as_bytes(std::span(frame)));
  for (const Bytes bytes : data) out.write(bytes);
  out.publish();
}

}  // namespace plumb
