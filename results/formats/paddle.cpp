// Paddle and its PLSC. Published scripts: DLPerf c89430b, PaddlePaddle/resnet50v1.5/; extract_paddle_logs.py
// takes each iteration's time, extract_paddle_logs_time.py the stamps of the last warm-up iteration and of
// the last iteration.
//
// PLSC has a line of every 10 batches with the images/s of all ranks in them. Published script: DLPerf branch
// dev_paddle_plsc_arcface (7e236cf4), PaddlePaddle/PLSC/extract_paddle_logs.py; lines: PLSC 9bba9c90,
// plsc/entry.py. Paddle's launcher sends every rank's output to one terminal, so a log holds each line as
// often as its node has ranks. The script takes lines 5N to 15N of it (N: nodes), as if a log held one line
// of each node; with 8 ranks on one node those are lines of batches 0 and 10, where they should be of 50 to
// 140. Here the lines of a batch belong together, and batches are counted.
#include "results/formats/log_format.h"

namespace plumb {
namespace {

constexpr std::int64_t kBatchesPerLine = 10;

}  // namespace

constexpr LogFormat kPaddleSpeed({.name = "paddle_speed",
                                  .framework = "PaddlePaddle",
                                  .source = "Paddle and Plumbline, from each iteration's elapse",
                                  .model = "resnet50",
                                  .example = kOwnExample,
                                  .shape = "[Pass {epoch}, train batch {iteration}]*elapse {value} sec",
                                  .written_step = 1,
                                  .is_own_layout = true,
                                  .writes = kOwnLine,
                                  .speeds = {.seconds = 1, .decimals = 4}});

// Since September 2020 (PaddlePaddle/models#4882, PaddlePaddle/PaddleClas#369, #525). The ips is of the batch
// that the batch_cost is of, a rank's or all ranks'.
constexpr LogFormat kPaddleIps(
    {.name = "paddle_ips",
     .framework = "PaddlePaddle",
     .source = "Paddle since September 2020, from each line's ips",
     .model = "resnet50",
     .example = "INFO:utils.utility:[Pass 0, train batch 0] \tloss 6.9, acc1 0.0, acc5 0.0, lr 0.1, "
                "batch_cost 0.13110 sec, reader_cost 0.00069 sec, ips 976.32917 images/sec",
     .shape = "[Pass {epoch}, train batch {iteration}]*batch_cost {seconds} sec,*ips {value} images/sec|"
              "epoch:{epoch} *train step:{iteration} *batch_cost: {seconds} s,*ips: {value} |"
              "[Train][Epoch {epoch}/{any}][Iter: {iteration}/{any}]*batch_cost: {seconds}s,*ips: {value} ",
     .speeds = {.of = SpeedFacts::rank}});
constexpr LogFormat kPaddleTime({.name = "paddle_time",
                                 .framework = "PaddlePaddle",
                                 .source = "Paddle and Plumbline, from the lines' wall stamps",
                                 .model = "resnet50",
                                 .example = kOwnExample,
                                 .shape = "[Pass {epoch}, train batch {iteration}]*elapse {any} sec",
                                 .shares_lines = true,
                                 .rounding = Rounding::python_averages,
                                 .written_step = 1,
                                 .is_own_layout = true,
                                 .writes = kOwnLine,
                                 .stamps = StampKind::with_comma});

constexpr LogFormat kPlsc(
    {.name = "plsc",
     .framework = "PaddlePaddle PLSC",
     .source = "PaddlePaddle's PLSC, from the qps of every 10 batches",
     .example = "INFO 2021-03-12 10:00:00,000 entry.py:1020] Pass:0 batch:10 lr:0.01250000 loss:40.000000 "
                "qps:397.44",
     .shape = "Pass:{epoch} batch:{iteration} *qps:{value}$",
     .default_window = {.iterations = 150, .warmup = 50},
     .index_step = kBatchesPerLine,
     .every_rank_writes = true,
     .decimals_at_end = 2,
     .written_step = kBatchesPerLine,
     // Numbered by the first of its batches, so that the script's slice of a 150-iteration log is iterations
     // 51 to 150, its warm-up left out whole (PLSC's own lines give the last, so it takes batches 41 to 140).
     .writes = "INFO {stamp} entry.py:1020] Pass:0 batch:{first} lr:{learning_rate:.8f} loss:{loss:.6f} "
               "qps:{images_per_second:.2f}",
     .script_note =
         "the published script assumes one line per node, so it averages other batches than these figures",
     .script_lines = FormatFacts::one_per_node});

}  // namespace plumb
