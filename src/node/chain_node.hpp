// SPDX-License-Identifier: Apache-2.0
// A node that is a member of a chain (docs/design/chains.md): what chain/member.hpp decides, done.
// It hears the others at its door, says what is to be said by its links, appends what it takes to
// its log and applies it to its store, holds back the log's mark until the tail has acknowledged,
// and says until when the node may answer clients.
//
//   door's thread        hears messages: the member decides, and records wait to be applied
//   its own thread       applies, sends, moves the mark and the gate
//   membership's thread  reads the chain and proposes others; it may wait for long
//
// Thread: one starts and ends it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <expected>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "chain/member.hpp"
#include "chain/membership.hpp"
#include "chain/record_buffer.hpp"
#include "engine/redo_target.hpp"
#include "engine/serving_gate.hpp"
#include "log/log_file.hpp"
#include "log/log_reader.hpp"
#include "log/log_writer.hpp"
#include "node/chain_door.hpp"
#include "node/chain_links.hpp"
#include "node/config.hpp"
#include "node/event_fd.hpp"
#include "node/given_checkpoint.hpp"
#include "node/metrics.hpp"

namespace espalier::node {

class ChainNode final : private ChainListener {
 public:
  /// All of it outlives the chain's node.
  struct Terms {
    const Config& config;
    offload::Services& services;  ///< of the store that clients see
    std::span<const offload::Kind> own_kinds;
    log::LogWriter& writer;
    log::LogFolder& log_folder;  ///< where that writer's log lies, as that of this store
    std::uint64_t store = 0;
    std::uint64_t log_bytes_max = 0;
    chain::RecordBuffer& buffer;      ///< shown what recovery has read
    const offload::Secrets* secrets;  ///< null: nobody proves who he is
    std::uint64_t recovered;          ///< the last sequence of the log
    /// Is told, by threads of its own, why it does not take part any more.
    std::function<void(const std::string&)> ended;
  };
  /// Takes its place in the chain. Errors: a sentence: of the membership, which does not have this
  /// member, of the data folder, which is of another chain or has what no chain takes, of the
  /// address.
  static std::expected<std::unique_ptr<ChainNode>, std::string> start(const Terms& terms);
  /// Requires: no worker serves clients any more.
  ~ChainNode();
  ChainNode(const ChainNode&) = delete;
  ChainNode& operator=(const ChainNode&) = delete;

  /// Whether it does not take part any more because no member has the records that it lacks: when
  /// it is started again, it begins with a newer checkpoint.
  [[nodiscard]] bool begins_anew() const;
  /// Waits until it is the head and may serve; from then on nothing is applied to the store any
  /// more. Returns nothing then, or why it will not be: "" where `stopped` says so.
  [[nodiscard]] std::optional<std::string> await_head(const std::function<bool()>& stopped);
  /// Why it takes no part any more; empty: it does.
  [[nodiscard]] std::string why_ended() const {
    const std::lock_guard lock(mutex_);
    return why_ended_;
  }
  /// Is held while a record is applied to the store and goes to the log, so who holds it sees the
  /// store as the records of the log have made it. Once it is the head nothing is applied.
  [[nodiscard]] std::mutex& applying() { return applying_; }
  /// Thread: any.
  [[nodiscard]] ChainNumbers numbers() const;
  /// What it is, and what it waits for, in lines. Thread: any.
  [[nodiscard]] std::string status() override;

 private:
  struct Waiting {
    std::uint64_t sequence;
    std::string record;
  };
  struct Outgoing {
    chain::Message message;
    std::string records;
  };
  ChainNode(const Terms& terms, std::unique_ptr<chain::Membership> membership,
            const chain::View& view, std::uint32_t self);
  std::expected<void, std::string> begin(const chain::View& view);

  [[nodiscard]] bool enqueue(std::uint64_t first, std::deque<Waiting>& records);
  Result<chain::Message> hear(const chain::Message& message, std::string_view records) override;
  Result<chain_calls::Piece> fetch(const chain_calls::Wanted& wanted, std::string& data) override;
  void run();
  bool turn();
  void decide(std::uint64_t now_ns);
  void add_appends(std::uint64_t now_ns);
  bool add_append_from_disk();
  void keep_for_joining();
  void end_where_it_is_no_member();
  bool send();
  bool apply_some();
  [[nodiscard]] std::expected<bool, std::string> apply(const Waiting& next);
  void set_gate(std::uint64_t now_ns);
  void end(const std::string& why);
  void wait(bool moved);
  void keep_membership();
  void end_aside(std::vector<ChainLinks::LinkPointer> links);

  const Terms terms_;
  const std::string name_;
  const std::unique_ptr<chain::Membership> membership_;
  offload::ServingGate& gate_;
  EventFd event_;                                // its thread is to look
  std::unique_ptr<offload::RedoTarget> target_;  // null: it is the head; its thread's
  std::unique_ptr<ChainLinks> links_;            // its thread's
  std::vector<Outgoing> due_;                    // likewise; what no turn has sent yet
  std::deque<Waiting> applies_;                  // likewise; taken out of the inbox
  std::vector<ChainLinks::Ended> ended_;         // likewise
  std::uint64_t met_epoch_ = 0;                  // likewise: of which it has links
  log::LogReader reader_;                        // likewise
  GivenCheckpoint given_;                        // the door's thread's

  std::mutex applying_;
  mutable std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  chain::Member member_;
  std::deque<Waiting> inbox_;
  std::size_t inbox_bytes_ = 0;  // and of applies_
  bool lacks_memory_ = false;    // for what it has taken
  bool is_head_ = false;
  bool is_behind_ = false;    // the next member wants what is in no buffer any more
  std::string why_ended_;     // not empty: it takes no part any more
  bool begins_anew_ = false;  // likewise
  // Who joins, and has fetched a checkpoint, and the record with which the log goes on behind it.
  std::uint32_t fetches_ = 0;
  std::uint64_t fetches_from_ = 0;
  std::string no_membership_;  // why that could not be read last
  std::optional<chain::View> proposal_;
  bool wants_view_ = false;
  std::vector<ChainLinks::LinkPointer> gone_;  // that the membership's thread ends
  std::uint64_t since_ns_ = 0;                 // when it last began to serve, or ended
  bool stopping_ = false;

  std::condition_variable membership_wake_;
  std::unique_ptr<ChainDoor> door_;
  std::thread thread_;
  std::thread membership_thread_;
  std::future<void> ending_;  // the membership's thread's: links end
};

}  // namespace espalier::node
