// SPDX-License-Identifier: Apache-2.0
// The memory of a connection, which the peer writes as it likes between any two calls: pieces in
// the ring towards us, its credits, the words of its good keys, and its answers
// for memory. Either the two ends of a ring alone, of a length that the input decides, in memory
// whose borders the sanitizer knows; or a pair with requests and receives posted, whose
// completions come once and in order, that writes nowhere but where the peer may, and that ends
// for good.
//
// Input: one byte of choices, then acts: a byte that says which, and what that needs.
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "base/testing/fuzz_input.hpp"
#include "fabric/shm/control_packets.hpp"
#include "fabric/shm/endpoint.hpp"
#include "fabric/shm/pair.hpp"
#include "memory/seqpacket.hpp"

namespace espalier::fabric::shm {
namespace {

using base::FuzzInput;
using base::want;

using base::load_shared;
using base::store_shared;
using memory::Descriptor;
using memory::SharedMemory;
using wire::FabricPiece;
using Buffer = std::vector<std::byte>;

constexpr std::byte kMark{0x3C};

/// A head whose sequence is that of this line, unless the input wants another.
wire::FabricPieceHead draw_head(FuzzInput& input, std::uint64_t slot) {
  wire::FabricPieceHead head{};
  head.sequence = wire::fabric_sequence(slot);
  head.kind = input.byte() % 8;
  head.bytes = input.odd_number<std::uint32_t>();
  head.message_bytes = input.below(2) != 0 ? head.bytes : input.odd_number<std::uint32_t>();
  head.immediate = head.bytes;
  return head;
}

/// As a peer puts it there: the sequence last.
void put(std::byte* at, const wire::FabricPieceHead& head) {
  const auto words = std::bit_cast<std::array<std::uint64_t, 4>>(head);
  for (std::size_t i = words.size(); i != 0; --i) {
    store_shared(at + 8 * (i - 1), words[i - 1], std::memory_order_release);
  }
}

/// A ring both of whose ends are ours, with a third writer.
class Alone {
 public:
  explicit Alone(std::uint8_t choices)
      : count_(wire::kFabricSlotsMin << (choices & 3)),
        // From the heap, so that it ends where the ring ends.
        slots_(std::make_unique<Line[]>(count_)),
        credit_(std::make_unique<std::uint64_t>(0)),
        reader_(ring(), count_, credit()),
        writer_(ring(), count_, credit()) {}

  void act(FuzzInput& input) {
    switch (input.below(5)) {
      case 0: put(slot(read_to_), draw_head(input, read_to_)); break;
      case 1: {
        const std::uint64_t at = 8 * input.below(std::uint64_t{count_} * 8);
        store_shared(ring() + at, input.odd_number<std::uint64_t>());
        break;
      }
      case 2: read(input); break;
      case 3: {
        const std::uint64_t longest = writer_.payload_max();
        write(static_cast<std::uint32_t>(input.below(longest + 1)));
        break;
      }
      default: store_shared(credit(), read_to_ + input.odd_number<std::uint64_t>()); break;
    }
    note_credit();
  }

 private:
  struct alignas(wire::kFabricSlotBytes) Line {
    std::byte bytes[wire::kFabricSlotBytes];
  };
  [[nodiscard]] std::byte* ring() const { return slots_[0].bytes; }
  [[nodiscard]] std::byte* slot(std::uint64_t number) const {
    return slots_[number % count_].bytes;
  }
  [[nodiscard]] std::byte* credit() const { return reinterpret_cast<std::byte*>(credit_.get()); }

  void read(FuzzInput& input) {
    const bool publishes = input.below(2) != 0;
    if (!reader_.ready()) return;
    wire::FabricPieceHead head;
    if (!reader_.look(head)) return;
    want(head.bytes <= wire::fabric_piece_bytes_max(count_), "a piece is longer than can be");
    const auto from = static_cast<std::uint32_t>(input.below(std::uint64_t{head.bytes} + 1));
    Buffer copy(head.bytes - from);
    reader_.copy(copy.data(), from, static_cast<std::uint32_t>(copy.size()));
    for (std::size_t i = 0; i < copy.size(); ++i) {
      const std::uint64_t at = read_to_ * wire::kFabricSlotBytes + sizeof head + from + i;
      want(copy[i] == ring()[at % (std::uint64_t{count_} * wire::kFabricSlotBytes)],
           "a byte comes from another place");
    }
    reader_.next(head);
    read_to_ += wire::fabric_slots(head.bytes);
    if (!publishes) return;
    reader_.publish_head();
  }
  void write(std::uint32_t bytes) {
    if (!writer_.fits(bytes)) return;
    const std::uint32_t slots = wire::fabric_slots(bytes);
    want(written_ + slots + 1 <= given_back_ + count_, "a line is written that was not read");
    const Buffer payload(bytes, kMark);
    writer_.write({0, bytes, 1, {}, 0, bytes, 0, 0}, payload.data());
    want(load_shared<std::uint32_t>(slot(written_)) == wire::fabric_sequence(written_),
         "a piece has another sequence than its line");
    written_ += slots;
    want(load_shared<std::uint64_t>(slot(written_)) == 0, "nothing marks the end");
  }
  /// What is said now counts, if it can be true.
  void note_credit() {
    const auto said = load_shared<std::uint64_t>(credit());
    if (said <= written_ && said > given_back_) given_back_ = said;
  }

  std::uint32_t count_;
  std::unique_ptr<Line[]> slots_;
  std::unique_ptr<std::uint64_t> credit_;
  PieceReader reader_;
  PieceWriter writer_;
  std::uint64_t read_to_ = 0;
  std::uint64_t written_ = 0;
  std::uint64_t given_back_ = 0;
};

/// What all pairs have in common, for it is long in the making.
struct World {
  static constexpr std::size_t kRegionBytes = 4096;
  static constexpr Domain kOtherDomain = 9;

  World() {
    const auto offer = [this](Buffer& memory, RemoteRights rights, Domain domain) {
      return *table->offer({memory.data(), memory.size(), -1, 0}, rights, domain);
    };
    all = offer(open, RemoteRights::read | RemoteRights::write | RemoteRights::atomic, 0);
    read = offer(to_read, RemoteRights::read | RemoteRights::atomic, 0);
    other = offer(of_others, RemoteRights::read | RemoteRights::write, kOtherDomain);
  }

  std::shared_ptr<RegionTable> table = *RegionTable::create(7);
  std::unique_ptr<Endpoint> endpoint = *shm::open(table);  // for its properties, and for queues
  Buffer open = Buffer(kRegionBytes);
  Buffer to_read = Buffer(kRegionBytes, kMark);
  Buffer of_others = Buffer(kRegionBytes, kMark);
  Registration all;
  Registration read;
  Registration other;
  // Of the peer: its good keys, and what it says to be a region.
  SharedMemory words = *SharedMemory::create("words", RegionTable::kRegionsMax * sizeof(RegionKey));
  SharedMemory theirs = *SharedMemory::create("theirs", 16384);
};

World& world() {
  static World made;
  return made;
}

/// A pair of ours whose peer is played by the input.
class Hostile {
 public:
  explicit Hostile(std::uint8_t choices)
      : sends_(*world().endpoint, 64), receives_(*world().endpoint, 64) {
    int ends[2];
    want(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0,
         "there is no socket");
    socket_ = Descriptor(ends[1]);
    for (const RegionKey key : kKeys) store_shared(word(key), key);
    link_ = std::make_shared<PairSocket>(Descriptor(ends[0]), PairSocket::Phase::open);
    link_->words = *SharedMemory::attach(*world().words.read_only(), world().words.bytes(),
                                         memory::Rights::read);
    QueuePairOptions options;
    options.sends = &sends_;
    options.receives = &receives_;
    options.send_depth = 16;
    options.receive_depth = 16;
    options.receive_retries = (choices & 1) != 0 ? 0 : 7;
    pair_ = std::make_unique<Pair>(1, options, world().endpoint->properties(),
                                   Host{*world().table, reader_, service_, pairs_, {}});
    want(pair_->accept(1, link_, {}).has_value(), "the pair cannot accept");
    wire::FabricWelcome welcome{};
    std::array<Descriptor, 2> descriptors;
    const auto got = memory::receive_packet(
        socket_.number(), std::as_writable_bytes(std::span(&welcome, 1)), descriptors);
    want(got && *got == sizeof welcome && welcome.refused == 0, "there is no welcome");
    slots_ = welcome.ring_slots;
    memory_ = *SharedMemory::attach(std::move(descriptors[0]), wire::fabric_channel_bytes(slots_),
                                    memory::Rights::write);
  }

  void act(FuzzInput& input) {
    const auto before = pair_->state();
    switch (input.below(12)) {
      case 0: bring_piece(input); break;
      case 1: scribble(input); break;
      case 2: publish_reading(input); break;
      case 3: pair_->progress(); break;
      case 4: hang_up(input); break;
      case 5: post_receive(input); break;
      case 6: post_request(input); break;
      case 7: answer(input); break;
      case 8: {
        std::byte* const at = word(draw_key(input));
        store_shared(at, input.odd_number<RegionKey>());
        break;
      }
      case 9: {
        pair_->set_asleep(input.below(2) != 0);
        static_cast<void>(pair_->has_work());
        static_cast<void>(pair_->due_ns());
        break;
      }
      case 10: keep_to_the_protocol(); break;
      default:
        if (input.byte() == 0) pair_->close();
        break;
    }
    check(before);
  }

 private:
  using State = QueuePair::State;
  static constexpr std::array<RegionKey, 2> kKeys{0x10003, 0x20044};

  [[nodiscard]] std::byte* slot(std::uint64_t number) const {
    return memory_.at(wire::fabric_ring(0, slots_) + number % slots_ * wire::kFabricSlotBytes);
  }
  /// A field of this peer's FabricSide.
  [[nodiscard]] std::byte* side(std::size_t field) const {
    return memory_.at(offsetof(wire::FabricPage, sides) + field);
  }
  [[nodiscard]] static std::byte* word(RegionKey key) {
    return world().words.at((key & 0xFFFF) * sizeof(RegionKey));
  }
  static RegionKey draw_key(FuzzInput& input) {
    const std::uint8_t kind = input.byte();
    return kind < 0xF0 ? kKeys[kind % kKeys.size()] : input.number<RegionKey>();
  }

  void bring_piece(FuzzInput& input) {
    wire::FabricPieceHead head = draw_head(input, slot_);
    const RemoteRegion& to = input.pick({&world().all, &world().read, &world().other})->remote();
    head.key = to.key + input.byte() / 0xF0;
    head.remote = to.base + input.odd_number<std::uint64_t>();
    put(slot(slot_), head);
    if (head.bytes > wire::fabric_piece_bytes_max(slots_)) return;
    slot_ += wire::fabric_slots(head.bytes);
    store_shared(slot(slot_), std::uint64_t{0});
  }
  void scribble(FuzzInput& input) {
    const std::uint64_t at = input.below(64);
    store_shared(slot(slot_ + at / 8) + 8 * (at % 8), input.odd_number<std::uint64_t>());
  }
  /// The state of both sides lies in a row; ours is last, and is not spared.
  void publish_reading(FuzzInput& input) {
    const auto value = input.odd_number<std::uint64_t>();
    switch (input.below(8)) {
      case 0: store_shared(side(offsetof(wire::FabricSide, credit)), value); break;
      case 1: store_shared(side(offsetof(wire::FabricSide, done)), value); break;
      case 2: store_shared(side(offsetof(wire::FabricSide, starved)), value); break;
      case 3:
        store_shared(side(offsetof(wire::FabricSide, failure)), static_cast<std::uint32_t>(value));
        break;
      case 4:
        store_shared(side(offsetof(wire::FabricSide, ended)), static_cast<std::uint32_t>(value));
        break;
      case 5:
        store_shared(side(offsetof(wire::FabricSide, sleeping)), static_cast<std::uint32_t>(value));
        break;
      default: store_shared(side(8 * input.below(32)), value); break;
    }
  }
  void hang_up(FuzzInput& input) {
    if (input.below(4) == 3) link_->lost.store(true);
    pair_->attend();
  }

  void post_receive(FuzzInput& input) {
    Buffer& into = buffers_.emplace_back(input.odd_number<std::uint16_t>());
    const Receive receive{receives_posted_ + 1, into};
    if (pair_->post_receives({&receive, 1}) == 0) return;
    ++receives_posted_;
    rooms_.push_back(into.size());
  }
  void post_request(FuzzInput& input) {
    const std::uint8_t kind = input.byte() % 7;
    Buffer& local = buffers_.emplace_back(input.odd_number<std::uint16_t>());
    const RegionKey key = draw_key(input);
    const std::uint64_t remote = kBase + input.odd_number<std::uint64_t>();
    const std::uint64_t id = requests_.size() + 1;
    const std::array choices{WorkRequest::read(id, local, key, remote),
                             WorkRequest::write(id, local, key, remote),
                             WorkRequest::write_immediate(id, local, key, remote, 5),
                             WorkRequest::send(id, local),
                             WorkRequest::send_immediate(id, local, 5),
                             WorkRequest::fetch_add(id, key, remote, 1),
                             WorkRequest::compare_swap(id, key, remote, 0, 1)};
    if (pair_->post(choices[kind]).taken != 0) requests_.push_back(choices[kind]);
  }

  /// What the service would make of what has come; but it is asked by a thread of its own, and the
  /// input is to decide when.
  void answer(FuzzInput& input) {
    const RegionKey asked = link_->asked.exchange(0);
    wire::FabricAnswer said{};
    said.packet = static_cast<std::uint32_t>(wire::FabricPacket::answer);
    said.key = input.byte() < 0xF0 ? asked : draw_key(input);
    const bool good = input.byte() < 0xE0;
    said.status = good ? 0 : input.byte();
    said.rights = input.byte() % 10;
    said.base = kBase + (input.byte() < 0xE0 ? 0 : input.odd_number<std::uint64_t>());
    said.bytes = input.odd_number<std::uint64_t>();
    said.descriptor_offset = input.odd_number<std::uint64_t>();
    const auto rights = input.below(4) == 3 ? memory::Rights::read : memory::Rights::write;
    auto descriptor = rights == memory::Rights::read
                          ? world().theirs.read_only()
                          : Result<Descriptor>(Descriptor(::dup(world().theirs.descriptor())));
    auto mapped = read_answer(std::as_bytes(std::span(&said, 1)), std::move(*descriptor), asked);
    if (!mapped) {
      link_->lost.store(true);
    } else {
      want(asked != 0 && said.key == asked, "an answer is taken that nobody asked for");
      check_mapped(*mapped, said);
      link_->put(std::move(*mapped));
    }
    pair_->attend();
  }
  static void check_mapped(const Mapped& mapped, const wire::FabricAnswer& said) {
    if (mapped.status != Status::success) return;
    want(said.status == 0 && mapped.window.key == said.key, "another key is answered");
    want(said.bytes <= world().theirs.bytes() &&
             said.descriptor_offset <= world().theirs.bytes() - said.bytes,
         "memory is mapped that there is not");
    want(mapped.window.at == mapped.memory.at(said.descriptor_offset) &&
             mapped.window.bytes == said.bytes,
         "a region is mapped elsewhere");
  }

  /// Everything that was sent has been taken, and room is made for more.
  void keep_to_the_protocol() {
    while (true) {
      const std::byte* const at =
          memory_.at(wire::fabric_ring(1, slots_) + read_ % slots_ * wire::kFabricSlotBytes);
      if (load_shared<std::uint32_t>(at) != wire::fabric_sequence(read_)) break;
      const auto head = base::load_plain<wire::FabricPieceHead>(at);
      want(head.bytes <= wire::fabric_piece_bytes_max(slots_), "a piece is too long");
      read_ += wire::fabric_slots(head.bytes);
      got_ += head.bytes;
      if (head.kind != static_cast<std::uint8_t>(FabricPiece::more)) message_ = head.message_bytes;
      if (got_ != message_) continue;
      got_ = 0;
      ++done_;
    }
    store_shared(side(offsetof(wire::FabricSide, credit)), read_);
    store_shared(side(offsetof(wire::FabricSide, done)), done_);
    pair_->progress();
    std::array<std::byte, kPacketBytesMax> packet;
    while (memory::receive_packet(socket_.number(), packet, {})) {
    }
  }

  void check(State before) {
    const State now = pair_->state();
    want(now >= before, "a pair goes back");
    if (now != before && now == State::error) {
      const auto completion = load_shared<std::uint32_t>(
          memory_.at(offsetof(wire::FabricPage, sides) + sizeof(wire::FabricSide) +
                     offsetof(wire::FabricSide, ended)));
      want(completion == 1 + static_cast<std::uint32_t>(pair_->ended_by()),
           "the end is told wrongly");
    }
    check_sends();
    check_receives();
    if (now == State::error) {
      want(sends_completed_ == requests_.size(), "a pair has ended, and requests are not told");
      want(receives_completed_ == receives_posted_, "a pair has ended, and receives are not told");
    }
    static const Buffer marked(World::kRegionBytes, kMark);
    want(std::memcmp(world().to_read.data(), marked.data(), marked.size()) == 0,
         "what can only be read is written");
    want(std::memcmp(world().of_others.data(), marked.data(), marked.size()) == 0,
         "what is for others is written");
  }
  void check_sends() {
    Completion completion;
    while (sends_.poll({&completion, 1}) != 0) {
      want(completion.work_id == ++sends_completed_, "a completion is out of order");
      want(sends_completed_ <= requests_.size(), "a completion is for nothing");
      const WorkRequest& request = requests_[completion.work_id - 1];
      const bool loads = request.opcode == Opcode::read || is_atomic(request.opcode);
      if (completion.status != Status::success || !loads || request.bytes == 0) continue;
      want(load_shared<RegionKey>(word(request.key)) == request.key,
           "a READ is a success, and its key is not good");
    }
  }
  void check_receives() {
    Completion completion;
    while (receives_.poll({&completion, 1}) != 0) {
      want(completion.work_id == ++receives_completed_, "a receive is told out of order");
      want(receives_completed_ <= receives_posted_, "a receive is told that is none");
      const bool message = completion.opcode == Opcode::receive;
      want(message || completion.opcode == Opcode::receive_write, "a receive is something else");
      want(completion.bytes <= kMessageBytesMax, "a message is longer than can be");
      want(!message || completion.status != Status::success ||
               completion.bytes <= rooms_[completion.work_id - 1],
           "a message is longer than its receive");
    }
  }

  static constexpr std::uint64_t kBase = 1 << 20;  // of a region of the peer

  std::deque<Buffer> buffers_;  // of requests and receives, each with its own borders
  std::vector<std::size_t> rooms_;
  std::vector<WorkRequest> requests_;
  std::uint64_t receives_posted_ = 0;
  std::uint64_t sends_completed_ = 0;
  std::uint64_t receives_completed_ = 0;

  RegionTable::Reader reader_{*world().table};
  Notice notice_;
  Service service_{*world().table, notice_};  // not started
  std::vector<Pair*> pairs_;
  CompletionQueue sends_;
  CompletionQueue receives_;
  std::shared_ptr<PairSocket> link_;
  std::unique_ptr<Pair> pair_;

  Descriptor socket_;
  SharedMemory memory_;
  std::uint32_t slots_ = 0;
  std::uint64_t slot_ = 0;  // where the next piece goes
  std::uint64_t read_ = 0;
  std::uint64_t got_ = 0;  // of the message that is read
  std::uint64_t message_ = 0;
  std::uint64_t done_ = 0;
};

template <class T>
void run(FuzzInput& input, std::uint8_t choices) {
  T played(choices);
  while (!input.over()) played.act(input);
}

}  // namespace
}  // namespace espalier::fabric::shm

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace shm = espalier::fabric::shm;
  espalier::base::FuzzInput input(data, size);
  const std::uint8_t choices = input.byte();
  if ((choices & 0x80) != 0) {
    shm::run<shm::Alone>(input, choices);
  } else {
    shm::run<shm::Hostile>(input, choices);
  }
  return 0;
}
