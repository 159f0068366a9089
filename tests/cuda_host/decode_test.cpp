// --decode gpu: the bench program with a stand-in for nvJPEG that decodes as the CPU does.
#include <gtest/gtest.h>

#include <string>

#include "tests/bench/image_files.h"
#include "tests/faults/started_program.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

const std::string kWithoutWorkers =
    "--device cuda --no-autotune --threads 1 --seed 5 --image-size 32 --iters 4 --warmup 1 --lr 0.00001 ";
const std::string kRun = kWithoutWorkers + "--data-workers 1 ";

TEST(CudaDecode, TrainsToTheLossesOfTheCpu) {
  const ScratchFolder images;
  write_image_folder(images.path(), 3, 1);
  write_file(images / "class_1000/p.jpg", encode_jpeg(40, 36, JpegKind::progressive, [](int x, int y) {
               return Pixel{static_cast<std::uint8_t>(5 * x), static_cast<std::uint8_t>(7 * y), 90, 20};
             }));
  const auto train = [&](const std::string& decode) {
    const Place place;
    const std::string command =
        place.resnet50(kRun + "--bs 2 --data " + images.path() + " --decode " + decode);
    const Ended ended =
        place.run(Place::mpirun(2, command), "EMULATED_GPUS=2 PLUMBLINE_NVJPEG_LIBRARY=" PLUMB_FAKE_NVJPEG);
    EXPECT_EQ(ended.exit_code, 0) << (ended.lines.empty() ? "" : ended.lines.back());
    return place.result();
  };
  const auto cpu = train("cpu"), gpu = train("gpu");
  EXPECT_FALSE(cpu.contains("decoding"));
  EXPECT_EQ(gpu.at("loss"), cpu.at("loss"));
  // 16 samples of 4 images.
  EXPECT_EQ(gpu.at("decoding"),
            nlohmann::ordered_json({{"decoder", "nvJPEG 13.1.2 with the GPU's JPEG engines"},
                                    {"gpu_images", 12},
                                    {"cpu_images", 4},
                                    {"cpu_reasons", {{"progressive", 4}}}}));
  EXPECT_EQ(gpu.at("memory_bytes").at("decoding"), 7 * 2 * 32 * 32 * 3 + (64 << 20));
}

TEST(CudaDecode, WithoutNvjpegThereIsARemedy) {
  const ScratchFolder images;
  write_image_folder(images.path(), 1, 1);
  const Place place;
  expect_one_sentence(place.run(place.resnet50(kRun + "--bs 2 --decode gpu --data " + images.path()),
                                "PLUMBLINE_NVJPEG_LIBRARY=/nowhere/libnvjpeg.so"),
                      kUnavailable, {"--decode", "nvJPEG", "/nowhere/libnvjpeg.so", "--decode cpu"});
  EXPECT_TRUE(place.contents().empty());
}

// 861 MB of batches in page-locked memory, or 671 MB for workers; before any is taken.
TEST(CudaDecode, ImagesThatTheHostHasNoMemoryForAreRefused) {
  if (!std::string(PLUMB_TEST_SANITIZERS).empty()) GTEST_SKIP() << "sanitizers reserve the address space";
  const ScratchFolder images;
  write_image_folder(images.path(), 1, 1);
  for (const char* options : {"--bs 40000 --data-workers 1", "--bs 2 --data-workers 40 --decode gpu"}) {
    const Place place;
    const std::string command = place.resnet50(kWithoutWorkers + options + " --data " + images.path());
    expect_one_sentence(place.run("(ulimit -d 700000 && exec " + command + ")",
                                  "PLUMBLINE_NVJPEG_LIBRARY=" PLUMB_FAKE_NVJPEG),
                        kOutOfMemory, {"rank 0 on ", "host's memory", " worker", "--bs", "--data-workers"});
    EXPECT_TRUE(place.contents().empty());
  }
}

}  // namespace
}  // namespace plumb
