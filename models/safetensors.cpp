// Reads and writes weights files; the reader takes files that anybody may have written.
#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/output.h"
#include "models/weights.h"

namespace plumb {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors data is little-endian");

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Bytes = std::span<const std::byte>;

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeaderBytes = std::uint64_t{4} << 20;
constexpr std::uint64_t kMaxFileBytes = std::uint64_t{8} << 30;
constexpr std::size_t kMaxDims = 8;
constexpr const char* kMetadata = "__metadata__";

// A tensor as declared in the header; offsets in bytes from the end of the header.
struct Entry {
  std::string name;
  bool is_float = true;
  std::vector<std::int64_t> dims;
  std::uint64_t begin = 0, end = 0;
};

template <typename... Values>
[[noreturn]] void refuse(const fs::path& path, fmt::format_string<Values...> what, Values&&... values) {
  throw Error(ExitCode::bad_data, "{}: {}; use a complete safetensors file of F32 and I64 tensors",
              path.string(), fmt::format(what, std::forward<Values>(values)...));
}

template <typename... Values>
[[noreturn]] void refuse_tensor(const fs::path& path, const std::string& name,
                                fmt::format_string<Values...> what, Values&&... values) {
  refuse(path, "tensor {}: {}", shown_name(name), fmt::format(what, std::forward<Values>(values)...));
}

std::vector<std::uint64_t> whole_numbers(const fs::path& path, const std::string& name, const Json& entry,
                                         const char* key, std::size_t most) {
  const auto found = entry.find(key);
  if (found == entry.end() || !found->is_array() || found->size() > most)
    refuse_tensor(path, name, "expected a valid \"{}\" in the header", key);
  if (!std::all_of(found->begin(), found->end(), std::mem_fn(&Json::is_number_unsigned)))
    refuse_tensor(path, name, "expected whole numbers in \"{}\"", key);
  return found->get<std::vector<std::uint64_t>>();
}

// A tensor's size in bytes; nullopt on 64-bit overflow.
std::optional<std::uint64_t> bytes_of_dims(const std::vector<std::uint64_t>& dims, std::size_t bytes_each) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  std::uint64_t bytes = bytes_each;
  for (std::uint64_t dim : dims) {
    if (dim > kMost || (dim != 0 && bytes > kMost / dim)) return std::nullopt;
    bytes *= dim;
  }
  return bytes;
}

Entry parse_entry(const fs::path& path, const std::string& name, const Json& json) {
  if (!json.is_object()) refuse_tensor(path, name, "expected an object");
  const auto dtype = json.find("dtype");
  if (dtype == json.end() || !dtype->is_string()) refuse_tensor(path, name, "expected a dtype");
  const auto& dtype_name = dtype->get_ref<const std::string&>();
  if (dtype_name != "F32" && dtype_name != "I64")
    refuse_tensor(path, name, "dtype {}: expected \"F32\" (or \"I64\" for labels)", shown_name(dtype_name));
  const bool is_float = dtype_name == "F32";
  const std::vector<std::uint64_t> dims = whole_numbers(path, name, json, "shape", kMaxDims);
  const std::vector<std::uint64_t> offsets = whole_numbers(path, name, json, "data_offsets", 2);
  if (offsets.size() != 2 || offsets[0] > offsets[1])
    refuse_tensor(path, name, "expected data_offsets as [begin, end]");
  const std::uint64_t bytes = offsets[1] - offsets[0];
  if (bytes_of_dims(dims, is_float ? sizeof(float) : sizeof(std::int64_t)) != bytes)
    refuse_tensor(path, name, "its shape does not match its {} bytes", bytes);
  return {name, is_float, {dims.begin(), dims.end()}, offsets[0], offsets[1]};
}

// Entries in data order; together they must cover the `data_bytes` after the header without gap or overlap.
std::vector<Entry> parse_entries(const fs::path& path, const std::string& header_text,
                                 std::uint64_t data_bytes) {
  std::vector<Entry> entries;
  const Json header = Json::parse(header_text, nullptr, false);  // neither recurses nor throws
  if (!header.is_object()) refuse(path, "the header is not a JSON object");
  for (const auto& [name, json] : header.items())
    if (name != kMetadata) entries.push_back(parse_entry(path, name, json));
  std::ranges::sort(entries, {}, [](const Entry& entry) { return std::pair(entry.begin, entry.end); });
  std::uint64_t filled = 0;
  for (const Entry& entry : entries) {
    if (entry.end > data_bytes)
      refuse_tensor(path, entry.name,
                    "it ends at byte {} of {} bytes of data, so the file is truncated or its header wrong",
                    entry.end, data_bytes);
    if (entry.begin != filled)
      refuse_tensor(path, entry.name, "it {} before it",
                    entry.begin < filled ? "overlaps the one" : "leaves a gap");
    filled = entry.end;
  }
  if (filled != data_bytes)
    refuse(path, "{} bytes after the last tensor belong to no tensor", data_bytes - filled);
  return entries;
}

template <typename Element>
std::vector<Element> read_values(const fs::path& path, std::ifstream& in, const Entry& entry) {
  std::vector<Element> values((entry.end - entry.begin) / sizeof(Element));
  in.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(entry.end - entry.begin));
  if (!in) refuse(path, "reading stopped inside tensor {}", shown_name(entry.name));
  return values;
}

std::uint64_t checked_file_bytes(const fs::path& path) {
  std::error_code code;
  if (!fs::is_regular_file(path, code)) {
    throw Error(ExitCode::bad_data, "{} is not a file; pass the path of a safetensors file", path.string());
  }
  const std::uint64_t bytes = fs::file_size(path, code);
  if (code) refuse(path, "cannot read its size: {}", code.message());
  if (bytes < kLengthBytes) refuse(path, "expected a header, and the file has {} bytes", bytes);
  if (bytes > kMaxFileBytes)
    refuse(path, "the file has {} MiB, and at most {} are read", bytes >> 20, kMaxFileBytes >> 20);
  return bytes;
}

TensorFile read_file(const fs::path& path) {
  const std::uint64_t file_bytes = checked_file_bytes(path);
  std::ifstream in(path, std::ios::binary);
  std::uint64_t header_bytes = 0;
  in.read(reinterpret_cast<char*>(&header_bytes), kLengthBytes);
  if (!in) refuse(path, "cannot read it");
  if (header_bytes > kMaxHeaderBytes || header_bytes > file_bytes - kLengthBytes)
    refuse(path, "the header claims {} bytes of a file of {} (at most {} are accepted)", header_bytes,
           file_bytes, kMaxHeaderBytes);
  std::string header(header_bytes, '\0');
  in.read(header.data(), static_cast<std::streamsize>(header_bytes));
  if (!in) refuse(path, "reading stopped inside the header");

  TensorFile file;
  for (const Entry& entry : parse_entries(path, header, file_bytes - kLengthBytes - header_bytes)) {
    if (entry.is_float) {
      file.floats[entry.name] = {entry.dims, read_values<float>(path, in, entry)};
    } else {
      file.integers[entry.name] = {entry.dims, read_values<std::int64_t>(path, in, entry)};
    }
  }
  return file;
}

template <typename Value>
Bytes bytes_of(const std::string& name, const TensorOf<Value>& tensor) {
  std::int64_t elements = 1;
  for (const std::int64_t dim : tensor.dims) elements *= dim;
  if (elements != std::ssize(tensor.values))
    throw Error(ExitCode::internal, "tensor {} has {} values where its shape wants {}", shown_name(name),
                tensor.values.size(), elements);
  return std::as_bytes(std::span(tensor.values));
}

// Length, and JSON padded with spaces so that the data after it starts at a multiple of 8 bytes.
std::string framed(const nlohmann::ordered_json& header) {
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t bytes = text.size();
  std::string frame(sizeof(bytes), '\0');
  std::memcpy(frame.data(), &bytes, sizeof(bytes));
  return frame + text;
}

}  // namespace

std::string shown_name(const std::string& name) {
  constexpr std::size_t kMostShown = 80;
  std::string shown = name.size() <= kMostShown ? name : name.substr(0, kMostShown) + "...";
  std::ranges::replace_if(
      shown, [](char c) { return c < ' ' || c > '~'; }, '?');
  return fmt::format("\"{}\"", shown);
}

TensorFile read_safetensors(const fs::path& path, const std::string& option) {
  if (option.empty()) return read_file(path);
  try {
    return read_file(path);
  } catch (const Error& error) {
    throw Error(error.code(), "{} {}", option, error.what());
  }
}

void write_safetensors(const fs::path& path, const TensorFile& file, const std::string& option) {
  OutputFile out({.option = option, .path = path});
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  std::vector<Bytes> data;
  std::size_t end = 0;
  const auto add = [&](const char* dtype, const auto& tensors) {
    for (const auto& [name, tensor] : tensors) {
      const Bytes bytes = data.emplace_back(bytes_of(name, tensor));
      header[name] = {{"dtype", dtype}, {"shape", tensor.dims}, {"data_offsets", {end, end + bytes.size()}}};
      end += bytes.size();
    }
  };
  add("I64", file.integers);  // the wider type first keeps every tensor aligned
  add("F32", file.floats);

  out.write(framed(header));
  for (const Bytes bytes : data) out.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  out.publish();
}

}  // namespace plumb
