// Defaults of the bench programs' options that others than the programs know: results call a run usual whose
// config has them. Those of a model (length, image size, embedding, …) are in models/catalogue.h.
#pragma once

namespace plumb {

struct OptionDefaults {
  int bucket_mb = 25;
  double seconds = 0;
  bool overlap = true, autotune = true, share_gpu = false, deterministic = false;
  // As a command line names them.
  const char* optimizer = "sgd";
  const char* reduce_dtype = "same";
  const char* cuda_graph = "auto";
  const char* fusion = "auto";
  const char* conv = "auto";
  const char* loss_scale = "dynamic";  // with fp16
  const char* prelu = "channel";
  const char* head_dtype = "fp32";
};
inline constexpr OptionDefaults kDefaults;

}  // namespace plumb
