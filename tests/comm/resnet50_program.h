// The training step whose gradients the tests reduce; gradients don't depend on batch or image size.
#pragma once

#include "kernels/program/describe.h"
#include "models/resnet50.h"

namespace plumb {

inline Program resnet50_program() {
  return cpu::describe(make_resnet50({.batch = 2, .image_size = 64}), {}, {});
}

}  // namespace plumb
