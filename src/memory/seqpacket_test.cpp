// SPDX-License-Identifier: Apache-2.0
#include "memory/seqpacket.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <span>
#include <string>
#include <vector>

namespace espalier::memory {
namespace {

class Packets : public testing::Test {
 protected:
  Packets() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return;
    here = Descriptor(ends[0]);
    there = Descriptor(ends[1]);
  }
  static std::span<const std::byte> bytes(const std::string& text) {
    return std::as_bytes(std::span(text));
  }
  static ino_t file_of(int descriptor) {
    struct stat found{};
    return ::fstat(descriptor, &found) == 0 ? found.st_ino : 0;
  }
  // The number that the next descriptor will have: if it stays, none was leaked.
  static int next_number() {
    return Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)).number();
  }

  Descriptor here;
  Descriptor there;
};

TEST_F(Packets, ComeWithTheirDescriptorsInOrder) {
  auto first = SharedMemory::create("first", 4096);
  auto second = SharedMemory::create("second", 4096);
  ASSERT_TRUE(first && second);
  ASSERT_TRUE(send_packet(here.number(), bytes("hello"),
                          std::vector{first->descriptor(), second->descriptor()}));
  std::byte packet[16];
  Descriptor descriptors[3];
  const auto got = receive_packet(there.number(), packet, descriptors);
  ASSERT_TRUE(got);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(packet), *got), "hello");
  EXPECT_EQ(file_of(descriptors[0].number()), file_of(first->descriptor()));
  EXPECT_EQ(file_of(descriptors[1].number()), file_of(second->descriptor()));
  EXPECT_FALSE(descriptors[2]);
}

TEST_F(Packets, DescriptorsWithoutAPlaceAreClosed) {
  const int before = next_number();
  const std::vector<int> many(kPassedDescriptorsMax, here.number());
  ASSERT_TRUE(send_packet(here.number(), bytes("x"), many));
  std::byte packet[1];
  ASSERT_TRUE(receive_packet(there.number(), packet, {}));
  EXPECT_EQ(next_number(), before);
}

TEST_F(Packets, OfALongerOneComesTheBeginningAndOfAnEndNothing) {
  ASSERT_TRUE(send_packet(here.number(), bytes("long")));
  here.close();
  std::byte packet[2];
  EXPECT_EQ(receive_packet(there.number(), packet, {}), std::size_t{2});
  EXPECT_EQ(receive_packet(there.number(), packet, {}), std::size_t{0});
  EXPECT_EQ(send_packet(there.number(), bytes("x")).error(), (Error{Code::system, 0, EPIPE}));
}

TEST_F(Packets, WhatIsNoSocketCannotBeConnected) {
  EXPECT_EQ(connect_packets("").error().code, Code::invalid_argument);
  EXPECT_EQ(connect_packets("/dev/null").error().code, Code::system);
}

}  // namespace
}  // namespace espalier::memory
