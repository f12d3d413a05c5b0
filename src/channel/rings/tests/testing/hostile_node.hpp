// SPDX-License-Identifier: Apache-2.0
// For tests: a node that violates its protocol towards its client by all means of the fabric's
// verbs: welcomes, slots, notes, credits, WRITEs to anywhere, silence, and sudden ends. Choices
// select what it does next.
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "channel/rings/tests/testing/choices.hpp"
#include "channel/rings/tests/testing/hostile_link.hpp"
#include "channel/rings/tests/testing/node_prover.hpp"
#include "fabric/sim/world.hpp"
#include "rings/testing/ring_client.hpp"

namespace espalier::client {

class HostileNode {
 public:
  /// `secret`: that of its client, which demands the node's proof of it; or null.
  HostileNode(fabric::sim::World& world, std::string name,
              std::shared_ptr<const KnownSecret> secret = nullptr)
      : world_(world), name_(std::move(name)), slots_(kMemoryBytes / sizeof(Line)) {
    if (secret) prover_.emplace(std::move(secret));
    begin(world.add_node(name_));
  }
  ~HostileNode() { end(); }
  HostileNode(const HostileNode&) = delete;
  HostileNode& operator=(const HostileNode&) = delete;

  /// Does one thing.
  void act(Choices& choices) {
    poll();
    if (auto request = endpoint_->next_request()) return answer(*request, choices);
    if (prover_ && prover_->heard_proof()) return prover_->prove(kToken, choices);
    if (!pair_) return;
    if (patient_) return go_on(choices);
    switch (choices.below(10)) {
      case 0:
      case 1:
      case 2: return carry(choices);
      case 3: return note(choices);
      case 4: return credit(choices);
      case 5: return write(choices);
      case 6: return send(std::string(length(choices), 'x'), immediate(choices));
      case 7: return takes_ = choices.one_in(2), void();
      case 8: return reach(choices);
      default: break;
    }
    if (choices.one_in(8)) return vanish();
    if (choices.one_in(4)) pair_->close();
  }

  /// The machine crashes; another one with its name listens, and has no state.
  void vanish() {
    world_.crash(name_);
    end();
    begin(world_.restart(name_));
  }
  /// The machine crashes for good.
  void crash() {
    world_.crash(name_);
    end();
  }

 private:
  struct alignas(64) Line {
    std::byte bytes[64] = {};
  };
  static constexpr std::uint64_t kMemoryBytes = std::uint64_t{64} << 10;
  static constexpr std::uint32_t kReceives = 32;
  static constexpr std::uint32_t kPostsMax = 256;
  static constexpr std::size_t kReceiveBytes = 4096;
  static constexpr wire::LinkToken kToken{1, 2};

  void begin(std::unique_ptr<fabric::Endpoint> endpoint) {
    endpoint_ = std::move(endpoint);
    completions_.emplace(*endpoint_, 1024);
    if (prover_) prover_->begin(*endpoint_);
    static_cast<void>(endpoint_->listen(name_));
    region_ = *endpoint_->regions().offer({slots_.data()->bytes, kMemoryBytes},
                                          fabric::RemoteRights::write);
  }
  void end() {
    if (pair_) pair_->close();
    pair_.reset();
    if (prover_) prover_->end();
    completions_.reset();
    region_.revoke();
    endpoint_.reset();
  }

  void poll() {
    fabric::Completion some[16];
    while (const std::size_t count = completions_->poll(some)) {
      for (std::size_t i = 0; i < count; ++i) {
        const bool came = some[i].opcode == fabric::Opcode::receive ||
                          some[i].opcode == fabric::Opcode::receive_write;
        if (!came) {
          --posted_;
        } else if (takes_ && is_up() && some[i].pair == pair_->number()) {
          post_receive(some[i].work_id);
        }
      }
    }
  }
  [[nodiscard]] bool is_up() const {
    return pair_ && pair_->state() == fabric::QueuePair::State::connected;
  }
  void post_receive(std::uint64_t number) {
    const fabric::Receive receive{
        number, std::span(buffers_).subspan(number * kReceiveBytes, kReceiveBytes)};
    pair_->post_receives({&receive, 1});
  }

  // --- the welcome ------------------------------------------------------------------------------

  void answer(const fabric::ConnectRequest& request, Choices& choices) {
    if (choices.one_in(16)) return;
    if (choices.one_in(16)) return endpoint_->reject(request);
    hello_ = {};
    std::memcpy(&hello_, request.data.data(), std::min(request.data.size(), sizeof hello_));
    wire::LinkWelcome welcome{};
    welcome.magic = wire::kLinkMagic;
    welcome.protocol = wire::kLinkProtocol;
    welcome.way = hello_.way;
    welcome.node_id = 7;
    if (prover_ && hello_.way == static_cast<std::uint8_t>(wire::LinkWay::prove)) {
      return prover_->challenge(*endpoint_, request, welcome, choices);
    }
    welcome.request_slots_log2 = hello_.request_slots_log2;
    welcome.response_slots_log2 = hello_.response_slots_log2;
    welcome.response_rings = hello_.response_rings;
    welcome.token = hello_.token == wire::LinkToken{} ? kToken : hello_.token;
    welcome.base = region_.remote().base;
    welcome.key = region_.remote().key;
    std::string bytes(base::bytes_of(welcome));
    if (choices.one_in(4)) {
      const std::size_t at = choices.below(bytes.size());
      bytes[at] = static_cast<char>(choices.below(256));
    }
    if (choices.one_in(16)) bytes.resize(choices.below(fabric::kAcceptDataMax + 1), '\7');
    fabric::QueuePairOptions options;
    options.sends = &*completions_;
    options.send_depth = kPostsMax;
    options.receive_depth = kReceives;
    options.timeout_ns = 100'000;
    if (pair_) pair_->close();
    poll();
    auto pair =
        endpoint_->accept(request, options, std::as_bytes(std::span(bytes.data(), bytes.size())));
    if (!pair) return;
    pair_ = std::move(*pair);
    patient_ = choices.one_in(2);
    tail_ = 0;
    for (std::uint32_t i = 0; i < kReceives; ++i) post_receive(i);
  }

  // --- what it says -----------------------------------------------------------------------------

  [[nodiscard]] wire::ConnectionLayout rings() const {
    return {1u << hello_.request_slots_log2, 1u << hello_.response_slots_log2,
            hello_.response_rings};
  }
  [[nodiscard]] bool sends() const {
    return hello_.way == static_cast<std::uint8_t>(wire::LinkWay::send);
  }
  std::span<const std::byte> keep(std::string bytes) {
    if (posted_ == 0) kept_.clear();
    const std::string& kept = kept_.emplace_back(std::move(bytes));
    return std::as_bytes(std::span(kept.data(), kept.size()));
  }
  void post(const fabric::WorkRequest& request) {
    if (posted_ < kPostsMax) posted_ += static_cast<std::uint32_t>(pair_->post(request).taken);
  }
  void send(std::string bytes, std::uint32_t immediate) {
    post(fabric::WorkRequest::send_immediate(0, keep(std::move(bytes)), immediate));
  }
  void write_at(std::uint64_t offset, std::string bytes, std::optional<std::uint32_t> immediate) {
    using fabric::WorkRequest;
    const auto kept = keep(std::move(bytes));
    const std::uint64_t at = hello_.base + offset;
    post(immediate ? WorkRequest::write_immediate(0, kept, hello_.key, at, *immediate)
                   : WorkRequest::write(0, kept, hello_.key, at));
  }

  // Answers to one of few tags, some of them in use; complete ones, or arbitrary bytes.
  void carry(Choices& choices) {
    wire::ResponseHeader header{};
    std::string payload = choices.bytes(choices.below(choices.one_in(4) ? 200 : 30));
    header.tag = static_cast<std::uint32_t>(choices.below(12));
    header.kind =
        static_cast<std::uint8_t>(choices.one_in(8) ? choices.below(256) : choices.between(1, 2));
    header.flags = static_cast<std::uint8_t>(choices.below(256));
    if (choices.one_in(4)) header.code = static_cast<std::uint16_t>(choices.below(40));
    header.bytes = static_cast<std::uint32_t>(sizeof header + payload.size());
    if (!patient_ && choices.one_in(16))
      header.bytes = static_cast<std::uint32_t>(choices.below(9000));
    std::string slots = to_slots(std::string(base::bytes_of(header)) + payload, tail_);
    while (!slots.empty()) {
      const std::uint64_t index = tail_ & (rings().response_slots - 1);
      const std::string part =
          slots.substr(0, (rings().response_slots - index) * wire::kRingSlotBytes);
      slots.erase(0, part.size());
      tail_ += part.size() / wire::kRingSlotBytes;
      wire::LinkNote said;
      said.slot = static_cast<std::uint32_t>(tail_);
      const bool lies = !patient_ && choices.one_in(16);
      const std::uint32_t note = lies ? immediate(choices) : wire::to_immediate(said);
      if (sends()) {
        send(part, note);
      } else {
        write_at(rings().responses(0) + index * wire::kRingSlotBytes, part, note);
      }
    }
  }

  // Nothing that ends a session, so that the client makes progress and has state to lose.
  void go_on(Choices& choices) {
    switch (choices.below(8)) {
      case 0: return credit(choices);
      case 1: return takes_ = !choices.one_in(4), void();
      case 2: return write_at(8 * choices.below(rings().bytes() / 8), choices.bytes(8), {});
      case 3: patient_ = !choices.one_in(8); return;
      default: return carry(choices);
    }
  }

  std::uint32_t immediate(Choices& choices) {
    if (choices.one_in(4)) return static_cast<std::uint32_t>(choices.word());
    wire::LinkNote note;
    note.kind = static_cast<wire::LinkNoteKind>(choices.below(4));
    note.ring = static_cast<std::uint32_t>(choices.below(choices.one_in(4) ? 16 : 2));
    note.slot = static_cast<std::uint32_t>(tail_ + choices.below(160) - 80);
    if (note.kind == wire::LinkNoteKind::close && !choices.one_in(4)) note.kind = {};
    return wire::to_immediate(note);
  }
  static std::size_t length(Choices& choices) {
    return choices.pick<std::size_t>({0, 8, 64, 1, 7, 9, 65, 128, 4096, 4097});
  }
  void note(Choices& choices) {
    if (choices.one_in(2)) return send({}, immediate(choices));
    write_at(0, {}, immediate(choices));
  }
  void credit(Choices& choices) {
    const std::uint64_t value = choices.one_in(4) ? choices.word() : choices.below(100);
    const std::string bytes(base::bytes_of(value));
    if (sends()) return send(bytes, wire::to_immediate({wire::LinkNoteKind::credit, 0, 0}));
    write_at(wire::kLinkPageOffset, bytes, {});
  }
  void write(Choices& choices) {
    const std::uint64_t bytes = rings().bytes();
    std::uint64_t offset = 8 * choices.below(bytes / 8);
    if (choices.one_in(3)) offset = 8 * choices.below(wire::kConnectionPageBytes / 8);
    if (choices.one_in(16)) offset = bytes - choices.below(64);
    std::string value(base::bytes_of(choices.below(200)));
    if (choices.one_in(2)) value = choices.bytes(choices.below(80));
    write_at(offset, std::move(value), {});
  }
  void reach(Choices& choices) {
    using fabric::WorkRequest;
    if (choices.one_in(2)) return post(WorkRequest::read(0, read_, hello_.key, hello_.base));
    post(WorkRequest::fetch_add(0, hello_.key, hello_.base, 1));
  }

  fabric::sim::World& world_;
  const std::string name_;
  std::vector<Line> slots_;
  std::vector<std::byte> buffers_ = std::vector<std::byte>(kReceives * kReceiveBytes);
  std::vector<std::byte> read_ = std::vector<std::byte>(64);
  std::unique_ptr<fabric::Endpoint> endpoint_;
  std::optional<fabric::CompletionQueue> completions_;
  std::optional<NodeProver> prover_;
  fabric::Registration region_;
  std::deque<std::string> kept_;
  std::unique_ptr<fabric::QueuePair> pair_;
  wire::LinkHello hello_{};
  std::uint64_t tail_ = 0;
  bool patient_ = false;  // does nothing that ends a session
  std::uint32_t posted_ = 0;
  bool takes_ = true;
};

}  // namespace espalier::client
