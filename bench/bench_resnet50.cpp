// Trains ResNet-50 v1.5 and times it.
#include "bench/bench_main.h"

int main(int argc, char** argv) {
  return plumb::run_bench("bench_resnet50", argc, argv);
}
