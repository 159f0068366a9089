// The text of a profiler's trace: unpacked if it is compressed by gzip, and with the backslashes of Windows
// paths doubled, which PyTorch's profiler writes as they are ("C:\Users"), so that it is JSON.
#pragma once

#include <zlib.h>

#include <filesystem>
#include <memory>
#include <streambuf>
#include <string>

namespace plumb {

class TraceStream : public std::streambuf {
 public:
  explicit TraceStream(const std::filesystem::path& file);

  bool is_open() const { return file_ != nullptr; }
  // False once the compressed bytes are damaged or end too early.
  bool is_whole() const { return whole_; }

 protected:
  int_type underflow() override;

 private:
  struct Close {
    void operator()(gzFile file) const { ::gzclose(file); }
  };
  std::unique_ptr<gzFile_s, Close> file_;
  std::string raw_, text_;  // what waits for more; what is given out
  bool whole_ = true, at_end_ = false;
};

}  // namespace plumb
