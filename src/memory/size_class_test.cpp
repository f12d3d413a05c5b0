// SPDX-License-Identifier: Apache-2.0
#include "memory/size_class.hpp"

#include <gtest/gtest.h>

namespace espalier::memory {
namespace {

TEST(SizeClass, HoldsWhatIsAskedForAndWastesAtMostAFifth) {
  constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 20;
  for (std::uint64_t bytes = 1; bytes <= kBytesMax; bytes += bytes < 9000 ? 1 : 511) {
    const SizeClass cls = class_of(bytes);
    ASSERT_LT(cls, kSmallClasses);
    ASSERT_GE(class_bytes(cls), bytes);
    if (cls > 0) {
      ASSERT_LT(class_bytes(cls - 1), bytes);
    }
    if (bytes > 4096) {
      ASSERT_LE((class_bytes(cls) - bytes) * 5, class_bytes(cls));
    }
  }
}

TEST(SizeClass, EdgesAreWhereTheTableSays) {
  EXPECT_EQ(class_of(0), 0u);
  EXPECT_EQ(class_of(1), 0u);
  EXPECT_EQ(class_of(512), 0u);
  EXPECT_EQ(class_of(513), 1u);
  EXPECT_EQ(class_bytes(class_of(640)), 1024u);
  EXPECT_EQ(class_bytes(class_of(4097)), 5120u);
  EXPECT_EQ(class_bytes(class_of(8192)), 8192u);
  EXPECT_EQ(class_bytes(class_of(8193)), 10240u);
  EXPECT_EQ(class_bytes(class_of(65536)), 65536u);
  EXPECT_EQ(class_bytes(class_of((16u << 20) + 32)), 18u << 20);
  EXPECT_EQ(class_of(kBufferBytesMax), kValueClasses - 1);
  EXPECT_EQ(class_of(kBufferBytesMax + 1), kClasses);
  EXPECT_EQ(class_of(~std::uint64_t{0}), kClasses);
}

TEST(SizeClass, KindsHaveClassesOfTheirOwn) {
  for (SizeClass cls = 0; cls < kClasses; ++cls) {
    const BufferKind kind = kind_of(cls);
    const std::uint64_t bytes = class_bytes(cls);
    EXPECT_EQ(class_of(bytes) == cls, kind == BufferKind::value) << cls;
    EXPECT_EQ(node_class_of(bytes) == cls, kind == BufferKind::node) << cls;
    EXPECT_EQ(table_class_of(bytes) == cls, kind == BufferKind::table) << cls;
    EXPECT_EQ(relation_class_of(bytes) == cls, kind == BufferKind::relation) << cls;
    EXPECT_EQ(bins_class_of(bytes) == cls, kind == BufferKind::bins) << cls;
    EXPECT_EQ(cls == kRecordsClass, kind == BufferKind::records) << cls;
  }
  EXPECT_EQ(class_bytes(node_class_of(8192)), 8192u);
  for (const std::uint64_t no_node : {0u, 256u, 513u, 1u << 17}) {
    EXPECT_EQ(node_class_of(no_node), kClasses);
  }
  EXPECT_EQ(class_bytes(table_class_of(192)), 512u);
  EXPECT_EQ(class_bytes(table_class_of(513)), 32768u);
  EXPECT_EQ(table_class_of(65537), kClasses);
  EXPECT_EQ(class_bytes(relation_class_of(1)), 32768u);
  EXPECT_EQ(class_bytes(relation_class_of(65537)), std::uint64_t{2} << 20);
  EXPECT_EQ(relation_class_of((std::uint64_t{2} << 20) + 1), kClasses);
  EXPECT_EQ(class_bytes(bins_class_of(1)), 512u);
  EXPECT_EQ(class_bytes(bins_class_of(513)), 16384u);
  EXPECT_EQ(class_bytes(bins_class_of(16385)), 65536u);
  EXPECT_EQ(class_bytes(bins_class_of(65537)), std::uint64_t{256} << 10);
  EXPECT_EQ(class_bytes(bins_class_of((std::uint64_t{1} << 20) + 1)), std::uint64_t{4} << 20);
  EXPECT_EQ(bins_class_of((std::uint64_t{1} << 30) + 1), kClasses);
}

}  // namespace
}  // namespace espalier::memory
