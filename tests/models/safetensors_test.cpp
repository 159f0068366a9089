#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "models/weights.h"
#include "tests/bench/expect_error.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

class Safetensors : public ::testing::Test {
 protected:
  fs::path path() const { return folder_ / "file.safetensors"; }

  void write_bytes(const std::string& bytes) const {
    std::ofstream(path(), std::ios::binary | std::ios::trunc).write(bytes.data(), std::ssize(bytes));
  }
  std::string file_bytes() const {
    std::ifstream in(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write_file(const std::string& header, std::size_t data_bytes) const {
    write_bytes(framed(header) + std::string(data_bytes, '\0'));
  }
  static std::string framed(const std::string& header) {
    const std::uint64_t length = header.size();
    std::string bytes(8, '\0');
    std::memcpy(bytes.data(), &length, 8);
    return bytes + header;
  }

  // Why reading the file is rejected; empty if accepted.
  std::string refusal() const {
    try {
      read_safetensors(path());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::bad_data);
      const std::string message = error.what();
      EXPECT_NE(message.find("file.safetensors"), std::string::npos) << message;
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
      return message;
    }
    return "";
  }
  void expect_refused(const std::string& header, std::size_t data_bytes, const std::string& reason) const {
    write_file(header, data_bytes);
    const std::string message = refusal();
    EXPECT_NE(message.find(reason), std::string::npos) << header << " gave: " << message;
  }

  const ScratchFolder folder_;
};

TensorFile sample() {
  TensorFile file;
  file.floats["a"] = {{2, 3}, {1, -2, 3.5F, 0, std::numeric_limits<float>::infinity(), 1e-40F}};
  file.floats["scalar"] = {{}, {42}};
  file.floats["empty"] = {{0, 5}, {}};
  file.integers["labels"] = {{3}, {1, -1, std::numeric_limits<std::int64_t>::max()}};
  return file;
}

TEST_F(Safetensors, ComeBackAsTheyWereWritten) {
  const TensorFile file = sample();
  write_safetensors(path(), file);
  const TensorFile back = read_safetensors(path());
  EXPECT_TRUE(back.floats == file.floats);
  EXPECT_TRUE(back.integers == file.integers);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 1) << "only the file itself is left";
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, file_bytes().data(), 8);
  EXPECT_EQ(header_bytes % 8, 0U) << "data are not aligned";
  fs::remove(path());
  write_safetensors(path(), {});
  EXPECT_TRUE(read_safetensors(path()).floats.empty());
}

TEST_F(Safetensors, MetadataIsAccepted) {
  write_file(R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4);
  EXPECT_EQ(read_safetensors(path()).floats.at("a").values, std::vector<float>{0});
}

TEST_F(Safetensors, NeverReplaceAFile) {
  write_bytes("precious");
  expect_error(ExitCode::cannot_create, {path().string()}, [&] { write_safetensors(path(), sample()); });
  EXPECT_EQ(file_bytes(), "precious");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 1);
}

TEST_F(Safetensors, AMissingFolderIsAnErrorThatNamesTheFile) {
  const fs::path nowhere = folder_ / "none/f.safetensors";
  expect_error(ExitCode::cannot_create, {nowhere.string()}, [&] { write_safetensors(nowhere, sample()); });
}

TEST_F(Safetensors, AMissingFileAndAFolderAreRefused) {
  EXPECT_NE(refusal(), "");
  fs::create_directory(path());
  EXPECT_NE(refusal(), "");
}

TEST_F(Safetensors, TheOptionThatGaveTheFileIsNamedFirst) {
  write_bytes("junk");
  const std::string plain = refusal();
  EXPECT_FALSE(plain.starts_with("--")) << plain;
  expect_error(ExitCode::bad_data, {"--weights " + plain}, [&] { read_safetensors(path(), "--weights"); });
}

TEST_F(Safetensors, AnyTruncationIsRefused) {
  write_safetensors(path(), sample());
  const std::string whole = file_bytes();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    write_bytes(whole.substr(0, length));
    EXPECT_NE(refusal(), "") << length << " of " << whole.size() << " bytes";
  }
}

TEST_F(Safetensors, AHugeHeaderLengthIsRefusedBeforeAnythingIsAllocated) {
  for (const std::uint64_t length : {std::uint64_t{1} << 62, ~std::uint64_t{0}, std::uint64_t{100} << 20}) {
    std::string bytes(64, ' ');
    std::memcpy(bytes.data(), &length, 8);
    write_bytes(bytes);
    EXPECT_NE(refusal().find("claims"), std::string::npos);
  }
}

TEST_F(Safetensors, JunkHeadersAreRefusedWithTheirFault) {
  expect_refused("not json at all", 0, "JSON");
  expect_refused("[]", 0, "object");
  expect_refused("17", 0, "object");
  expect_refused(R"({"a":1})", 0, "object");
  expect_refused(R"({"a":{}})", 0, "dtype");
  expect_refused(R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", 4, "shape");
  expect_refused(R"({"a":{"dtype":"F32","shape":[1]}})", 4, "data_offsets");
  expect_refused(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "whole numbers");
  expect_refused(R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", 4, "whole numbers");
  expect_refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4]}})", 4, "[begin, end]");
  expect_refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4, "[begin, end]");
  expect_refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 5, "belong to no tensor");
  expect_refused(R"({"w":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}})", 4, "\"w\": dtype \"F16\"");
  expect_refused("{\"a\xff\":{}}", 0, "JSON");
  expect_refused(std::string(1 << 20, '['), 0, "JSON");
  expect_refused("{\"a\":{\"b\":" + std::string(100000, '[') + std::string(100000, ']') + "}}", 0, "dtype");
}

TEST_F(Safetensors, OffsetsMustFillTheDataExactly) {
  const auto two = [](const std::string& first, const std::string& second) {
    return R"({"a":{"dtype":"F32","shape":[2],"data_offsets":)" + first +
           R"(},"b":{"dtype":"F32","shape":[2],"data_offsets":)" + second + "}}";
  };
  expect_refused(two("[0,8]", "[4,12]"), 12, "overlaps");
  expect_refused(two("[0,8]", "[0,8]"), 8, "overlaps");
  expect_refused(two("[0,8]", "[12,20]"), 20, "gap");
  expect_refused(two("[0,8]", "[8,16]"), 12, "truncated");
  expect_refused(two("[0,8]", "[18446744073709551600,18446744073709551608]"), 16, "truncated");
}

TEST_F(Safetensors, ShapesMustMatchTheirBytes) {
  expect_refused(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8, "shape");
  expect_refused(R"({"a":{"dtype":"I64","shape":[2],"data_offsets":[0,8]}})", 8, "shape");
  // Products that wrap around to the right number in 64 bits.
  expect_refused(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0, "shape");
  expect_refused(R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8]}})", 8, "shape");
}

TEST_F(Safetensors, NamesFromTheFileCannotDriveTheTerminal) {
  const std::string name = std::string("\\u001b[2J") + std::string(5000, 'x');
  write_file("{\"" + name + "\":{}}", 0);
  const std::string message = refusal();
  EXPECT_EQ(message.find('\x1b'), std::string::npos);
  EXPECT_LT(message.size(), 500U);
}

// Any outcome except a crash or an unbounded allocation is fine; most of these files are rejected.
TEST_F(Safetensors, FlippedBytesNeverCrashTheReader) {
  write_safetensors(path(), sample());
  const std::string whole = file_bytes();
  int refused = 0;
  for (std::uint64_t trial = 0; trial < 2000; ++trial) {
    std::string bytes = whole;
    const PhiloxBlock random = random_block(stream_key(1, "flips"), trial);
    for (int flip = 0; flip < 1 + static_cast<int>(random[3] % 3); ++flip) {
      bytes[random[flip] % bytes.size()] = static_cast<char>(random[3] >> (8 * flip));
    }
    write_bytes(bytes);
    refused += refusal().empty() ? 0 : 1;
  }
  EXPECT_GT(refused, 1000);
}

// With work that grows by the square of the tensors this took 40 s.
TEST_F(Safetensors, AHeaderOfManyTensorsIsRead) {
  constexpr int kTensors = 50'000;
  std::string header = "{";
  for (int i = 0; i < kTensors; ++i) {
    header += (i > 0 ? ",\"" : "\"") + std::to_string(i);
    header += R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
  }
  write_file(header + "}", 0);
  EXPECT_EQ(read_safetensors(path()).floats.size(), static_cast<std::size_t>(kTensors));
}

}  // namespace
}  // namespace plumb
