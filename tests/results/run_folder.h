// Run folders for tests, as a bench program writes them, without a run.
#pragma once

#include <filesystem>
#include <string>

#include "results/record/schema.h"
#include "tests/scratch_folder.h"

namespace plumb {

// An ok run of ResNet-50 on a CPU, 1n2g, batch 8, 120 iterations of equal length.
inline RunRecord example_run(double images_per_second) {
  RunRecord record;
  record.status = "ok";
  record.model = "resnet50";
  record.precision = "fp32";
  record.device = "cpu";
  record.device_name = "some CPU, 1 thread, oneDNN 2.6.3";
  record.batch_per_device = 8;
  record.world_size = record.devices_per_node = 2;
  record.iterations = 120;
  record.warmup = 20;
  const double seconds = 16 / images_per_second;
  record.step_seconds.assign(120, seconds);
  record.loss.assign(120, 7.0);
  record.images_per_second = {images_per_second, images_per_second, images_per_second, images_per_second};
  record.rank_window_seconds = {100 * seconds, 100 * seconds};
  record.parameters = 25557032;
  record.macs_per_image = 4089184256;
  record.memory_bytes = {{"peak", 1 << 30}};
  record.config = {{"data", "synthetic"}, {"batch", ""},      {"image_size", 224}, {"optimizer", "sgd"},
                   {"comm", "mpi"},       {"overlap", true},  {"fusion", "auto"},  {"bucket_mb", 25.0},
                   {"seconds", 0.0},      {"autotune", true}, {"threads", 1}};
  return record;
}

// The same for faces: r50 on a GPU, 1n1g, batch 128, 150 iterations.
inline RunRecord example_face_run(double images_per_second) {
  RunRecord record = example_run(images_per_second);
  record.model = "r50";
  record.precision = "fp16";
  record.device = "cuda";
  record.device_name = "NVIDIA H200 (sm_90), driver for CUDA 12.4";
  record.batch_per_device = 128;
  record.world_size = record.devices_per_node = 1;
  record.iterations = 150;
  record.warmup = 50;
  record.step_seconds.assign(150, 128 / images_per_second);
  record.loss.assign(150, 40.0);
  record.rank_window_seconds = {100 * 128 / images_per_second};
  record.config["image_size"] = 112;
  record.config.update({{"head", "pfc"},
                        {"classes", 85742},
                        {"sample_rate", 0.1},
                        {"embedding", 512},
                        {"prelu", "channel"},
                        {"dropout", 0.4},
                        {"head_dtype", "fp32"},
                        {"loss_scale", "dynamic"}});
  return record;
}

inline std::filesystem::path write_run_folder(const ScratchFolder& scratch, const std::string& name,
                                              const RunRecord& record) {
  return scratch.write(name + "/result.json", to_json(record).dump(1) + "\n").parent_path();
}

}  // namespace plumb
