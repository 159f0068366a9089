// mpi_allreduce_loop BYTES ITERATIONS: a plain loop of MPI_Allreduce in place, to compare bench_allreduce
// with. Prints microseconds of an iteration, the median over iterations of the slowest rank.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int count = argc > 1 ? std::atoi(argv[1]) / 4 : 1 << 20;
  const int iterations = argc > 2 ? std::atoi(argv[2]) : 20, warmup = 5;
  std::vector<float> values(static_cast<std::size_t>(count), 0);
  std::vector<double> seconds(static_cast<std::size_t>(iterations)), slowest(seconds.size());
  MPI_Barrier(MPI_COMM_WORLD);
  double before = MPI_Wtime();
  for (int i = -warmup; i < iterations; ++i) {
    MPI_Allreduce(MPI_IN_PLACE, values.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    const double now = MPI_Wtime();
    if (i >= 0) seconds[static_cast<std::size_t>(i)] = now - before;
    before = now;
  }
  MPI_Reduce(seconds.data(), slowest.data(), iterations, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::sort(slowest.begin(), slowest.end());
  if (rank == 0) std::printf("%d bytes: %.1f us\n", 4 * count, 1e6 * slowest[slowest.size() / 2]);
  MPI_Finalize();
}
