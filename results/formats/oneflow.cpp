// OneFlow. ResNet-50: a line every 20 iterations that ends with the wall clock in seconds since 1970, and
// before them the run's size. Published script: DLPerf c89430b,
// OneFlow/Classification/ConvNets/resnet50v1.5/extract_cnn_result.py. It writes a table, no dictionary; the
// figures are the same. InsightFace (oneflow_face 1705ae5b): a line for every iteration, counted from 0.
// Published script: OneFlow/Recognition/insightface/extract_oneflow_logs_time.py; it passes over iterations 0
// to 5, then counts lines, and takes the 20th to the 120th: iterations 25 to 125, 101 of them.
#include "results/formats/log_format.h"

namespace plumb {
constexpr LogFormat kOneflowCnn(
    {.name = "oneflow_cnn",
     .framework = "OneFlow",
     .source = "OneFlow's ResNet-50, from the clock of every 20 iterations",
     .model = "resnet50",
     .example = "train: epoch 0, iter 20, loss: 7.087004, top_1: 0.000000, top_k: 0.000000, samples/s: "
                "3988.891 1597933942.9863544",
     .shape = "^train: epoch {epoch}, iter {iteration}, *samples/s: {any} {value}$",
     .index_step = 0,
     .decimals_at_end = 8,  // one more than the clock's: a whole line's number isn't known
     .rounding = Rounding::python_table,
     .size_words = {"batch_size_per_device", "gpu_num_per_node", "num_nodes"},
     .written_step = 20,
     .writes = "train: epoch 0, iter {done}, loss: {loss:.6f}, top_1: {top1:.6f}, top_k: 0.000000, "
               "samples/s: {images_per_second:.3f} {unix_seconds:.6f}",
     .stamps = StampKind::since_1970});

constexpr LogFormat kOneflowFace(
    {.name = "oneflow_face",
     .framework = "OneFlow",
     .source = "OneFlow's InsightFace, from each iteration's throughput",
     .example = "train: iter 25, loss 45.2, throughput: 245.290",
     .shape = "train: iter {iteration}, loss {any}, throughput: {value}$",
     .first_counted = 6,
     .counts_last_warmup = true,
     .decimals_at_end = 3,
     .written_step = 1,
     .writes = "train: iter {last}, loss {loss:.6f}, throughput: {images_per_second:.3f}"});

}  // namespace plumb
