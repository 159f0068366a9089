// Formats that no script of DLPerf reads, so that the whole log behind a short warm-up counts; what prints
// their lines is named with each.
#include "results/formats/log_format.h"

namespace plumb {
namespace {

constexpr Window kShort{.iterations = 40, .warmup = 20};

}  // namespace

// deepinsight/insightface, recognition/arcface_torch/utils/utils_callbacks.py: global steps, all ranks'
// speed.
constexpr LogFormat kArcFaceTorch(
    {.name = "arcface_torch",
     .framework = "PyTorch (arcface_torch)",
     .source = "InsightFace's arcface_torch, from each line's Speed",
     .example =
         "Training: 2021-07-03 00:08:28,141-Speed 1473.00 samples/sec   Loss 48.0000   Epoch: 0   Global "
         "Step: 100   Required: 99 hours",
     .shape = "Speed {value} samples/sec Loss {any} *Epoch: {any} *Global Step: {iteration} ",
     .loss = "Loss",
     .default_window = kShort,
     .index_step = 0,
     .has_no_end = true});

// NVIDIA/Megatron-LM, megatron/training/training.py: means of the iterations since the line before.
constexpr LogFormat kMegatron(
    {.name = "megatron",
     .framework = "Megatron-LM",
     .source = "Megatron-LM, from each line's elapsed time per iteration",
     .example =
         " iteration       10/     100 | consumed samples:         1280 | elapsed time per iteration (ms): "
         "320.8 | learning rate: 1.000E-04 | global batch size:   128 | lm loss: 1.000000E+01 |",
     .shape = "iteration {iteration}/{any} *elapsed time per iteration (ms): {value} ",
     .loss = "lm loss",
     .default_window = kShort,
     .index_step = 0,
     .has_no_end = true,
     .speeds = {.seconds = 0.001}});

// Oneflow-Inc/models, vision/classification/image/resnet50: each rank's own speed.
constexpr LogFormat kOneflowTrain(
    {.name = "oneflow_train",
     .framework = "OneFlow",
     .source = "OneFlow's models of 2021, from each rank's throughput",
     .model = "resnet50",
     .example =
         "[0] [train], epoch: 0/50, iter: 100/3336, loss: 1.73064, lr: 0.004604, top1: 0.00208, throughput: "
         "159.71",
     .shape = "[{writer}] [train], epoch: {epoch}/{any}, iter: {iteration}/{any},*throughput: {value}",
     .default_window = kShort,
     .index_step = 0,
     .has_no_end = true,
     .every_rank_writes = true,
     .decimals_at_end = 2,
     .speeds = {.of = SpeedFacts::rank}});

// mlcommons/logging: a line for each epoch or block of them.
constexpr LogFormat kMllog(
    {.name = "mllog",
     .framework = "MLPerf",
     .source = "MLPerf's logging library, from the throughput of tracked_stats",
     .example =
         ":::MLLOG {\"namespace\": \"\", \"time_ms\": 1700000000000, \"event_type\": \"POINT_IN_TIME\", "
         "\"key\": \"tracked_stats\", \"value\": {\"throughput\": 3024.5}, \"metadata\": {\"step\": 4}}",
     .shape = ":::MLLOG *\"tracked_stats\"*\"throughput\": {value}*\"step\": {iteration}|"
              ":::MLLOG *\"tracked_stats\"*\"throughput\": {value}*\"epoch_num\": {iteration}",
     .default_window = {.iterations = 2, .warmup = 1},
     .index_step = 0,
     .has_no_end = true});

// The same where no line has a throughput: ends of epochs, or of blocks of them.
constexpr LogFormat kMllogEpochs(
    {.name = "mllog_epochs",
     .framework = "MLPerf",
     .source = "MLPerf's logging library, from train_samples and the ends of epochs",
     .example = ":::MLLOG {\"namespace\": \"\", \"time_ms\": 1700000000000, \"event_type\": "
                "\"INTERVAL_END\", \"key\": \"epoch_stop\", \"value\": null, \"metadata\": "
                "{\"file\": \"train.py\", \"lineno\": 7, \"epoch_num\": 1}}",
     .shape = ":::MLLOG *\"time_ms\": {value},*\"epoch_stop\"*\"epoch_num\": {iteration}|"
              ":::MLLOG *\"time_ms\": {value},*\"block_stop\"*\"first_epoch_num\": {iteration}",
     .default_window = {.iterations = 2, .warmup = 1},
     .index_step = 0,
     .has_no_end = true,
     .is_last_choice = true,
     .images_line = ":::MLLOG *\"train_samples\"*\"value\": {count}",
     .note = "the time of an epoch includes its evaluation",
     .stamps = StampKind::milliseconds_since_1970});

// tensorflow/benchmarks, tf_cnn_benchmarks.
constexpr LogFormat kTfCnnBenchmarks(
    {.name = "tf_cnn_benchmarks",
     .framework = "TensorFlow",
     .source = "tf_cnn_benchmarks and Horovod, from the mean images/sec of the last line",
     .example = "10\timages/sec: 322.4 +/- 0.5 (jitter = 1.2)\t7.608",
     .shape = "^{iteration} images/sec: {value} +/- {any} (jitter = {any})",
     .default_window = {.iterations = 20, .warmup = 0},
     .index_step = 0,
     .has_no_end = true,
     .speeds = {.mean = SpeedFacts::so_far}});

}  // namespace plumb
