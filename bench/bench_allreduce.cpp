// Times the collectives of training over its own communicators.
#include "bench/allreduce/run_allreduce.h"

int main(int argc, char** argv) {
  return plumb::run_allreduce_program(argc, argv);
}
