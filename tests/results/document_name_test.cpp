#include <gtest/gtest.h>

#include "results/report/report_curves.h"

namespace plumb {
namespace {

TEST(DocumentName, NamesRepositoryAndDocumentWithoutCommitAndLine) {
  const std::vector<std::pair<std::string, std::string>> names{
      {"DLPerf/PyTorch/resnet50v1.5/README.md:454", "DLPerf PyTorch README"},
      {"DLPerf/NVIDIADeepLearningExamples/TensorFlow/.../README.md:403",
       "DLPerf NVIDIADeepLearningExamples TensorFlow README"},
      {"DLPerf/README.md:122", "DLPerf README"},
      {"DLPerf/OneFlow/.../reports/rn50_fp32_report_0821.md:68", "DLPerf rn50 fp32 report 0821"},
      {"DLPerf/PaddlePaddle/resnet50v1.5/README.md:220 (printed by its script)",
       "DLPerf PaddlePaddle README"},
      {"DLPerf@1cc7523:MxNet/InsightFace/ArcFace/README.md:10", "DLPerf MxNet InsightFace ArcFace README"},
      {"DLPerf branch dev_paddle_plsc_arcface@0aadb1e:PaddlePaddle/PLSC/README.md:170",
       "DLPerf PaddlePaddle PLSC README"},
      {"deepinsight/insightface@7fadd420:benchmarks/train/nvidia_a100.md:41", "insightface nvidia a100"},
      {"PaddlePaddle/Perf@e7a07c4:ResNet50V1.5/README.md:9", "Perf README"},
      {"mlcommons/training_results_v4.0:NVIDIA/results/h200_ngc24.04_mxnet/resnet/result_*.txt",
       "h200_ngc24.04_mxnet"}};
  for (const auto& [source, name] : names) EXPECT_EQ(document_name(source), name);
}

TEST(DocumentName, NoPublishedSourceGivesALineOrALink) {
  for (const PublishedResult& row : published_results()) {
    const std::string name = document_name(row.source);
    EXPECT_FALSE(name.empty()) << row.source;
    EXPECT_EQ(name.find_first_of(":/@"), std::string::npos) << name;
  }
}

TEST(DocumentName, RemarksAreShortAndWithoutWhatLabelsHave) {
  PublishedResult row;
  row.notes = "batch size = 196 &  with dali & without xla; computed: mean of 3; GPU: V100";
  EXPECT_EQ(table_remarks(row), "with dali, without xla");
  row.notes = "batch/precision of this table taken from the identical DLPerf README table";
  EXPECT_EQ(table_remarks(row), "");
}

}  // namespace
}  // namespace plumb
