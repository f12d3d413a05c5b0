// SPDX-License-Identifier: Apache-2.0
#include "espalier/error.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <type_traits>

#include "espalier/kind.hpp"

namespace espalier {
namespace {

constexpr std::uint16_t kLastCode = 25;

TEST(Error, EveryCodeHasItsOwnNameAndSentence) {
  std::set<std::string_view> names;
  std::set<std::string> sentences;
  for (std::uint16_t i = 0; i <= kLastCode; ++i) {
    const Code code{i};
    EXPECT_NE(name(code), "unknown") << i;
    names.insert(name(code));
    const std::string text = message({code, 0, 0});
    EXPECT_EQ(text.back(), '.') << text;
    sentences.insert(text);
  }
  EXPECT_EQ(names.size(), kLastCode + 1u);
  EXPECT_EQ(sentences.size(), kLastCode + 1u);
}

TEST(Error, NumbersFromElsewhereAreToldApart) {
  const Code later{kLastCode + 1};
  EXPECT_EQ(name(later), "unknown") << "a new code needs a name, a sentence and this test";
  EXPECT_FALSE(message({later, 0, 0}).empty());
}

TEST(Error, DetailIsSaid) {
  EXPECT_NE(message({Code::system, 0, ENOMEM}).find("Cannot allocate memory"), std::string::npos);
  EXPECT_NE(message({Code::corrupt, 0, 42}).find("42"), std::string::npos);
}

TEST(Error, SaysWhatAClientMayNotDo) {
  std::set<std::string> sentences;
  for (std::uint32_t detail = 0; detail <= 6; ++detail) {
    sentences.insert(message({Code::not_permitted, 0, detail}));
  }
  EXPECT_EQ(sentences.size(), 7u);
  EXPECT_NE(message({Code::not_permitted, 0, 2}).find("the role write"), std::string::npos);
  EXPECT_NE(message({Code::not_permitted, 0, 4}).find("ESPALIER_SECRET_FILE"), std::string::npos);
}

TEST(Error, SaysWhyEtcdNamesNoNodes) {
  std::set<std::string> sentences;
  for (std::uint32_t detail = 0; detail <= 7; ++detail) {
    const std::string text = message({Code::no_chain, 0, detail});
    EXPECT_EQ(text.find("detail"), std::string::npos) << text;
    sentences.insert(text);
  }
  EXPECT_EQ(sentences.size(), 8u);
  EXPECT_NE(message({Code::no_chain, 0, 2}).find("ESPALIER_ETCD_FILE"), std::string::npos);
  EXPECT_NE(message({Code::no_chain, 0, 8}).find("(detail 8)"), std::string::npos);
}

TEST(Error, NamesTheShardWhoseNodeIsLost) {
  EXPECT_NE(message({Code::connection_lost, 0, 3}).find("node of shard 2 "), std::string::npos);
  EXPECT_EQ(message({Code::connection_lost, 0, 0}).find("shard"), std::string::npos);
  EXPECT_NE(message({Code::connection_lost, 0, 1084 << 16}).find("packets of 1084 bytes"),
            std::string::npos);
  EXPECT_NE(message({Code::connection_lost, 0, 1084 << 16 | 3}).find("packets of 1084 bytes"),
            std::string::npos);
}

TEST(Error, NamesTheKindThatHasAName) {
  const auto of = [](Code code, ObjectKind kind) {
    return message({code, 0, static_cast<std::uint32_t>(kind)});
  };
  EXPECT_NE(of(Code::already_exists, ObjectKind::map).find("taken by a map;"), std::string::npos);
  EXPECT_NE(of(Code::already_exists, ObjectKind::table).find("taken by a table;"),
            std::string::npos);
  EXPECT_NE(of(Code::wrong_kind, ObjectKind::table).find("it is a table"), std::string::npos);
  EXPECT_NE(of(Code::wrong_kind, ObjectKind::map).find("it is a map"), std::string::npos);
  // From a later version: a kind that this one does not know.
  EXPECT_NE(message({Code::wrong_kind, 0, 200}).find("it is an object of a kind"),
            std::string::npos);
  // A port is no kind.
  EXPECT_NE(message({Code::already_exists, 0, 9090}).find("9090"), std::string::npos);
}

TEST(Error, IsSmallAndPlain) {
  static_assert(sizeof(Error) == 8);
  static_assert(std::has_unique_object_representations_v<Error>);
  const Result<int> failed = fail(Code::not_found, 3);
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error(), (Error{Code::not_found, 0, 3}));
}

}  // namespace
}  // namespace espalier
