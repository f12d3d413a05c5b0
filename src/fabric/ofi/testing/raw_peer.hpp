// SPDX-License-Identifier: Apache-2.0
// For tests: a peer that says what it likes, over TCP and by datagrams.
//
// Thread: one.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "base/loopback_address.hpp"
#include "fabric/ofi/datagram_end.hpp"
#include "fabric/ofi/testing/ofi_fixture.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::fabric::ofi {

/// Speaks the handshake by hand: a connection of TCP, and an end of its own.
class RawPeer {
 public:
  using DatagramHead = wire::ofi::DatagramHead;
  using DatagramKind = wire::ofi::DatagramKind;
  using Introduction = wire::ofi::Introduction;
  using Key = wire::ofi::Key;

  static constexpr const char* kProvider = "tcp+rxm";
  static constexpr std::uint64_t kNumber = 0x1234;

  explicit RawPeer(const Server& server)
      : server_(server),
        library_(*Library::load()),
        info_(*library_->find_datagrams(kProvider, roce::IpAddress::v4(127, 0, 0, 1))),
        end_(*DatagramEnd::open(library_, *info_.get())),
        socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    EXPECT_TRUE(end_->make_room(2));
    const base::LoopbackAddress at(AF_INET, server.endpoint->listens_at().udp_port);
    EXPECT_EQ(connect(socket_.number(), at.get(), at.bytes()), 0);
  }

  [[nodiscard]] Introduction introduction() const {
    Introduction own = end_->introduction();
    own.number = kNumber;
    return own;
  }
  void say(std::span<const std::byte> bytes) {
    EXPECT_EQ(::send(socket_.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void say(const Introduction& introduction) { say(std::as_bytes(std::span(&introduction, 1))); }

  void turn() {
    std::byte room[512];
    const auto came = recv(socket_.number(), room, sizeof room, MSG_DONTWAIT);
    if (came > 0) heard_.insert(heard_.end(), room, room + came);
    if (came == 0 || (came < 0 && errno != EAGAIN)) hung_up_ = true;
    Device::Completed some[Device::kAtATime];
    bool drained = false;
    for (const auto& each : std::span(some, end_->device().completed(some, drained))) {
      if (Link::leaves(each.tag)) continue;
      const auto receive = end_->receive_of(each.tag);
      if (!receive || !each.good) continue;
      const auto bytes = end_->arrived(*receive, each.bytes);
      datagrams_.emplace_back(bytes.begin(), bytes.end());
      end_->give_back(*receive);
    }
    while (!to_send_.empty() && try_to_send(to_send_.front())) {
      sent_.push_back(std::move(to_send_.front()));
      to_send_.pop_front();
    }
  }
  /// Whether the server has hung up.
  [[nodiscard]] bool is_sent_away() const { return hung_up_; }
  /// What the server has told of itself.
  [[nodiscard]] std::optional<Introduction> server_introduction() const {
    if (heard_.size() != sizeof(Introduction)) return {};
    return base::load_plain<Introduction>(heard_.data());
  }
  /// The key that the server has sent.
  [[nodiscard]] std::optional<std::uint64_t> key() const {
    for (const auto& datagram : datagrams_) {
      const auto head = base::load_plain<DatagramHead>(datagram.data());
      if (datagram.size() != sizeof head + sizeof(Key) || head.to != kNumber) continue;
      return base::load_plain<Key>(datagram.data() + sizeof head).number;
    }
    return {};
  }
  [[nodiscard]] const std::vector<std::vector<std::byte>>& datagrams() const { return datagrams_; }

  void send(std::span<const std::byte> bytes) { to_send_.emplace_back(bytes.begin(), bytes.end()); }
  void send(std::uint64_t to, std::uint32_t sequence, DatagramKind kind,
            std::span<const std::byte> payload) {
    std::vector<std::byte> bytes(sizeof(DatagramHead) + payload.size());
    const DatagramHead head{to, sequence, static_cast<std::uint8_t>(kind), {}};
    base::store_plain(bytes.data(), head);
    std::ranges::copy(payload, bytes.data() + sizeof head);
    to_send_.push_back(std::move(bytes));
  }
  void send_key(std::uint64_t key = 0x5678) {
    const Key mine{key};
    send(server_introduction()->number, 0, DatagramKind::key, std::as_bytes(std::span(&mine, 1)));
  }
  [[nodiscard]] bool has_sent_all() const { return to_send_.empty(); }

 private:
  bool try_to_send(std::span<const std::byte> bytes) {
    if (server_at_ == FI_ADDR_UNSPEC) {
      server_at_ = *end_->know(*server_introduction(), server_.endpoint->listens_at().ip);
    }
    return end_->send(server_at_, bytes, nullptr, reinterpret_cast<void*>(0x80)) == 0;
  }

  const Server& server_;
  std::shared_ptr<const Library> library_;
  Info info_;
  std::deque<std::vector<std::byte>> to_send_;
  std::deque<std::vector<std::byte>> sent_;
  std::unique_ptr<DatagramEnd> end_;
  memory::Descriptor socket_;
  fi_addr_t server_at_ = FI_ADDR_UNSPEC;
  std::vector<std::byte> heard_;
  bool hung_up_ = false;
  std::vector<std::vector<std::byte>> datagrams_;
};

}  // namespace espalier::fabric::ofi
