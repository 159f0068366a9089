// Which parameters weight decay applies to.
#pragma once

namespace plumb {

// all: every tensor. no_bn: all except those with "bn" or "batchnorm" in their name (NVIDIA
// DeepLearningExamples, PyTorch: shortcut norms are called downsample.1 and do decay). weights_only: weights
// of convolutions and dense layers, and class centres.
enum class DecayRule { all, no_bn, weights_only };

}  // namespace plumb
