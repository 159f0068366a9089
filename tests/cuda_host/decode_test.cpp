// --decode gpu: the bench program with a stand-in for nvJPEG that decodes as the CPU does, so that pixels,
// and with them all losses, are the same.
#include <gtest/gtest.h>

#include <string>

#include "tests/bench/image_files.h"
#include "tests/faults/started_program.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

const std::string kNvjpeg = "PLUMBLINE_NVJPEG_LIBRARY=" PLUMB_FAKE_NVJPEG " ";

class CudaDecode : public testing::Test {
 protected:
  // Result of a run on the images so far, which are so small that the CPU decodes them at their full size,
  // too.
  nlohmann::ordered_json train(int ranks, const std::string& options, const std::string& environment) const {
    const Place place;
    const std::string command = place.bench(kRun + "--data " + images_.path() + " " + options);
    const Ended ended = place.run(ranks > 1 ? Place::mpirun(ranks, command) : command,
                                  "EMULATED_GPUS=" + std::to_string(ranks) + " " + kNvjpeg + environment);
    EXPECT_EQ(ended.exit_code, 0) << (ended.lines.empty() ? "" : ended.lines.back());
    return place.result();
  }
  void add(const std::string& name, JpegKind kind, const std::string& behind = "") const {
    std::vector<std::uint8_t> jpeg = encode_jpeg(40, 36, kind, [](int x, int y) {
      return Pixel{static_cast<std::uint8_t>(5 * x), static_cast<std::uint8_t>(7 * y), 90, 20};
    });
    jpeg.insert(jpeg.end(), behind.begin(), behind.end());
    write_file(images_ / name, jpeg);
  }

  static inline const std::string kRun =
      "--device cuda --no-autotune --threads 1 --seed 5 --image-size 32 --bs 4 --iters 4 --warmup 1 --lr "
      "0.00001 "
      "--data-workers 2 ";
  ScratchFolder images_;
};

TEST_F(CudaDecode, TrainsToTheLossesOfTheCpu) {
  write_image_folder(images_.path(), 3, 2);
  const auto cpu = train(1, "--decode cpu", "");
  EXPECT_FALSE(cpu.contains("decoding"));
  for (const std::string engines : {"0", "1"}) {
    const auto gpu = train(1, "--decode gpu", "FAKE_NVJPEG_ENGINES=" + engines);
    EXPECT_EQ(gpu.at("loss"), cpu.at("loss")) << engines;
    const auto& decoding = gpu.at("decoding");
    EXPECT_EQ(decoding.at("decoder"),
              engines == "1" ? "nvJPEG 13.1.2 with the GPU's JPEG engines" : "nvJPEG 13.1.2");
    EXPECT_EQ(decoding.at("gpu_images"), 4 * 4);
    EXPECT_EQ(decoding.at("cpu_images"), 0);
    EXPECT_EQ(gpu.at("memory_bytes").at("decoding"), 7 * 4 * 32 * 32 * 3 + 2 * (64 << 20));
  }
}

// What nvJPEG isn't given, and what it fails at.
TEST_F(CudaDecode, TheCpuTakesTheRest) {
  write_image_folder(images_.path(), 2, 2);
  add("class_1000/p.jpg", JpegKind::progressive);
  add("class_1000/c.jpg", JpegKind::cmyk_with_adobe_marker);
  add("class_1001/g.jpg", JpegKind::grey);
  add("class_1001/j.jpg", JpegKind::color, "junk");
  const auto cpu = train(2, "--decode cpu", "");
  const auto gpu = train(2, "--decode gpu", "FAKE_NVJPEG_FAIL_WIDTH=41");
  EXPECT_EQ(gpu.at("loss"), cpu.at("loss"));
  // 32 samples of 8 images: each of them four times.
  const auto& decoding = gpu.at("decoding");
  EXPECT_EQ(decoding.at("gpu_images"), 4 * 3);
  EXPECT_EQ(decoding.at("cpu_images"), 4 * 5);
  const nlohmann::ordered_json reasons{
      {"decoder failed", 8}, {"no end marker", 4}, {"other colours", 4}, {"progressive", 4}};
  EXPECT_EQ(decoding.at("cpu_reasons"), reasons);
}

// The plan's memory is all there is for it.
TEST_F(CudaDecode, AnImageThatWantsMoreMemoryThanPlannedIsForTheCpu) {
  write_image_folder(images_.path(), 1, 1);
  const Place place;
  const Ended ended =
      place.run(place.bench(kRun + "--decode gpu --decode-only --json --data " + images_.path()),
                kNvjpeg + "FAKE_NVJPEG_BYTES=200000000");
  ASSERT_EQ(ended.exit_code, 0);
  const auto decoding = nlohmann::ordered_json::parse(ended.output).at("decoding");
  EXPECT_EQ(decoding.at("cpu_reasons"), nlohmann::ordered_json({{"large", 16}}));
  EXPECT_EQ(decoding.at("gpu_images"), 0);
}

TEST_F(CudaDecode, WithoutNvjpegThereIsARemedy) {
  write_image_folder(images_.path(), 1, 1);
  const Place place;
  const std::string command = place.bench(kRun + "--decode gpu --data " + images_.path());
  for (const std::string library : {"/nowhere/libnvjpeg.so", PLUMB_FAKE_NVML})
    expect_one_sentence(place.run(command, "PLUMBLINE_NVJPEG_LIBRARY=" + library), kUnavailable,
                        {"--decode", "nvJPEG", library.c_str(), "--decode cpu"});
  EXPECT_TRUE(place.contents().empty());
}

}  // namespace
}  // namespace plumb
