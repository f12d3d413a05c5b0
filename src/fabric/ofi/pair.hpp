// SPDX-License-Identifier: Apache-2.0
// A queue pair over libfabric: requester and responder, in records.
//
// The peer's software executes requests in order, and answers in that order. A request that cannot
// be executed yet, since it needs a receive or its answer finds no room, is queued with all
// requests behind it; answers that arrive behind it are not. So one side's waiting does not block
// the other's requests.
//
// Invariants
// I1. Queued requests fit kWindowBytes: a peer that sends more than that ends the pair.
// I2. completed requests <= requests sent wholly, but for one that failed before.
// I3. Once the pair has ended, the channel is not its own.
//
// Thread: that of its endpoint.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fabric/ofi/channel.hpp"
#include "fabric/ofi/frame_reader.hpp"
#include "fabric/queue_pair.hpp"
#include "fabric/region_table.hpp"
#include "fabric/send_queue.hpp"

namespace espalier::fabric::ofi {

class Pair;

/// The longest message, READ or WRITE.
inline constexpr std::uint32_t kMessageBytesMax = 16u << 20;
inline constexpr std::uint32_t kInlineBytesMax = 256;
/// So many requests for READs and atomics fit the peer's window.
inline constexpr std::uint32_t kReadsInFlightMax = 1024;

inline constexpr Properties kProperties{
    .transport = "ofi",
    .reads_in_order = true,
    .write_is_placed = true,   // what acknowledges it has placed it
    .write_is_durable = true,  // the same, for a card brings messages, and nothing else
    .atomic_with_processor = true,
    .peer_makes_progress = true,
    .inline_bytes_max = kInlineBytesMax,
    .message_bytes_max = kMessageBytesMax,
    .reads_in_flight_max = kReadsInFlightMax,
};

/// What the pairs of an endpoint have in common.
struct Host {
  RegionTable::Reader& reader;
  std::vector<Pair*>& pairs;
};

class Pair final : public QueuePair, private FrameTaker {
 public:
  Pair(std::uint32_t number, const QueuePairOptions& options, const Properties& properties,
       const Host& host, Channel& channel);
  ~Pair() override;

  void close() override { end(Status::success); }

  // For the endpoint.

  /// Sends the greeting, as soon as the channel is up.
  void greet(std::span<const std::byte> data);
  /// Becomes connected to a client that has sent a greeting with this data.
  void welcome(std::span<const std::byte> peer_data, std::span<const std::byte> data);
  /// Makes progress. `now_ns` is base::monotonic_ns(). Returns whether there was anything but
  /// frames to send.
  bool progress(std::uint64_t now_ns);
  /// The next deadline of progress(), on that clock; 0: none.
  [[nodiscard]] std::uint64_t due_ns() const;

 private:
  // The message of the peer that has begun to come.
  struct Incoming {
    bool open = false;
    wire::ofi::RecordHead first{};
    std::optional<Receive> receive;
    std::uint32_t got = 0;
  };
  enum class Done : std::uint8_t { yes, not_yet, failed };

  std::size_t begin(std::span<const WorkRequest> requests) override;
  void take_frame(std::span<const std::byte> frame) override;
  void lose_channel() override;

  // Beginning and ending: pair.cpp.
  void take_reply(const Record& record);
  void end(Status why, Status failure = Status::success);
  void end_by_peer(const Record& record);
  void finish(Status why);
  void fail_oldest(Status why);

  // What is asked: pair_ask.cpp.
  void ask_on();
  [[nodiscard]] bool ask_next();
  [[nodiscard]] std::uint32_t window_left() const;
  [[nodiscard]] bool at_peer() const { return queue_.any_begun() || written_.has_value(); }
  void take_answer(const Record& record);
  void take_data(const Record& record);
  void complete_oldest(std::uint64_t old_value = 0);
  void look_at_clock(std::uint64_t now_ns);

  // What is answered: pair_answer.cpp.
  void take_request(const Record& record);
  bool answer_on();
  [[nodiscard]] Done answer(const Record& record);
  [[nodiscard]] Done answer_read(const Record& record);
  [[nodiscard]] Done answer_atomic(const Record& record);
  [[nodiscard]] std::optional<std::uint64_t> change_word(const Record& record);
  [[nodiscard]] Done begin_message(const Record& record);
  [[nodiscard]] Done answer_part(const Record& record);
  [[nodiscard]] bool place(const Record& record);
  void finish_message();
  void say_short(wire::ofi::RecordKind kind);
  Done refuse(Status why);

  Host host_;
  Channel* channel_;  // null: ended

  SendQueue queue_;
  std::uint64_t asked_bytes_ = 0;         // of requests, in records, since the beginning
  std::uint64_t peer_did_ = 0;            // those among them that the peer has done
  std::optional<std::uint32_t> written_;  // of the next request, which has begun to be sent
  std::uint32_t read_ = 0;                // bytes of the oldest READ that have come
  std::uint32_t reads_ = 0;               // READs and atomics under way
  std::uint64_t starving_since_ns_ = 0;   // 0: the peer has not said that it wants a receive
  bool heard_ = false;                    // since the last check of timers
  std::uint64_t ask_again_ns_ = 0;        // the next keepalive probe; 0: none
  std::uint32_t tries_ = 0;

  std::vector<std::byte> aside_;  // records of requests that cannot be done yet
  std::size_t aside_begin_ = 0;
  std::uint64_t came_bytes_ = 0;  // of requests, in records, since the beginning
  std::uint64_t did_bytes_ = 0;   // those among them that are done
  Incoming incoming_;
  std::uint32_t answered_ = 0;  // bytes of the READ that is being answered
  bool starved_reported_ = false;  // of the request that waits
  std::uint64_t now_ns_ = 0;    // of the last progress()
};

}  // namespace espalier::fabric::ofi
