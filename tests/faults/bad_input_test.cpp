// Invalid input is found before anything is computed, reported in one sentence, and leaves nothing behind.
// R12: a batch that can't fit is invalid input.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "models/weights.h"
#include "tests/bench/image_files.h"
#include "tests/faults/started_program.h"

namespace plumb {
namespace {

// Makes oneDNN write a line to stdout for everything it computes.
const std::string kShowComputing = "DNNL_VERBOSE=1 ONEDNN_VERBOSE=1";
bool computed(const Ended& ended) {
  return ended.output.find("_verbose,exec") != std::string::npos ||
         ended.output.find(",primitive,exec") != std::string::npos;
}

Tensor filled(std::vector<std::int64_t> dims) {
  std::size_t count = 1;
  for (const std::int64_t extent : dims) count *= static_cast<std::size_t>(extent);
  return {std::move(dims), std::vector<float>(count, 0.5f)};
}

// Files the table below refers to.
void write_inputs(const Place& place) {
  namespace fs = std::filesystem;
  write_text(place.file("a_file"), "");
  write_text(place.file("junk"), std::string(1000, '\xa5'));
  write_text(place.file("junk.rec"), std::string(1000, '\xa5'));
  write_text(place.file("junk.idx"), "0\t0\n");
  fs::create_directories(place.file("empty_class/cats"));
  TensorFile weights;
  weights.floats["conv1.weight"] = filled({64, 3, 7, 7});
  write_safetensors(place.file("one_tensor.safetensors"), weights);
  weights.floats["conv1.weight"].values[5] = std::numeric_limits<float>::quiet_NaN();
  write_safetensors(place.file("nan.safetensors"), weights);
  TensorFile batch;
  batch.floats["images"] = filled({3, 3, 32, 32});
  batch.integers["labels"] = {{3}, {1, 2, 1000}};
  write_safetensors(place.file("bad_label.safetensors"), batch);
}

struct BadInput {
  std::string name, arguments;
  int code;
  std::vector<std::string> words;
  int ranks = 1;
};
void PrintTo(const BadInput& input, std::ostream* stream) {
  *stream << input.arguments;
}

const std::string kShort = "--image-size 32 --iters 4 --warmup 1 --threads 1 ";

// tests/golden/resnet50_options.txt has the sentences about options alone.
const std::vector<BadInput> kInputs = {
    {"UnknownOption", "--iterz 5", kUsage, {"--iterz", "--iters"}},
    {"PrecisionThatTheCpuLacks", "--device cpu --fp16", kUsage, {"--fp16", "--fp32"}},
    {"LayoutThatNobodyStarted", kShort + "--nodes 3", kUsage, {"--nodes 3 ", "1 rank runs"}},
    {"CudaWithoutCuda", "--device cuda", kUnavailable, {"--device cuda: ", "--device cpu"}},
    {"DataThatIsAFile", kShort + "--data a_file", kBadData, {"--data a_file", "expected a folder"}},
    {"ClassWithoutImages", kShort + "--data empty_class", kBadData, {"--data empty_class", "cats", "fill"}},
    {"RecordsThatAreJunk", kShort + "--data junk.rec", kBadData, {"--data junk.rec", "magic number"}},
    {"WeightsThatAreJunk", kShort + "--weights junk", kBadData, {"junk", "use"}},
    {"WeightsWithTensorsMissing",
     kShort + "--weights one_tensor.safetensors",
     kBadData,
     {"one_tensor.safetensors", "bn1.weight"}},
    {"WeightsWithANaN",
     kShort + "--weights nan.safetensors",
     kBadData,
     {"--weights nan.safetensors", "\"conv1.weight\"", "element 5 is nan", "has not diverged"}},
    {"BatchFileThatIsJunk", kShort + "--batch-file junk", kBadData, {"--batch-file junk", "use"}},
    {"BatchFileWithLabelOutside",
     kShort + "--bs 3 --batch-file bad_label.safetensors",
     kBadData,
     {"bad_label.safetensors", "1000", "row 2", "0 to 999"}},
    {"BatchThatFitsNowhere", "--bs 1000000 --threads 1", kOutOfMemory, {"--bs 1000000", "bytes", "fits"}},
    {"UnknownOptionOnTwoRanks", "--iterz 5", kUsage, {"--iterz"}, 2},
    {"MissingDataOnTwoRanks", kShort + "--data nowhere", kBadData, {"rank 0", "--data nowhere"}, 2},
    {"JunkThatOnlyRank0ReadsOnTwoRanks", kShort + "--weights junk", kBadData, {"junk"}, 2},
    {"BatchThatFitsNowhereOnTwoRanks", "--bs 1000000 --threads 1", kOutOfMemory, {"rank 0", "fits"}, 2},
};

class BadInputs : public testing::TestWithParam<BadInput> {};

TEST_P(BadInputs, IsToldInOneSentenceAndLeavesNothing) {
  const Place place;
  write_inputs(place);
  const std::vector<std::string> before = place.contents();
  const BadInput& input = GetParam();
  const std::string command = place.resnet50(input.arguments);
  const Ended ended =
      place.run(input.ranks == 1 ? command : Place::mpirun(input.ranks, command), kShowComputing);
  expect_one_sentence(ended, input.code, input.words);
  EXPECT_FALSE(computed(ended)) << ended.output;
  EXPECT_EQ(place.contents(), before);
}

INSTANTIATE_TEST_SUITE_P(Faults, BadInputs, testing::ValuesIn(kInputs),
                         [](const auto& tested) { return tested.param.name; });

// Proves the table's check: a run that computes is seen to compute.
TEST(BadInputs, ComputingWouldBeSeen) {
  const Place place;
  EXPECT_TRUE(computed(place.run(place.resnet50(kSmallImages + "--iters 2"), kShowComputing)));
}

// A name that clears the screen and goes on in a line of its own.
TEST(HostileNames, OfCorruptImagesDoNotReachTheTerminal) {
  const Place place;
  const auto expect_named = [&](int code, const std::string& sentence) {
    const Ended ended = place.run(place.resnet50(kSmallImages + "--iters 8 --data images"));
    EXPECT_EQ(ended.exit_code, code);
    EXPECT_EQ(ended.output.find('\x1b'), std::string::npos) << ended.output;
    bool is_named = false;
    for (const std::string& line : ended.lines) {
      is_named = is_named || (line.find(sentence) != std::string::npos &&
                              line.find("/?[2J?forged.jpg (Not a JPEG") != std::string::npos);
      EXPECT_FALSE(line.starts_with("forged")) << line;
      EXPECT_TRUE(std::ranges::none_of(line, [](unsigned char letter) { return letter < ' '; })) << line;
    }
    EXPECT_TRUE(is_named) << testing::PrintToString(ended.lines);
  };
  write_image_folder(place.file("images"), 2, 4);
  write_text(place.file("images/class_1000/\x1b[2J\nforged.jpg"), "no image");
  expect_named(0, "skipped 1 corrupt image");
  write_text(place.file("images/class_1001/\x1b[2J\nforged.jpg"), "no image");
  expect_named(kBadData, "images are corrupt, more than 1 %");
}

// The number that follows `before` in a sentence.
double number_after(const std::string& sentence, const std::string& before) {
  const std::size_t at = sentence.find(before);
  return at == std::string::npos ? -1 : std::stod(sentence.substr(at + before.size()));
}

TEST(OutOfMemory, BytesAndWhatFitsAreThePlansAndNothingIsAllocated) {
  const Place place, dry_place;
  const std::string arguments = "--device cpu --threads 1 --bs 1000000 ";
  const Ended ended = place.run(place.resnet50(arguments));
  expect_one_sentence(ended, kOutOfMemory, {"bytes", "free", "--bs"});
  const Ended dry = dry_place.run(dry_place.resnet50(arguments + "--dry-run --json"));
  ASSERT_EQ(dry.exit_code, 0);
  const auto plan = nlohmann::json::parse(dry.output);
  EXPECT_EQ(plan.at("fits"), false);
  const std::string& sentence = ended.lines.front();
  const auto& bytes = plan.at("memory_bytes");
  // The plan, plus the copy that initial values are loaded from.
  EXPECT_EQ(number_after(sentence, "needs "),
            bytes.at("planned").get<double>() + bytes.at("parameters").get<double>())
      << sentence;
  // Other programs allocate and free memory between the two.
  const double fits = plan.at("largest_batch");
  EXPECT_NEAR(number_after(sentence, "according to the plan --bs "), fits, 0.3 * fits) << sentence;
  EXPECT_LT(ended.peak_bytes, std::size_t{1} << 30);
}

TEST(OutOfMemory, RanksOfOneHostShareItsMemory) {
  const Place one, two;
  const std::string arguments = "--device cpu --threads 1 --bs 1000000";
  const Ended alone = one.run(one.bench(arguments)), both = two.run(Place::mpirun(2, two.bench(arguments)));
  ASSERT_EQ(alone.lines.size(), 1u);
  ASSERT_EQ(both.lines.size(), 1u);
  const double fits_alone = number_after(alone.lines.front(), "according to the plan --bs "),
               fits_both = number_after(both.lines.front(), "according to the plan --bs ");
  EXPECT_GT(fits_both, 0);
  EXPECT_LT(fits_both, 0.7 * fits_alone);
}

}  // namespace
}  // namespace plumb
