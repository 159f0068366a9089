#include "bench/allreduce/allreduce_options.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/bench/expect_error.h"

namespace plumb {
namespace {

AllreduceOptions parsed(const std::vector<std::string>& arguments) {
  std::vector<const char*> argv{kAllreduceProgram};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  return parse_allreduce_options(static_cast<int>(argv.size()), argv.data());
}

using Sizes = std::vector<std::uint64_t>;

TEST(AllreduceOptions, ReadSizesInPowersOf1024) {
  for (const auto& [text, bytes] : std::vector<std::pair<std::string, std::uint64_t>>{
           {"8", 8}, {"64K", 65536}, {"1M", 1 << 20}, {"1m", 1 << 20}, {"1G", 1 << 30}}) {
    EXPECT_EQ(parse_bytes("--min", text), bytes);
    EXPECT_EQ(parse_bytes("--min", bytes_text(bytes)), bytes);
  }
  EXPECT_EQ(bytes_text(1 << 20), "1M");
  EXPECT_EQ(bytes_text(1000), "1000");
  for (const char* text : {"", "0", "-1", "1.5M", "1MB", "M", "2048G", "99999999999999999999"})
    expect_error(ExitCode::usage, {"--min ", "64K"}, [&] { parse_bytes("--min", text); });
}

TEST(AllreduceOptions, HaveTheShortFormsOfNcclTests) {
  const AllreduceOptions short_form =
      parsed({"-b", "8", "-e", "1G", "-f", "2", "-n", "7", "-w", "3", "-d", "fp16"});
  const AllreduceOptions long_form = parsed(
      {"--min", "8", "--max", "1G", "--factor", "2", "--iters", "7", "--warmup", "3", "--dtype", "fp16"});
  EXPECT_EQ(options_fingerprint(short_form), options_fingerprint(long_form));
  EXPECT_EQ(short_form.max_bytes, std::uint64_t{1} << 30);
  EXPECT_EQ(short_form.iterations, 7);
  EXPECT_EQ(short_form.warmup, 3);
  EXPECT_EQ(short_form.dtype, DType::f16);
}

TEST(AllreduceOptions, GrowSizesByTheFactorUpToTheLargest) {
  EXPECT_EQ(message_bytes(parsed({"-b", "8", "-e", "100", "-f", "2"}), 4), (Sizes{8, 16, 32, 64}));
  EXPECT_EQ(message_bytes(parsed({"-b", "1M", "-e", "1M"}), 4), Sizes{1 << 20});
}

TEST(AllreduceOptions, RoundSizesToWholeElementsOfEveryRank) {
  EXPECT_EQ(message_bytes(parsed({"-b", "7", "-e", "31"}), 3), (Sizes{4, 12, 28}));
  // 3 ranks and 4 bytes each: 12 at least, and no size twice.
  EXPECT_EQ(message_bytes(parsed({"-b", "8", "-e", "64", "--collective", "allgather"}), 3),
            (Sizes{12, 24, 60}));
}

TEST(AllreduceOptions, ReplayAModelInAPrecision) {
  EXPECT_EQ(parsed({"--replay", "resnet50"}).replay.precision, Precision::fp32);
  const ReplayedModel replay = parsed({"--replay", "y1:fp16"}).replay;
  EXPECT_EQ(replay.model->name, "y1");
  EXPECT_EQ(replay.precision, Precision::fp16);
}

TEST(AllreduceOptions, TakeNcclForGpusOnly) {
  const DeviceLimits cpu{.name = "this cpu", .kind = DeviceKind::cpu};
  EXPECT_EQ(resolve(parsed({}), cpu).comm, "mpi");
  AllreduceOptions options = parsed({});
  options.comm = "nccl";
  expect_error(ExitCode::usage, {"--comm", "nccl", "this cpu"}, [&] { resolve(options, cpu); });
}

}  // namespace
}  // namespace plumb
