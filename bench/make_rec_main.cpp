#include "bench/make_rec.h"

int main(int argc, char** argv) {
  return plumb::run_make_rec(argc, argv);
}
