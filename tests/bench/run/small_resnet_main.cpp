// bench_resnet50 with the small network.
#include "bench/bench_main.h"
#include "tests/bench/run/small_resnet.h"

int main(int argc, char** argv) {
  return plumb::run_bench("bench_resnet50", argc, argv, plumb::small_resnet());
}
