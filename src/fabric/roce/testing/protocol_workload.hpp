// SPDX-License-Identifier: Apache-2.0
// Three endpoints of `roce` on a network that loses, repeats, damages and reorders as a seed says,
// with several pairs between each two; each end asks random things of the other, and a model says
// what must come of it. engine_seeds_test.cpp runs many seeds, fabric_rules_planted_test.cpp shows
// that it sees rules broken.
//
// Invariants, of which the first violation is reported
// I1. Completions come in the order of posting, all successes, with the bytes and old values that
//     the model expects.
// I2. Messages are received once, in order, whole.
// I3. At the end each region is what the model says, and the tokens drawn from a shared word are
//     all numbers from 0, each once.
//
// Thread: one.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "base/random.hpp"
#include "fabric/roce/endpoint.hpp"
#include "fabric/roce/packet_network.hpp"

namespace espalier::fabric::roce::workload {

constexpr std::size_t kDataBytes = 128 * 1024;
constexpr std::size_t kSliceBytes = kDataBytes + 64;  // two words in front of the data
constexpr std::uint32_t kDepth = 32;
constexpr std::size_t kReceives = 16;
constexpr std::uint64_t kTooLongNs = 120'000'000'000;

/// What was reached, over any number of seeds.
struct Reached {
  EndpointCounters engine;
  PacketNetwork::Counters network;
  std::uint64_t completed = 0;
  std::uint64_t fences = 0;
  std::uint64_t wraps = 0;  // pairs whose PSNs went round
  std::uint64_t connected_again = 0;
};

struct Plan {
  std::uint32_t requests = 40;  // of each end
  std::uint32_t pairs = 2;      // between each two
  double loss_max = 0.2;
};

struct Machine {
  Machine(PacketNetwork& network, const PortAddress& at, std::uint32_t window, std::uint64_t seed,
          std::size_t slices_max)
      : address(at),
        memory(64 + slices_max * kSliceBytes),
        endpoint(network.open(at, window), *RegionTable::create(seed),
                 NumberSource::of_seed(seed)) {
    region =
        *endpoint.regions().offer({memory.data(), memory.size()},
                                  RemoteRights::read | RemoteRights::write | RemoteRights::atomic);
  }
  PortAddress address;
  std::vector<std::byte> memory;
  RoceEndpoint endpoint;
  Registration region;
  std::size_t slices = 0;             // that ends of peers have
  std::vector<std::uint64_t> tokens;  // that were drawn from its first word
};

/// Bytes of which each position and number has its own.
inline std::vector<std::byte> pattern(std::uint64_t number, std::size_t bytes) {
  std::vector<std::byte> made(bytes);
  base::Random(number).fill(made);
  return made;
}

/// One end of a pair: asks, and holds the answers against its model of the far slice.
class End {
 public:
  End(Machine& own, Machine& far, std::uint64_t seed, std::uint32_t mtu)
      : far_(far),
        random_(seed),
        mtu_(mtu),
        slice_(64 + far.slices++ * kSliceBytes),
        sends_(own.endpoint, 1024),
        receives_(own.endpoint, 1024),
        model_(kDataBytes),
        rooms_(kReceives, std::vector<std::byte>(8 * std::size_t{mtu})) {}

  QueuePairOptions options(base::Random& random) {
    QueuePairOptions made;
    made.sends = &sends_;
    made.receives = &receives_;
    made.send_depth = kDepth;
    made.receive_depth = kReceives;
    made.mtu_bytes = mtu_;
    made.reads_in_flight = std::array{1u, 4u, 128u}[random.below(3)];
    made.timeout_ns = 8'000'000;
    made.delayed_acks = random.chance(0.3);
    return made;
  }

  void turn(std::uint32_t requests, Reached& reached);
  [[nodiscard]] bool done(std::uint32_t requests) const {
    return asked_ == requests && posted_.empty() && incoming_.empty();
  }
  /// Whether the far slice is as the model has it.
  [[nodiscard]] bool slice_is_right() const;

  std::unique_ptr<QueuePair> pair;
  End* other = nullptr;
  std::string wrong;

 private:
  struct Posted {
    WorkRequest request;
    std::vector<std::byte> local;     // from where, or to where
    std::vector<std::byte> expected;  // of a READ
    std::optional<std::uint64_t> old_value;
  };
  struct Message {
    std::vector<std::byte> bytes;
    Opcode opcode = Opcode::send;
    std::uint32_t immediate = 0;
  };

  void fail(const std::string& what) {
    if (wrong.empty()) wrong = what;
  }
  [[nodiscard]] std::uint64_t far_at(std::size_t offset) const {
    return far_.region.remote().at(slice_ + offset);
  }
  std::size_t draw_bytes(std::size_t packets_max);
  void ask(bool last, Reached& reached);
  void ask_bytes(Posted& next, std::uint64_t kind, Reached& reached);
  void ask_word(Posted& next, std::uint64_t kind);
  [[nodiscard]] bool is_being_read(std::uint64_t remote, std::size_t bytes) const;
  void post_receives();
  void completed(const Completion& completion);
  void received(const Completion& completion);

  Machine& far_;
  base::Random random_;
  std::uint32_t mtu_;
  std::size_t slice_;
  CompletionQueue sends_;
  CompletionQueue receives_;
  std::vector<std::byte> model_;
  std::uint64_t sum_ = 0;
  std::uint64_t swapped_ = 0;
  std::uint32_t asked_ = 0;
  std::deque<Posted> posted_;
  std::deque<Message> incoming_;  // that are for this end
  std::vector<std::vector<std::byte>> rooms_;
  std::uint64_t receive_number_ = 0;
  std::uint64_t received_number_ = 0;
};

inline std::size_t End::draw_bytes(std::size_t packets_max) {
  const std::size_t mtu = mtu_;
  const std::array<std::size_t, 10> edges{0,   1,       8,       100,         mtu - 1,
                                          mtu, mtu + 1, 2 * mtu, 2 * mtu + 5, 3 * mtu - 1};
  if (random_.chance(0.8)) return edges[random_.below(edges.size())];
  return random_.between(0, packets_max * mtu);
}

inline bool End::is_being_read(std::uint64_t remote, std::size_t bytes) const {
  return std::any_of(posted_.begin(), posted_.end(), [&](const Posted& each) {
    return each.request.opcode == Opcode::read && each.request.remote < remote + bytes &&
           remote < each.request.remote + each.request.bytes;
  });
}

inline void End::ask_bytes(Posted& next, std::uint64_t kind, Reached& reached) {
  const std::uint64_t id = asked_;
  const bool message = kind >= 8;
  const std::size_t bytes = draw_bytes(message ? 8 : 20);
  if (message) {
    next.local = pattern(random_(), bytes);
    const bool number = random_.chance(0.5);
    next.request = number ? WorkRequest::send_immediate(id, next.local, asked_)
                          : WorkRequest::send(id, next.local);
    other->incoming_.push_back({next.local, next.request.opcode, asked_});
    return;
  }
  const std::size_t at = random_.below(kDataBytes - bytes + 1);
  const std::uint64_t remote = far_at(64 + at);
  const RegionKey key = far_.region.remote().key;
  const auto begin = model_.begin() + static_cast<std::ptrdiff_t>(at);
  if (kind < 4) {
    next.local.resize(bytes);
    next.expected.assign(begin, begin + static_cast<std::ptrdiff_t>(bytes));
    next.request = WorkRequest::read(id, next.local, key, remote);
    return;
  }
  next.local = pattern(random_(), bytes);
  std::copy(next.local.begin(), next.local.end(), begin);
  next.request = WorkRequest::write(id, next.local, key, remote);
  if (kind == 7) {
    next.request = WorkRequest::write_immediate(id, next.local, key, remote, asked_);
    other->incoming_.push_back({{}, Opcode::write_immediate, asked_});
  }
  // A READ whose answer is lost is read again, after what was written behind it.
  if (is_being_read(remote, bytes)) {
    ++reached.fences;
    next.request = next.request.after_fence();
  }
}

inline void End::ask_word(Posted& next, std::uint64_t kind) {
  const RegionKey key = far_.region.remote().key;
  if (kind == 0) {  // a token of the machine
    next.request = WorkRequest::fetch_add(asked_, key, far_.region.remote().at(0), 1);
  } else if (kind == 1) {
    const std::uint64_t add = random_();
    next.request = WorkRequest::fetch_add(asked_, key, far_at(0), add);
    next.old_value = sum_;
    sum_ += add;
  } else {
    const std::uint64_t compare = random_.chance(0.7) ? swapped_ : random_();
    next.request = WorkRequest::compare_swap(asked_, key, far_at(8), compare, random_());
    next.old_value = swapped_;
    if (compare == swapped_) swapped_ = next.request.operand;
  }
}

inline void End::ask(bool last, Reached& reached) {
  Posted next;
  const std::uint64_t kind = random_.below(16);
  if (kind < 11) ask_bytes(next, kind, reached);
  if (kind >= 11) ask_word(next, random_.below(3));
  const bool must_signal = last || posted_.size() + 1 >= kDepth || kind >= 11;
  if (!must_signal && random_.chance(0.3)) next.request = next.request.unsignalled();
  posted_.push_back(std::move(next));
  ++asked_;
  if (pair->post(posted_.back().request).taken != 1) fail("a request was not taken");
}

inline void End::post_receives() {
  // Not always as many as come, so that the peer has to wait for some.
  if (!random_.chance(0.1)) return;
  for (std::uint64_t left = random_.between(1, 6); left != 0; --left) {
    if (receive_number_ - received_number_ == kReceives) return;
    const Receive receive{receive_number_, rooms_[receive_number_ % kReceives]};
    if (pair->post_receives({&receive, 1}) != 1) return;
    ++receive_number_;
  }
}

inline void End::turn(std::uint32_t requests, Reached& reached) {
  if (pair->state() == QueuePair::State::error && !done(requests)) {
    fail("the pair ended: " + std::string(name(pair->ended_by())));
  }
  while (asked_ != requests && posted_.size() < kDepth && random_.chance(0.3)) {
    ask(asked_ + 1 == requests, reached);
  }
  post_receives();
  std::array<Completion, 16> completion;
  while (sends_.waiting() != 0) {
    const std::size_t count = sends_.poll(completion);
    reached.completed += count;
    for (std::size_t i = 0; i < count; ++i) completed(completion[i]);
  }
  while (receives_.waiting() != 0) {
    const std::size_t count = receives_.poll(completion);
    for (std::size_t i = 0; i < count; ++i) received(completion[i]);
  }
}

inline void End::completed(const Completion& completion) {
  if (completion.status != Status::success)
    return fail("ended by " + std::string(name(completion.status)));
  for (bool found = false; !found; posted_.pop_front()) {
    if (posted_.empty()) return fail("told twice, or out of order");
    const Posted& first = posted_.front();
    found = first.request.work_id == completion.work_id;
    if (!found && first.request.signalled) return fail("told out of order");
    if (first.local != first.expected && first.request.opcode == Opcode::read) {
      return fail("a READ brought other bytes");
    }
    if (!is_atomic(first.request.opcode)) continue;
    if (!first.old_value) far_.tokens.push_back(completion.old_value);
    if (first.old_value.value_or(completion.old_value) != completion.old_value) {
      return fail("an atomic brought another value");
    }
  }
}

inline void End::received(const Completion& completion) {
  if (completion.status != Status::success)
    return fail("receive ended " + std::string(name(completion.status)));
  if (incoming_.empty()) return fail("a message that nobody sent");
  const Message message = std::move(incoming_.front());
  incoming_.pop_front();
  if (completion.work_id != received_number_) return fail("a receive was skipped");
  const auto& room = rooms_[received_number_++ % kReceives];
  if (completion.with_immediate != has_immediate(message.opcode) ||
      (completion.with_immediate && completion.immediate != message.immediate)) {
    return fail("a message came with another number");
  }
  if (!is_send(message.opcode)) {
    if (completion.opcode != Opcode::receive_write) fail("a WRITE was told as a SEND");
    return;
  }
  if (completion.bytes != message.bytes.size() ||
      !std::equal(message.bytes.begin(), message.bytes.end(), room.begin())) {
    fail("a message came with other bytes");
  }
}

inline bool End::slice_is_right() const {
  const std::byte* const at = far_.memory.data() + slice_;
  return base::load_plain<std::uint64_t>(at) == sum_ &&
         base::load_plain<std::uint64_t>(at + 8) == swapped_ &&
         std::equal(model_.begin(), model_.end(), at + 64);
}

}  // namespace espalier::fabric::roce::workload
