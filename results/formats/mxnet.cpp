// ResNet-50 on MXNet, by gluon-cv (v1b) and in NVIDIA's container. Published scripts (DLPerf c89430b):
// MxNet/Classification/RN50v1b/extract_mxnet_logs.py for gluon-cv as DLPerf ran it; for NVIDIA's
// NVIDIADeepLearningExamples/MxNet/Classification/RN50v1.5/: extract_mxnet_logs.py takes the Speed of every
// iteration, that of all ranks, extract_mxnet_logs_time.py the stamps of the last warm-up iteration and of
// the last iteration: it counts lines, and takes a log for one that every rank of all nodes has written into.
// Lines: DeepLearningExamples' fit.py with --disp-batches 1.
//
// InsightFace on MXNet. Published scripts (DLPerf c89430b): MxNet/InsightFace/ArcFace/extract_mxnet_logs.py
// for a line every 20 iterations with the speed of one node in them, by MXNet's Speedometer; and
// MxNet/InsightFace/PartailFC/extract_mxnet_logs.py for Partial FC's line of rank 0 for every iteration but
// the first, in which "it" are images, with config.frequent = 1. Lines: insightface 863a7ea9.
#include "results/formats/log_format.h"

namespace plumb {
constexpr LogFormat kMxnetRn50v1b({.name = "mxnet_rn50v1b",
                                   .framework = "MXNet (gluon-cv)",
                                   .source = "MXNet's gluon-cv and Plumbline, from each line's Speed",
                                   .model = "rn50v1b",
                                   .example = "Epoch[0] Batch[8]\tSpeed: 384.19 samples/sec",
                                   .shape = "Epoch[{epoch}] Batch[{iteration}]*Speed: {value} samples/sec",
                                   .written_step = 1,
                                   .is_own_layout = true,
                                   .writes = kOwnLine,
                                   .speeds = {.decimals = 2}});
// MXNet's Module on several nodes (example/image-classification with --kv-store dist_sync): each node's own
// speed, a line for every metric.
constexpr LogFormat kMxnetNodes(
    {.name = "mxnet_nodes",
     .framework = "MXNet",
     .source = "MXNet's image-classification, from each node's Speed",
     .example = "2018-03-26 21:04:00,806 Node[0] Epoch[0] Batch [20]\tSpeed: 111.91 "
                "samples/sec\tTrain-accuracy=0.011",
     .shape = "Node[{writer}] Epoch[{epoch}] Batch~[{iteration}]*Speed: {value} samples/sec",
     .loss = "entropy",
     .repeats_lines = true,
     .speeds = {.of = SpeedFacts::node}});
// DeepLearningExamples since 2021, by its DLLogger.
constexpr LogFormat kNgcMxnetDll(
    {.name = "ngc_mxnet_dll",
     .framework = "NGC MXNet",
     .source = "NVIDIA's MXNet of 2021, from the lines' wall stamps",
     .model = "resnet50",
     .example = "DLL 2021-03-24 23:59:30.523914 - Epoch: 0 Iteration: 0  train.loss : 6.94  "
                "train.ips : 1735.96  train.lr : 0.0",
     .shape = "Epoch: {epoch} Iteration: {iteration} *train.ips : {any} |"
              "Epoch: {epoch} Iteration: {iteration} *train.ips : {any}$",
     .loss = "train.loss",
     .stamps = StampKind::with_dot});
constexpr LogFormat kNgcMxnetSpeed(
    {.name = "ngc_mxnet_speed",
     .framework = "NGC MXNet",
     .source = "NVIDIA's MXNet, from each line's Speed",
     .model = "resnet50",
     .example = "2020-08-01 10:00:00,123:INFO: Epoch[0] Batch [0-0]\tSpeed: 392.24 samples/sec\tLR: 0.001",
     .shape = "INFO: Epoch[{epoch}] Batch [{iteration}]*Speed: {value} samples/sec",
     .every_rank_writes = true,
     .written_step = 1,
     .writes = "{stamp}:INFO: Epoch[0] Batch [{first}-{first}]\tSpeed: {images_per_second:.2f} "
               "samples/sec\tLR: {learning_rate:.6f}",
     .writes_per_rank = true,
     .speeds = {.decimals = 2, .mean = SpeedFacts::medians_of_ranks}});
constexpr LogFormat kNgcMxnetTime([] {
  FormatFacts facts = read_otherwise(kNgcMxnetSpeed, "ngc_mxnet_time",
                                     "NVIDIA's MXNet, from the lines' wall stamps", StampKind::with_comma);
  facts.script_note =
      "the published script counts as many lines for an iteration as there are ranks, so its window differs";
  facts.script_lines = FormatFacts::one_per_rank;
  return facts;
}());

constexpr LogFormat kMxnetArcface(
    {.name = "mxnet_arcface",
     .framework = "MXNet (deepinsight)",
     .source = "InsightFace on MXNet, from the Speed of every 20 iterations",
     .example = "INFO:root:Epoch[0] Batch [40]\tSpeed: 1195.56 samples/sec\tacc=0.000000",
     .shape = "INFO:root:Epoch[{epoch}] Batch~[{iteration}]*Speed: {value} samples/sec|"
              "INFO:root:Iter[{epoch}] Batch~[{iteration}]*Speed: {value} samples/sec",
     .loss = "lossvalue",
     .index_step = 20,
     .written_step = 20,
     // Numbered by the iterations done, as after them.
     .writes =
         "INFO:root:Epoch[0] Batch [{done}]\tSpeed: {node_images_per_second:.2f} samples/sec\tacc={top1:.6f}",
     .speeds = {.decimals = 1, .of = SpeedFacts::node}});

constexpr LogFormat kMxnetPartialFc(
    {.name = "mxnet_partial_fc",
     .framework = "MXNet (deepinsight partial_fc)",
     .source = "InsightFace's Partial FC on MXNet, from each line's Total",
     .example =
         "rank-id:0:2021-02-22 10:00:00,123-Iter:21 Rank:27.30 it/sec Total:218.84 it/sec [0][loss]:45.10",
     .shape = "Iter:{iteration} Rank:{any} it/sec Total:{value} it/sec",
     .loss = "[loss]",
     .unlogged = 1,
     .has_no_end = true,
     .written_step = 1,
     .first_written = 1,
     .writes = "rank-id:0:{stamp}-Iter:{done} Rank:{rank_images_per_second:.2f} it/sec "
               "Total:{images_per_second:.2f} it/sec [0][loss]:{loss:.2f}",
     .speeds = {.decimals = 1}});

}  // namespace plumb
