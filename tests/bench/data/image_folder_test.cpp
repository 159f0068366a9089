#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>

#include "bench/data/encoded_images.h"
#include "tests/bench/expect_error.h"
#include "tests/bench/image_files.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

const std::vector<std::uint8_t> kBytes = {1, 2, 3};

TEST(ImageFolderList, ClassesAndFilesAreSortedAndOtherFilesPassedOver) {
  const ScratchFolder folder;
  for (const char* name : {"wolf/b.jpg", "wolf/a.JPEG", "cat/2.jpeg", "cat/10.JPG", "cat/notes.txt",
                           "cat/.hidden.jpg", ".thumbnails/x.jpg", "wolf/deeper/c.jpg", "readme.jpg"})
    write_file(folder / name, kBytes);
  const auto found = open_folder(folder.path(), 1000);
  EXPECT_EQ(found->description(), "4 images in 2 classes from " + folder.path());
  ASSERT_EQ(found->count(), 4U);
  EXPECT_EQ(found->name_of(0), folder / "cat" / "10.JPG");
  EXPECT_EQ(found->name_of(1), folder / "cat" / "2.jpeg");
  EXPECT_EQ(found->name_of(2), folder / "wolf" / "a.JPEG");
  EXPECT_EQ(found->name_of(3), folder / "wolf" / "b.jpg");
  std::vector<std::uint8_t> buffer;
  EXPECT_EQ(found->read(1, buffer).label, 0);
  EXPECT_EQ(found->read(2, buffer).label, 1);
}

TEST(ImageFolderList, APipeAmongImagesIsCorruptAndNotWaitedFor) {
  const ScratchFolder folder;
  write_file(folder / "cat" / "a.jpg", kBytes);
  ASSERT_EQ(mkfifo((folder / "cat" / "b.jpg").c_str(), 0644), 0);
  const auto found = open_folder(folder.path(), 1000);
  std::vector<std::uint8_t> buffer;
  EXPECT_EQ(found->read(0, buffer).bytes.size(), kBytes.size());
  try {
    found->read(1, buffer);
    FAIL() << "a pipe was read";
  } catch (const CorruptImage& reason) {
    EXPECT_STREQ(reason.what(), "no regular file");
  }
}

TEST(ImageFolderList, WhatCannotBeTrainedOnIsNamed) {
  const ScratchFolder folder;
  const auto listing = [&](const std::string& name) { return [&, name] { open_folder(folder / name, 3); }; };
  expect_error(ExitCode::bad_data, {"--data", "nowhere", "No such file"}, listing("nowhere"));
  write_file(folder / "file", kBytes);
  expect_error(ExitCode::bad_data, {"--data", "file", "expected a folder"}, listing("file"));
  std::filesystem::create_directories(folder / "empty");
  expect_error(ExitCode::bad_data, {"empty", "expected class folders", "one subfolder"}, listing("empty"));
  write_file(folder / "holes/full/a.jpg", kBytes);
  write_file(folder / "holes/hollow/a.png", kBytes);
  expect_error(ExitCode::bad_data, {"\"hollow\"", "expected .jpg"}, listing("holes"));
  for (const char* name : {"many/a/a.jpg", "many/b/a.jpg", "many/c/a.jpg", "many/d/a.jpg"})
    write_file(folder / name, kBytes);
  expect_error(ExitCode::bad_data, {"4 class folders", "3 classes"}, listing("many"));
  write_file(folder / "linked/a/a.jpg", kBytes);
  for (const char* target : {"nowhere", "b"}) {
    std::filesystem::create_symlink(target, folder / "linked/b");
    expect_error(ExitCode::bad_data, {"linked", "\"b\" in it points to nothing"}, listing("linked"));
    std::filesystem::remove(folder / "linked/b");
  }
  std::filesystem::create_symlink("loop", folder / "loop");
  expect_error(ExitCode::bad_data, {"loop", "Too many levels"}, listing("loop"));
}

// Else images would be left out by chance.
TEST(ImageFolderList, TooManyOpenFilesAreNoCorruptImage) {
  const ScratchFolder folder;
  write_file(folder / "cat" / "a.jpg", kBytes);
  const auto found = open_folder(folder.path(), 1000);
  std::vector<std::uint8_t> buffer;
  rlimit usual{};
  getrlimit(RLIMIT_NOFILE, &usual);
  const rlimit none{0, usual.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  expect_error(ExitCode::io_error, {"a.jpg", "Too many open files", "ulimit -n"},
               [&] { found->read(0, buffer); });
  setrlimit(RLIMIT_NOFILE, &usual);
}

}  // namespace
}  // namespace plumb
