#include <gtest/gtest.h>

#include <map>
#include <string>

#include "comm/launcher.h"

namespace plumb {
namespace {

using Variables = std::map<std::string, std::string>;

Environment environment_of(const Variables& variables) {
  return [&](const char* name) -> const char* {
    const auto variable = variables.find(name);
    return variable == variables.end() ? nullptr : variable->second.c_str();
  };
}

TEST(LaunchedAs, KnowsALauncherByItsVariables) {
  EXPECT_FALSE(has_launcher(environment_of({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}})));
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_FD", "PMIX_RANK"})
    EXPECT_TRUE(has_launcher(environment_of({{name, "1"}}))) << name;
}

TEST(LaunchedAs, ReadsTheVariablesOfLaunchers) {
  struct Case {
    const char* what;
    Variables variables;
    int rank, size;
  };
  const std::string batch = "4294967291", interactive = "4294967290";
  for (const Case& one : std::vector<Case>{
           {"outside a launcher", {}, 0, 1},
           {"Open MPI", {{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "4"}}, 3, 4},
           {"PMI", {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}, 1, 2},
           {"srun", {{"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "8"}, {"SLURM_STEP_ID", "0"}}, 5, 8},
           {"srun by PMIx", {{"PMIX_RANK", "6"}, {"SLURM_NTASKS", "8"}, {"SLURM_STEP_ID", "2"}}, 6, 8},
           {"a step smaller than its job",
            {{"SLURM_PROCID", "1"},
             {"SLURM_NTASKS", "8"},
             {"SLURM_STEP_NUM_TASKS", "2"},
             {"SLURM_STEP_ID", "1"}},
            1,
            2},
           {"a batch script", {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}, 0, 1},
           {"a batch script's step",
            {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_STEP_ID", batch}},
            0,
            1},
           {"a shell", {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_STEP_ID", interactive}}, 0, 1},
           {"mpirun inside Slurm",
            {{"OMPI_COMM_WORLD_RANK", "2"},
             {"OMPI_COMM_WORLD_SIZE", "4"},
             {"SLURM_PROCID", "0"},
             {"SLURM_NTASKS", "2"},
             {"SLURM_STEP_ID", "0"}},
            2,
            4},
           {"a rank that is not a number", {{"PMI_RANK", "one"}, {"PMI_SIZE", "2"}}, 0, 1},
           {"an empty size", {{"PMI_RANK", "1"}, {"PMI_SIZE", ""}}, 0, 1},
           {"a rank beyond the size", {{"PMI_RANK", "2"}, {"PMI_SIZE", "2"}}, 0, 1},
           {"no size", {{"PMI_RANK", "1"}}, 0, 1}}) {
    const LaunchedAs as = launched_as(environment_of(one.variables));
    EXPECT_EQ(as.rank, one.rank) << one.what;
    EXPECT_EQ(as.size, one.size) << one.what;
  }
}

}  // namespace
}  // namespace plumb
