// SPDX-License-Identifier: Apache-2.0
// Gets of maps that come as datagrams (wire/datagram.hpp): what is taken, what is read, and what is
// sent to whom. Of sockets it knows nothing.
//
// What never happens
// - Nothing is sent for a datagram whose tag is not that of a session that is there, and no answer
//   goes to an address that the session has not proved.
// - No answer is given that the same get by rings would not be given: what a role or a name
//   forbids, another node's keys, maps without versions and long values are sent to the rings.
//
// Thread: one at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/datagram_sessions.hpp"
#include "kinds/map/offload/map_table.hpp"
#include "wire/datagram.hpp"

namespace espalier::offload {

struct ServingGate;

class DatagramReads final : private Handler {
 public:
  /// Gets that are walked together; more are dropped until step() has ended some.
  static constexpr std::size_t kGets = 32;

  struct Reply {
    DatagramSource to;
    std::size_t bytes = 0;
    std::array<std::byte, wire::kDatagramBytesMax> datagram;
  };

  /// `shard`: of counters.
  DatagramReads(Services& services, DatagramSessions& sessions, std::uint32_t shard);
  ~DatagramReads() override;

  /// Takes one datagram, of whatever bytes, as it came from there.
  void take(std::span<const std::byte> datagram, const DatagramSource& from, std::uint64_t now_ns);
  /// How many more it can take, whatever they are, with replies for all.
  [[nodiscard]] std::size_t places() const {
    return std::min(free_gets_.size(), replies_.size() - ready_);
  }
  /// One turn of the walks in flight. Returns whether there are any.
  bool step() { return maps_.step(); }
  /// What is to be sent, until forget_replies().
  [[nodiscard]] std::span<const Reply> replies() const { return {replies_.data(), ready_}; }
  void forget_replies() { ready_ = 0; }
  /// Now and then: lets go of maps that were dropped. Requires: no walk is in flight.
  void maintain() { maps_.let_go_of_dropped(); }

 private:
  /// A get in flight; what its walk points to.
  struct Get {
    std::shared_ptr<DatagramSession> session;
    wire::DatagramRequest asked;
    DatagramSource from;
    ServedMap* map = nullptr;
    espalier::Request walk;
    std::array<char, wire::kDatagramKeyBytesMax> key;
  };

  void done(const Completion& found) override;
  [[nodiscard]] bool take_checked(const std::shared_ptr<DatagramSession>& session,
                                  const wire::TakenRequest& request, const DatagramSource& from);
  [[nodiscard]] bool challenge(DatagramSession& session, const wire::DatagramRequest& hello,
                               const DatagramSource& from);
  [[nodiscard]] bool prove(DatagramSession& session, const wire::TakenRequest& proof,
                           const DatagramSource& from);
  [[nodiscard]] bool begin_get(const std::shared_ptr<DatagramSession>& session,
                               const wire::TakenRequest& get, const DatagramSource& from);
  [[nodiscard]] ServedMap* map_of(DatagramSession& session, const wire::TakenRequest& get,
                                  const DatagramSource& from);
  [[nodiscard]] wire::Ref hint_of(const wire::DatagramRequest& get) const;
  void refuse_access(const DatagramSession& session, std::uint32_t map, const DatagramSource& from,
                     const Error& why) noexcept;
  [[nodiscard]] bool send(const DatagramSession& session, const DatagramSource& to,
                          const wire::DatagramReply& header, std::span<const std::byte> payload);
  void answer(const DatagramSession& session, const Get& get, const Completion& found);
  [[nodiscard]] bool send_to_rings(const DatagramSession& session, std::uint64_t number,
                                   const DatagramSource& to);
  [[nodiscard]] bool may_hello(DatagramSession& session);
  [[nodiscard]] bool within_rate(DatagramRate& rate);
  void count_drop();

  Services& services_;
  DatagramSessions& sessions_;
  const ServingGate* const gate_;  // null: the node is in no chain
  const Offload* const get_offload_;
  MapTable maps_;
  std::vector<Get> gets_;
  std::vector<std::uint32_t> free_gets_;
  std::vector<Reply> replies_;
  std::size_t ready_ = 0;
  std::uint64_t now_ns_ = 0;  // as of the datagram that is taken
};

}  // namespace espalier::offload
