// SPDX-License-Identifier: Apache-2.0
// Golden bytes of reads in one datagram, and which bytes are none.
#include "wire/datagram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/bytes.hpp"

namespace espalier::wire {
namespace {

DatagramRequest get() {
  DatagramRequest header{};
  header.magic = kDatagramMagic;
  header.version = kDatagramVersion;
  header.kind = static_cast<std::uint8_t>(DatagramKind::get);
  header.key_bytes = 3;
  header.session = 0x1122'3344'5566'7788;
  header.number = 9;
  header.map = 7;
  header.hint = 0x0102'0304'0506'0708;
  std::ranges::fill(header.tag, std::uint8_t{0xAB});
  return header;
}

DatagramReply found() {
  DatagramReply header{};
  header.magic = kDatagramMagic;
  header.version = kDatagramVersion;
  header.kind = static_cast<std::uint8_t>(DatagramKind::answer);
  header.status = static_cast<std::uint8_t>(DatagramStatus::found);
  header.session = 0x1122'3344'5566'7788;
  header.number = 9;
  header.item_version = 5;
  header.read_version = 6;
  std::ranges::fill(header.tag, std::uint8_t{0xCD});
  return header;
}

template <class Header>
std::string with(const Header& header, std::string_view rest) {
  return std::string(base::bytes_of(header)) + std::string(rest);
}
auto read_request(std::string_view text) {
  return read_datagram_request(std::as_bytes(std::span(text)));
}
auto read_reply(std::string_view text) {
  return read_datagram_reply(std::as_bytes(std::span(text)));
}

TEST(DatagramFormat, ARequestHasItsFieldsWhereTheDocumentDrawsThem) {
  const std::string golden = std::string("ESDG\1\3\3\0\x88\x77\x66\x55\x44\x33\x22\x11"
                                         "\x09\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0"
                                         "\x08\x07\x06\x05\x04\x03\x02\x01",
                                         40) +
                             std::string(16, '\xAB') + "key";
  EXPECT_EQ(with(get(), "key"), golden);
  const auto taken = read_request(golden);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->key, "key");
  EXPECT_EQ(taken->header.map, 7u);
  EXPECT_EQ(taken->header.hint, 0x0102'0304'0506'0708u);
}

TEST(DatagramFormat, AReplyHasItsFieldsWhereTheDocumentDrawsThem) {
  const std::string golden = std::string("ESDG\1\6\1\0\x88\x77\x66\x55\x44\x33\x22\x11"
                                         "\x09\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0"
                                         "\x06\0\0\0\0\0\0\0",
                                         40) +
                             std::string(16, '\xCD') + "value";
  EXPECT_EQ(with(found(), "value"), golden);
  const auto taken = read_reply(golden);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->payload, "value");
  EXPECT_EQ(taken->header.item_version, 5u);
  EXPECT_EQ(taken->header.read_version, 6u);
}

TEST(DatagramFormat, BytesThatAreNoRequest) {
  const std::string good = with(get(), "key");
  for (std::size_t bytes = 0; bytes < good.size(); ++bytes) {
    EXPECT_FALSE(read_request(good.substr(0, bytes))) << bytes;
  }
  EXPECT_FALSE(read_request(good + "x"));
  DatagramRequest longest = get();
  longest.key_bytes = kDatagramKeyBytesMax;
  EXPECT_TRUE(read_request(with(longest, std::string(longest.key_bytes, 'k'))));
  ++longest.key_bytes;
  EXPECT_FALSE(read_request(with(longest, std::string(longest.key_bytes, 'k'))));
  const auto refused = [](auto change, std::string_view key = "key") {
    DatagramRequest header = get();
    change(header);
    return !read_request(with(header, key));
  };
  EXPECT_TRUE(refused([](auto& header) { ++header.magic; }));
  EXPECT_TRUE(refused([](auto& header) { ++header.version; }));
  EXPECT_TRUE(refused([](auto& header) { header.limit = 1; }));
  EXPECT_TRUE(refused([](auto& header) { header.key_bytes = 0; }, ""));
  for (const int kind : {0, 1, 2, 4, 5, 6, 7, 255}) {
    EXPECT_TRUE(refused([&](auto& header) { header.kind = static_cast<std::uint8_t>(kind); }));
  }
}

TEST(DatagramFormat, AScanHasALimitAndItsEndBehindItsKey) {
  DatagramRequest scan = get();
  scan.kind = static_cast<std::uint8_t>(DatagramKind::scan);
  scan.limit = kDatagramItemsMax;
  scan.key_bytes = 2;
  const std::string whole = with(scan, "keyend");
  const auto taken = read_request(whole);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->key, "ke");
  EXPECT_EQ(taken->high, "yend");
  EXPECT_EQ(read_request(with(scan, "ke"))->high, "");
  EXPECT_FALSE(read_request(with(scan, "k")));
  scan.key_bytes = 0;
  EXPECT_EQ(read_request(with(scan, "end"))->high, "end") << "from the first key on";
  for (const std::uint32_t limit : {0u, kDatagramItemsMax + 1}) {
    scan.limit = limit;
    EXPECT_FALSE(read_request(with(scan, "end")));
  }
  DatagramRequest floor = get();
  floor.kind = static_cast<std::uint8_t>(DatagramKind::floor);
  EXPECT_EQ(read_request(with(floor, "key"))->key, "key");
  EXPECT_FALSE(read_request(with(floor, "key and more")));
  floor.limit = 1;
  EXPECT_FALSE(read_request(with(floor, "key")));
}

TEST(DatagramFormat, AHelloIsAsLongAsItsChallenge) {
  DatagramRequest hello = get();
  hello.kind = static_cast<std::uint8_t>(DatagramKind::hello);
  hello.map = 0;
  for (std::uint16_t bytes = 0; bytes < 40; ++bytes) {
    hello.key_bytes = bytes;
    EXPECT_EQ(read_request(with(hello, std::string(bytes, '\0'))).has_value(),
              bytes == kChallengeBytes);
  }
}

TEST(DatagramFormat, BytesThatAreNoReply) {
  const std::string good = with(found(), "");
  for (std::size_t bytes = 0; bytes < good.size(); ++bytes) {
    EXPECT_FALSE(read_reply(good.substr(0, bytes))) << bytes;
  }
  EXPECT_TRUE(read_reply(good + std::string(kDatagramValueBytesMax, 'v')));
  EXPECT_FALSE(read_reply(good + std::string(kDatagramValueBytesMax + 1, 'v')));
  const auto taken = [](DatagramKind kind, DatagramStatus status, std::size_t bytes) {
    DatagramReply header = found();
    header.kind = static_cast<std::uint8_t>(kind);
    header.status = static_cast<std::uint8_t>(status);
    return read_reply(with(header, std::string(bytes, 'v'))).has_value();
  };
  EXPECT_TRUE(taken(DatagramKind::challenge, DatagramStatus::invalid, kChallengeBytes));
  EXPECT_FALSE(taken(DatagramKind::challenge, DatagramStatus::invalid, kChallengeBytes - 1));
  EXPECT_FALSE(taken(DatagramKind::challenge, DatagramStatus::found, kChallengeBytes));
  EXPECT_TRUE(taken(DatagramKind::proved, DatagramStatus::invalid, 0));
  EXPECT_FALSE(taken(DatagramKind::proved, DatagramStatus::invalid, 1));
  EXPECT_FALSE(taken(DatagramKind::answer, DatagramStatus::invalid, 0));
  EXPECT_TRUE(taken(DatagramKind::answer, DatagramStatus::absent, 0));
  EXPECT_FALSE(taken(DatagramKind::answer, DatagramStatus::absent, 1));
  EXPECT_TRUE(taken(DatagramKind::answer, DatagramStatus::by_ring, 0));
  EXPECT_FALSE(taken(DatagramKind::answer, DatagramStatus::by_ring, 1));
  EXPECT_FALSE(taken(DatagramKind::answer, DatagramStatus{4}, 0));
  EXPECT_FALSE(taken(DatagramKind::get, DatagramStatus::found, 0));
}

}  // namespace
}  // namespace espalier::wire
