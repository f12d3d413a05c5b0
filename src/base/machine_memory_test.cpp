// SPDX-License-Identifier: Apache-2.0
#include "base/machine_memory.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/temporary_folder.hpp"

namespace espalier::base {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

/// A tree of control groups of the test's own.
class Cgroups : public testing::Test {
 protected:
  void process_is_in(const std::string& lines) const { std::ofstream(folder / "self") << lines; }
  void write(const std::string& file, const std::string& text) const {
    const fs::path path = folder / "root" / file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text << '\n';
  }

  TemporaryFolder folder;
  CgroupPlaces places{(folder / "self").string(), (folder / "root").string()};
};

TEST_F(Cgroups, WithoutThemThereIsNoLimit) {
  EXPECT_EQ(cgroup_memory_bytes(places), std::nullopt);
  EXPECT_EQ(usable_memory_bytes(places), machine_memory_bytes());
  process_is_in("0::/a\n");
  EXPECT_EQ(cgroup_memory_bytes(places), std::nullopt);
  write("a/memory.max", "max");
  EXPECT_EQ(cgroup_memory_bytes(places), std::nullopt);
}

TEST_F(Cgroups, TheLeastLimitOnTheWayCounts) {
  process_is_in("0::/a/b/c\n");
  write("a/b/c/memory.max", std::to_string(64 * kMiB));
  EXPECT_EQ(cgroup_memory_bytes(places), 64 * kMiB);
  write("a/b/memory.max", "max");
  write("a/memory.max", std::to_string(32 * kMiB));
  EXPECT_EQ(cgroup_memory_bytes(places), 32 * kMiB);
  write("x/memory.max", std::to_string(kMiB));  // of another group
  EXPECT_EQ(cgroup_memory_bytes(places), 32 * kMiB);
  EXPECT_EQ(usable_memory_bytes(places), 32 * kMiB);
  EXPECT_EQ(default_store_bytes(places), 24 * kMiB);
}

TEST_F(Cgroups, AContainerSeesItsOwnGroupInTheRoot) {
  process_is_in("0::/\n");
  write("memory.max", std::to_string(48 * kMiB));
  EXPECT_EQ(cgroup_memory_bytes(places), 48 * kMiB);
  process_is_in("0::/docker/0123\n");  // a path outside
  EXPECT_EQ(cgroup_memory_bytes(places), 48 * kMiB);
  write("../other/memory.max", std::to_string(kMiB));
  process_is_in("0::/../other\n");
  EXPECT_EQ(cgroup_memory_bytes(places), 48 * kMiB);
}

TEST_F(Cgroups, VersionOneHasItsMemoryInAHierarchyOfItsOwn) {
  process_is_in("12:cpu,cpuacct:/a\n5:pids,memory:/a/b\n0::/elsewhere\n");
  write("cpu/a/memory.limit_in_bytes", std::to_string(kMiB));
  write("memory/a/memory.limit_in_bytes", "9223372036854771712");  // no limit
  EXPECT_EQ(usable_memory_bytes(places), machine_memory_bytes());
  write("memory/a/b/memory.limit_in_bytes", std::to_string(96 * kMiB));
  EXPECT_EQ(usable_memory_bytes(places), 96 * kMiB);
}

TEST_F(Cgroups, NonsenseIsNoLimit) {
  process_is_in("\n:\n0:\nmemory\n0::\n1:memory\n0::/a:b\n");
  write("memory.max", "lots");
  write("a:b/memory.max", "-5");
  EXPECT_EQ(cgroup_memory_bytes(places), std::nullopt);
}

}  // namespace
}  // namespace espalier::base
