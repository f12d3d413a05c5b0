// SPDX-License-Identifier: Apache-2.0
// A node that is a member of a chain (docs/design/chains.md): it executes the decisions of
// chain/member.hpp. It receives messages at its door, sends through its links, appends records to
// its log and applies them to its store, holds the log's mark until the tail has acknowledged, and
// sets until when the node may answer clients.
//
//   door's thread        receives messages: the member decides, and records are queued
//   its own thread       applies, sends, moves the mark and the gate
//   membership's thread  reads views and proposes new ones; it may block for long
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
  /// All of it outlives the node.
  struct Terms {
    const Config& config;
    offload::Services& services;  ///< of the clients' store
    std::span<const offload::Kind> own_kinds;
    log::LogWriter& writer;
    log::LogFolder& log_folder;  ///< where that writer's log is, as this store's
    std::uint64_t store = 0;
    std::uint64_t log_bytes_max = 0;
    chain::RecordBuffer& buffer;      ///< has the records that recovery read
    const offload::Secrets* secrets;  ///< null: no authentication
    std::uint64_t recovered;          ///< the last sequence of the log
    /// Called by threads of its own with the reason why it has left the chain.
    std::function<void(const std::string&)> ended;
  };
  /// Takes its place in the chain. Errors: a sentence: of the membership, which lacks this member;
  /// of the data folder, which belongs to another chain or has what a chain does not support; of
  /// the address.
  static std::expected<std::unique_ptr<ChainNode>, std::string> start(const Terms& terms);
  /// Requires: no worker serves clients any more.
  ~ChainNode();
  ChainNode(const ChainNode&) = delete;
  ChainNode& operator=(const ChainNode&) = delete;

  /// Whether it has left the chain because no member has the records that it lacks: at the next
  /// start it begins with a newer checkpoint.
  [[nodiscard]] bool begins_anew() const;
  /// Waits until it is the head and may serve; from then on nothing more is applied to the store.
  /// Returns nothing then, or the reason why it will not be: "" if `stopped` says so.
  [[nodiscard]] std::optional<std::string> await_head(const std::function<bool()>& stopped);
  /// Why it has left the chain; empty: it has not.
  [[nodiscard]] std::string why_ended() const {
    const std::lock_guard lock(mutex_);
    return why_ended_;
  }
  /// Held while a record is applied to the store and appended to the log: its holder sees the store
  /// as of the log's records. Once it is the head nothing is applied.
  [[nodiscard]] std::mutex& applying() { return applying_; }
  /// Thread: any.
  [[nodiscard]] ChainNumbers numbers() const;
  /// Its state, and what it waits for, in lines. Thread: any.
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
  EventFd event_;                                // wakes its thread
  std::unique_ptr<offload::RedoTarget> target_;  // null: it is the head; used by its thread
  std::unique_ptr<ChainLinks> links_;            // used by its thread
  std::vector<Outgoing> due_;                    // likewise; not sent yet
  std::deque<Waiting> applies_;                  // likewise; taken from the inbox
  std::vector<ChainLinks::Ended> ended_;         // likewise
  std::uint64_t met_epoch_ = 0;                  // likewise: the epoch of its links
  log::LogReader reader_;                        // likewise
  GivenCheckpoint given_;                        // used by the door's thread

  std::mutex applying_;
  mutable std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  chain::Member member_;
  std::deque<Waiting> inbox_;
  std::size_t inbox_bytes_ = 0;  // includes applies_
  bool lacks_memory_ = false;    // for records that it has taken
  bool is_head_ = false;
  bool is_behind_ = false;    // the next member needs records that no buffer has any more
  std::string why_ended_;     // not empty: it has left the chain
  bool begins_anew_ = false;  // likewise
  // The joining node that has fetched a checkpoint, and the log's first record after that.
  std::uint32_t fetches_ = 0;
  std::uint64_t fetches_from_ = 0;
  std::string no_membership_;  // why the membership could not be read last
  std::optional<chain::View> proposal_;
  bool wants_view_ = false;
  std::vector<ChainLinks::LinkPointer> gone_;  // closed by the membership's thread
  std::uint64_t since_ns_ = 0;                 // when it last began to serve, or ended
  bool stopping_ = false;

  std::condition_variable membership_wake_;
  std::unique_ptr<ChainDoor> door_;
  std::thread thread_;
  std::thread membership_thread_;
  std::future<void> ending_;  // of the membership's thread: links close
};

}  // namespace espalier::node
