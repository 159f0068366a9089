// InsightFace on MXNet. Published scripts (DLPerf c89430b): MxNet/InsightFace/ArcFace/extract_mxnet_logs.py
// for a line every 20 iterations with the speed of one node in them, by MXNet's Speedometer; and
// MxNet/InsightFace/PartailFC/extract_mxnet_logs.py for Partial FC's line of rank 0 for every iteration but
// the first, in which "it" are images, with config.frequent = 1. Lines: insightface 863a7ea9.
#include "base/text.h"
#include "results/formats/log_format.h"

namespace plumb {
namespace {
namespace insightface_mxnet {

class ArcFace final : public SpeedFormat {
 public:
  constexpr ArcFace()
      : SpeedFormat({.name = "mxnet_arcface",
                     .framework = "MXNet (deepinsight)",
                     .source = "InsightFace on MXNet, from the Speed of every 20 iterations",
                     .example = "INFO:root:Epoch[0] Batch [40]\tSpeed: 1195.56 samples/sec\tacc=0.000000",
                     .shape = "INFO:root:Epoch[{epoch}] Batch~[{iteration}]*Speed: {value} samples/sec|"
                              "INFO:root:Iter[{epoch}] Batch~[{iteration}]*Speed: {value} samples/sec",
                     .loss = "lossvalue",
                     .index_step = 20,
                     .written_step = 20},
                    {.decimals = 1, .of = SpeedFacts::node}) {}

  // Numbered by the iterations done, as after them; the speed is that of one node.
  std::string line(const LoggedInterval& interval, const RunSize& size) const override {
    return fmt::format("INFO:root:Epoch[0] Batch [{}]\tSpeed: {:.2f} samples/sec\tacc={:.6f}",
                       interval.last + 1, interval.images_per_second / static_cast<double>(size.nodes),
                       interval.top1);
  }
};

class PartialFc final : public SpeedFormat {
 public:
  constexpr PartialFc()
      : SpeedFormat(
            {.name = "mxnet_partial_fc",
             .framework = "MXNet (deepinsight partial_fc)",
             .source = "InsightFace's Partial FC on MXNet, from each line's Total",
             .example = "rank-id:0:2021-02-22 10:00:00,123-Iter:21 Rank:27.30 it/sec Total:218.84 it/sec "
                        "[0][loss]:45.10",
             .shape = "Iter:{iteration} Rank:{any} it/sec Total:{value} it/sec",
             .loss = "[loss]",
             .unlogged = 1,
             .has_no_end = true,
             .written_step = 1,
             .first_written = 1},
            {.decimals = 1}) {}

  std::string line(const LoggedInterval& interval, const RunSize& size) const override {
    return fmt::format("rank-id:0:{}-Iter:{} Rank:{:.2f} it/sec Total:{:.2f} it/sec [0][loss]:{:.2f}",
                       interval.stamp, interval.last + 1,
                       interval.images_per_second / static_cast<double>(size.ranks()),
                       interval.images_per_second, interval.loss);
  }
};

constexpr ArcFace kArcFace;
constexpr PartialFc kPartialFc;

}  // namespace insightface_mxnet
}  // namespace

const LogFormat &kMxnetArcface = insightface_mxnet::kArcFace,
                &kMxnetPartialFc = insightface_mxnet::kPartialFc;

}  // namespace plumb
