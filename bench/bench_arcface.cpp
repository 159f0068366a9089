// Trains face recognition (ArcFace, CosFace, Partial FC) and times it.
#include "bench/bench_main.h"

int main(int argc, char** argv) {
  return plumb::run_bench("bench_arcface", argc, argv);
}
