// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/client/table_key.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

#include "base/temporary_folder.hpp"

namespace espalier {
namespace {

using client::TableKeyImpl;
using ::testing::HasSubstr;

constexpr const char* kDigits = "000102030405060708090a0b0c0d0eFf";

TEST(TableKey, IsReadFromDigits) {
  const auto key = TableKey::parse(kDigits);
  ASSERT_TRUE(key) << message(key.error());
  for (std::size_t i = 0; i < 15; ++i) EXPECT_EQ(TableKeyImpl::of(*key)[i], std::byte(i));
  EXPECT_EQ(TableKeyImpl::of(*key)[15], std::byte{0xFF});
  const auto same = TableKey::make(TableKeyImpl::of(*key));
  ASSERT_TRUE(same);
  EXPECT_EQ(TableKeyImpl::of(*same), TableKeyImpl::of(*key));
  for (const std::string wrong :
       {"", "00", "g00102030405060708090a0b0c0d0e0f", "000102030405060708090a0b0c0d0e0f00", "-1"}) {
    const auto refused = TableKey::parse(wrong);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_EQ(refused.error().error.code, Code::invalid_argument);
  }
}

TEST(TableKey, IsOneSecretPageHoweverOftenItIsCopied) {
  const std::size_t before = crypto::secret_pages_taken();
  {
    const TableKey key = *TableKey::parse(kDigits);
    const TableKey copy = key;  // NOLINT: that is what is tried
    EXPECT_EQ(crypto::secret_pages_taken(), before + 1);
    EXPECT_EQ(&TableKeyImpl::of(copy), &TableKeyImpl::of(key));
    EXPECT_FALSE(TableKey::parse("no key"));
    EXPECT_EQ(crypto::secret_pages_taken(), before + 1);
  }
  EXPECT_EQ(crypto::secret_pages_taken(), before);
}

TEST(TableKey, ComesFromFilesThatNobodyElseReads) {
  const base::TemporaryFolder folder;
  const auto read = [&](const std::string& text, mode_t mode) {
    const std::string path = (folder / "key").string();
    remove(path.c_str());
    std::ofstream(path) << text;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    const auto key = TableKey::read_file(path);
    return key ? std::string("read") : message(key.error());
  };
  const std::string digits = kDigits;
  EXPECT_EQ(read(digits, 0600), "read");
  EXPECT_EQ(read(digits + "\n", 0400), "read");
  EXPECT_THAT(read(digits, 0640), HasSubstr("has mode 0640, and others may read it"));
  EXPECT_THAT(read(digits, 0604), HasSubstr("has mode 0604"));
  EXPECT_THAT(read(digits, 0700), HasSubstr("has mode 0700"));
  for (const std::string& wrong :
       {std::string(), digits + "\n\n", digits + "0", digits.substr(1)}) {
    EXPECT_THAT(read(wrong, 0600), HasSubstr("has not 32 hexadecimal digits")) << wrong;
  }
  EXPECT_THAT(message(TableKey::read_file(folder.path().string()).error()),
              HasSubstr("is no file"));
  EXPECT_THAT(message(TableKey::read_file((folder / "none").string()).error()),
              HasSubstr("No such file"));
}

}  // namespace
}  // namespace espalier
