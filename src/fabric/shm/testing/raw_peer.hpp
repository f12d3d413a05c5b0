// SPDX-License-Identifier: Apache-2.0
// For tests: peers that speak the protocol by hand, and so can speak it wrongly.
//
// Thread: one at a time.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <bit>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/atomic_bytes.hpp"
#include "base/unix_address.hpp"
#include "fabric/shm/control_packets.hpp"
#include "fabric/shm/testing/shm_fixture.hpp"
#include "memory/seqpacket.hpp"

namespace espalier::fabric::shm {

inline constexpr std::uint32_t kSlots = 1024;

template <class T>
[[nodiscard]] std::span<const std::byte> packet_of(const T& packet) {
  return std::as_bytes(std::span(&packet, 1));
}

/// Speaks the protocol by hand, to a good target.
struct Raw {
  Raw() {
    EXPECT_TRUE(target.endpoint->listen(path()));
    socket = *memory::connect_packets(path());
  }
  [[nodiscard]] std::string path() const { return (folder / "s").string(); }

  void join() {
    EXPECT_TRUE(send_hello(socket.number(), {}, *table));
    std::optional<ConnectRequest> request;
    until(target, target, [&] { return (request = target.endpoint->next_request()).has_value(); });
    target.pair = *target.endpoint->accept(*request, target.options(), {});
    wire::FabricWelcome welcome;
    memory::Descriptor descriptors[2];
    const auto got = memory::receive_packet(
        socket.number(), std::as_writable_bytes(std::span(&welcome, 1)), descriptors);
    EXPECT_EQ(*got, sizeof welcome);
    EXPECT_EQ(welcome.ring_slots, kSlots);
    memory = *memory::SharedMemory::attach(
        std::move(descriptors[0]), wire::fabric_channel_bytes(kSlots), memory::Rights::write);
  }
  [[nodiscard]] std::byte* ring() const { return memory.at(wire::fabric_ring(0, kSlots)); }
  [[nodiscard]] std::byte* side(std::size_t field) const {
    return memory.at(offsetof(wire::FabricPage, sides) + field);
  }
  void put(wire::FabricPieceHead head) const {
    head.sequence = wire::fabric_sequence(0);
    const auto words = std::bit_cast<std::array<std::uint64_t, 4>>(head);
    for (std::size_t i = 4; i != 0; --i) {
      base::store_shared(ring() + 8 * (i - 1), words[i - 1], std::memory_order_release);
    }
  }
  void wait_for_the_end() {
    until(target, target, [&] { return target.pair->state() == QueuePair::State::error; });
  }
  // Whether a peer that is not hostile is still served.
  void expect_others_are_served() {
    Side good;
    target.pair.reset();
    connect(good, target, path(), good.options(), target.options());
    EXPECT_EQ(good.pair->state(), QueuePair::State::connected);
  }
  // Whether the target has closed the connection.
  void expect_hung_up() {
    std::array<std::byte, 512> packet;
    memory::Descriptor descriptors[2];
    while (true) {
      const auto got = memory::receive_packet(socket.number(), packet, descriptors);
      if (!got || *got == 0) return;
    }
  }

  base::TemporaryFolder folder;
  std::shared_ptr<RegionTable> table = *RegionTable::create();
  Side target;
  memory::Descriptor socket;
  memory::SharedMemory memory;
};

/// Listens by hand, for a good client.
struct RawTarget {
  RawTarget() {
    const auto address = base::UnixAddress::file(path());
    listening = memory::Descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(listening.number(), address->get(), address->bytes()), 0);
    EXPECT_EQ(::listen(listening.number(), 8), 0);
    client.pair = *client.endpoint->connect(path(), client.options(), {});
    socket = memory::Descriptor(::accept4(listening.number(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  [[nodiscard]] std::string path() const { return (folder / "s").string(); }
  void wait_for_the_end() {
    until(client, client, [&] { return client.pair->state() == QueuePair::State::error; });
  }

  base::TemporaryFolder folder;
  memory::Descriptor listening;
  Side client;
  memory::Descriptor socket;
};

}  // namespace espalier::fabric::shm
