#include "bench/allreduce/allreduce_options.h"

#include <gtest/gtest.h>

#include <sstream>

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
    expect_error(ExitCode::usage, {"option --min", "64K"}, [&] { parse_bytes("--min", text); });
}

TEST(AllreduceOptions, AnswerTheOptionsOfNcclTestsThatTheyLack) {
  const auto answers = [](const std::vector<std::string>& arguments, const std::string& sentence) {
    try {
      parsed(arguments);
      ADD_FAILURE() << arguments.front() << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_EQ(std::string(error.what()), sentence);
    }
  };
  const std::string ranks = ": every rank has one GPU; leave it out and start N ranks with mpirun -np N";
  answers({"-b", "8", "-e", "128M", "-f", "2", "-g", "8"}, "-g 8" + ranks);
  answers({"-g8"}, "-g8" + ranks);
  answers({"--ngpus=8"}, "--ngpus=8" + ranks);
  answers({"-t", "1", "-g", "1"}, "-t 1" + ranks);
  answers({"--op", "sum"}, "--op sum: reductions are sums only; leave it out");
  answers({"-o", "-n", "5"}, "-o: reductions are sums only; leave it out");
  answers({"-r", "0"}, "-r 0: broadcasts start at rank 0 only; leave it out");
  answers({"-c", "1"}, "-c 1: every element is checked in every run; leave it out");
  answers({"--minbytes", "8"}, "option --minbytes: no such option; did you mean --min?");
  answers({"--qqqqqqqq", "8"}, "option --qqqqqqqq: no such option; bench_allreduce --help lists all");
}

TEST(AllreduceOptions, HaveTheShortFormsOfNcclTests) {
  const AllreduceOptions short_form =
      parsed({"-b", "8", "-e", "1G", "-f", "2", "-n", "7", "-w", "3", "-d", "half"});
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

TEST(AllreduceOptions, RefuseWhatCannotBeMeasured) {
  struct Case {
    std::vector<std::string> arguments, words;
  };
  for (const Case& one : std::vector<Case>{
           {{"--min", "2M", "--max", "1M"}, {"--min 2M", "--max 1M"}},
           {{"--factor", "1"}, {"--factor", "'1'", "2 to 1024"}},
           {{"--dtype", "fp8"}, {"--dtype", "'fp8'", "fp32"}},
           {{"--iters", "0"}, {"--iters", "'0'"}},
           {{"--warmup", "-1"}, {"--warmup", "'-1'"}},
           {{"--collective", "alltoall"}, {"--collective", "'alltoall'", "broadcast"}},
           {{"--dtype", "int32"}, {"--dtype", "only fp32, fp16 and bf16 are summed"}},
           {{"--replay", "vgg"}, {"--replay", "'vgg'", "resnet50"}},
           {{"--replay", "r50:fp8"}, {"--replay", "'r50:fp8'"}},
           {{"--replay", "r50", "--pairs"}, {"--pairs", "--replay"}},
           {{"--compute", "program.json"}, {"--compute", "--replay"}},
           {{"--bucket-mb", "4"}, {"--bucket-mb", "--replay"}},
           {{"--replay", "r50", "--bs", "2", "--compute", "p.json"}, {"--bs", "--compute", "p.json"}},
           {{"--replay", "r50", "--out", "links.json"}, {"--out", "links.json"}},
           {{"--collective", "allgather", "--out", "links.json"}, {"--out", "--pairs"}},
           {{"--comm", "mpi", "--cuda-graph", "on"}, {"--cuda-graph", "--comm mpi"}},
           {{"--sizes", "8"}, {"--sizes", "no such option"}},
       })
    expect_error(ExitCode::usage, one.words, [&] { parsed(one.arguments); });
}

TEST(AllreduceOptions, GatherAndBroadcastEveryDtype) {
  for (const char* collective : {"allgather", "broadcast"})
    EXPECT_EQ(parsed({"--collective", collective, "--dtype", "uint8"}).dtype, DType::u8);
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

TEST(AllreduceOptions, HelpFits100Columns) {
  AllreduceOptions options;
  std::istringstream help(help_text(allreduce_option_table(options)));
  for (std::string line; std::getline(help, line);) EXPECT_LE(line.size(), 100u) << line;
}

}  // namespace
}  // namespace plumb
