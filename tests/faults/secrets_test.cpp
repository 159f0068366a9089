// S3: no environment secret reaches any output.
#include <gtest/gtest.h>

#include "tests/faults/started_program.h"

namespace plumb {
namespace {

TEST(Secrets, VariablesLikeTokensAppearNowhere) {
  const Place place;
  const std::string secret = "s3cr3t-9d2f";
  std::string environment = "OMP_DYNAMIC=false";
  for (const char* name : {"GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "HF_TOKEN", "SSH_AUTH_SOCK",
                           "MY_PASSWORD", "NCCL_TOKEN", "NCCL_DEBUG_FILE", "OMP_SECRET",
                           "OMPI_MCA_oob_secret", "SLURM_JWT", "CUDA_API_KEY", "DNNL_TOKEN", "PLUMB_TOKEN"})
    environment += std::string(" ") + name + "=" + secret;
  const Ended ended = place.run(place.bench(kSmall + "--iters 2 --json --verbose"), environment);
  ASSERT_EQ(ended.exit_code, 0);
  int files = 0;
  for (const std::string& name : place.contents()) {
    if (std::filesystem::is_directory(place.file(name))) continue;
    EXPECT_EQ(read_text(place.file(name)).find(secret), std::string::npos) << name;
    ++files;
  }
  EXPECT_GE(files, 4);  // log, result.json, env.json, program.json
  EXPECT_EQ(ended.output.find(secret), std::string::npos);
  for (const std::string& line : ended.lines) EXPECT_EQ(line.find(secret), std::string::npos) << line;
  // Variables that affect speed are kept.
  const std::vector<std::string> env_files = place.contents_ending_in("/env.json");
  ASSERT_EQ(env_files.size(), 1u);
  EXPECT_NE(read_text(place.file(env_files.front())).find("\"OMP_DYNAMIC\": \"false\""), std::string::npos);
}

}  // namespace
}  // namespace plumb
