// SPDX-License-Identifier: Apache-2.0
// Either end of a memif link, whose peer says and writes what it likes: messages good, spoiled and
// arbitrary, with descriptors of all kinds, and words all over the memory that is shared. A link
// goes up once and ends once, sends the peer no more than the protocol has, hands out frames that
// lie in memory of our own, and leaves no descriptor behind.
//
// Input: one byte of choices, then acts: a byte that says which, and what that needs. What happens
// in the rings, ring_fuzz.cpp looks at more closely.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "base/temporary_folder.hpp"
#include "base/testing/fuzz_input.hpp"
#include "base/testing/open_descriptors.hpp"
#include "base/unix_address.hpp"
#include "fabric/memif/link.hpp"
#include "fabric/memif/testing/raw_peer.hpp"

namespace espalier::fabric::memif {
namespace {

using base::FuzzInput;
using base::want;

using format::MessageType;
using memory::Descriptor;
using memory::SharedMemory;

constexpr std::uint32_t kNumbers = 4;  // links that are free: those below
constexpr int kInputsOfACount = 256;

/// What all inputs have in common: where to meet, and what may come instead of memory or an event.
struct World {
  World() {
    const auto address = base::UnixAddress::file(path);
    listening = Descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    want(::bind(listening.number(), address->get(), address->bytes()) == 0, "cannot bind");
    want(::listen(listening.number(), 8) == 0, "cannot listen");
    want(::ftruncate(loose.number(), RawPeer::kBytes) == 0, "there is no memory");
    int ends[2];
    want(::pipe2(ends, O_CLOEXEC) == 0, "there is no pipe");
    read_end = Descriptor(ends[0]);
    write_end = Descriptor(ends[1]);
  }
  [[nodiscard]] Descriptor accept() const {
    Descriptor made(::accept4(listening.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    want(static_cast<bool>(made), "nobody has come");
    return made;
  }

  base::TemporaryFolder folder;
  std::string path = (folder / "memif").string();
  Descriptor listening;
  Descriptor loose{::memfd_create("loose", MFD_CLOEXEC)};  // could get shorter under us
  SharedMemory small = *SharedMemory::create("small", 8292);
  Descriptor readable = *small.read_only();
  Descriptor read_end;
  Descriptor write_end;
};

World& world() {
  static World made;
  return made;
}

/// What either peer does: it is at the other end of `link`.
class Hostile {
 public:
  Hostile() = default;
  Hostile(const Hostile&) = delete;
  Hostile& operator=(const Hostile&) = delete;
  virtual ~Hostile() = default;

  void act(FuzzInput& input) {
    switch (input.below(10)) {
      case 0: say(input); break;
      case 1: say_anything(input); break;
      case 2: scribble(input); break;
      case 3: count(input); break;
      case 4: send_frame(input); break;
      case 5: take(input); break;
      case 6: give(input); break;
      case 7: nap(input); break;
      case 8: do_all_as_it_should(); break;
      default:
        if (input.byte() == 0) socket().close();
        break;
    }
    progress();
  }
  void progress() {
    const MemifLink::State before = link->state();
    link->progress([](std::uint32_t number) { return number < kNumbers; });
    want(link->state() >= before, "a link goes back");
    want(link->state() != MemifLink::State::up || link->number().has_value(),
         "a link is up without a number");
    if (link->number()) want(*link->number() < kNumbers, "a link has a number that is not free");
    hear();
  }

 protected:
  virtual Descriptor& socket() = 0;
  virtual const SharedMemory& memory() const = 0;  // empty: there is none yet
  virtual Ring sends() const = 0;                  // where this peer sends, and where it receives
  virtual Ring receives() const = 0;
  virtual void say(FuzzInput& input) = 0;
  virtual void do_all_as_it_should() = 0;
  /// One of ours has come, in the order in which they were said.
  virtual void hear(const format::MessageBytes& message, Descriptor descriptor) = 0;

  /// A message of which nothing needs to be right, with what descriptors there are.
  void say_anything(FuzzInput& input) {
    std::array<std::byte, 160> message{};
    message[0] = static_cast<std::byte>(input.below(10));
    const std::size_t bytes = input.below(8) != 0 ? 128 : input.below(message.size() + 1);
    input.fill(std::span(message).subspan(2, input.below(32)));
    std::vector<int> descriptors;
    for (auto left = input.below(memory::kPassedDescriptorsMax + 1); left != 0; --left) {
      const int number = any_descriptor(input);
      if (number >= 0) descriptors.push_back(number);
    }
    static_cast<void>(
        memory::send_packet(socket().number(), std::span(message).first(bytes), descriptors));
    said_anything = true;
  }
  [[nodiscard]] int any_descriptor(FuzzInput& input) const {
    return input.pick({-1, world().loose.number(), world().small.descriptor(),
                       world().readable.number(), world().write_end.number(),
                       world().listening.number(), memory().descriptor(), event()});
  }
  [[nodiscard]] virtual int event() const = 0;

  std::unique_ptr<MemifLink> link;
  bool said_anything = false;  // so what the link knows is not known here

 private:
  void hear() {
    while (socket()) {
      format::MessageBytes message{};
      std::array<Descriptor, 2> descriptors;
      const auto got = memory::receive_packet(
          socket().number(), std::as_writable_bytes(std::span(&message, 1)), descriptors);
      if (!got && got.error().detail == EAGAIN) return;
      // The link ends here when it is destroyed, not before.
      want(got && *got == sizeof message, "the peer hears something else than a message");
      want(!descriptors[1], "more descriptors are sent than one");
      hear(message, std::move(descriptors[0]));
    }
  }
  void scribble(FuzzInput& input) const {
    if (!memory()) return;
    const std::uint64_t words = std::min<std::uint64_t>(memory().bytes(), 32768) / 8;
    std::byte* const at = memory().at(8 * input.below(words));
    base::store_shared(at, input.odd_number<std::uint64_t>());
  }
  void count(FuzzInput& input) const {
    if (!memory()) return;
    Ring ring = input.below(2) != 0 ? sends() : receives();
    const auto value = input.odd_number<std::uint16_t>();
    input.below(2) != 0 ? ring.set_head(value) : ring.set_tail(value);
  }
  /// A frame that is good, or nearly.
  void send_frame(FuzzInput& input) {
    if (!memory()) return;
    format::DescriptorBytes descriptor = sends().load(sent_);
    if (input.below(2) != 0) descriptor.offset = RawPeer::kFrames;
    descriptor.region = static_cast<std::uint16_t>(input.byte() / 0xF0);
    descriptor.flags = input.below(16) == 15;
    descriptor.bytes = input.odd_number<std::uint32_t>();
    Ring ring = sends();
    ring.store(sent_++, descriptor);
    input.below(2) != 0 ? ring.set_head(sent_) : ring.set_tail(sent_);
  }
  void take(FuzzInput& input) {
    const std::size_t most = input.below(Arrivals::kFramesMax + 1);
    if (link->state() != MemifLink::State::up) return;
    static Arrivals arrivals;
    arrivals.clear();
    const std::byte* const begin = arrivals.take(0).data();
    std::vector<std::span<std::byte>> frames;
    link->in().take(most, arrivals, frames);
    want(frames.size() <= most, "more frames come than were asked for");
    for (const auto frame : frames) {
      want(frame.size() <= kFrameBytesMax, "a frame is too long");
      want(frame.data() >= begin &&
               frame.data() + frame.size() <= begin + Arrivals::kFramesMax * kSlotBytes,
           "a frame is not copied out");
    }
    end_what_is_broken();
  }
  /// We send.
  void give(FuzzInput& input) {
    const std::size_t bytes = input.below(kFrameBytesMax + 2);
    const bool publishes = input.below(4) != 0;
    if (link->state() != MemifLink::State::up) return;
    SendingRing& out = link->out();
    if (std::byte* const at = out.begin(bytes)) {
      want(bytes <= kFrameBytesMax && !out.broken(), "there is room for what cannot be sent");
      std::memset(at, 0x3C, bytes);
      out.end();
    }
    if (publishes && out.publish() && out.peer_sleeps()) link->wake_peer();
    end_what_is_broken();
  }
  void nap(FuzzInput& input) {
    const bool rises = input.below(2) != 0;
    if (link->state() != MemifLink::State::up) return;
    link->in().fall_asleep();
    static_cast<void>(link->in().ready());
    if (rises) link->in().rise();
  }
  /// As the port does.
  void end_what_is_broken() {
    if (link->in().broken() || link->out().broken()) link->end();
  }

  std::uint16_t sent_ = 0;
};

/// Connects to a link of ours that listens.
class Connecting final : public Hostile {
 public:
  Connecting() : peer_(world().path) {
    want(::fcntl(peer_.socket.number(), F_SETFL, O_NONBLOCK) == 0, "the socket waits");
    for (const std::uint32_t ring : {0u, RawPeer::kOtherRing}) {
      base::store_shared(memory().at(ring), sayings_.cookie);
    }
    link = MemifLink::accept(world().accept());
    progress();
    want(heard_ == 1, "there is no hello");
  }

 private:
  Descriptor& socket() override { return peer_.socket; }
  const SharedMemory& memory() const override { return peer_.memory; }
  Ring sends() const override { return peer_.out(); }
  Ring receives() const override { return peer_.in(); }
  int event() const override { return peer_.event.number(); }

  void say(FuzzInput& input) override {
    switch (input.below(5)) {
      case 0: lie(input); break;
      case 1: peer_.say_init(sayings_); break;
      case 2:
        say_region(input.below(4) != 3 ? memory().descriptor() : any_descriptor(input));
        break;
      case 3: say_rings(input.below(4) != 3 ? event() : any_descriptor(input)); break;
      default: peer_.say_connect(); break;
    }
  }
  /// From now on something is said otherwise.
  void lie(FuzzInput& input) {
    switch (input.below(11)) {
      case 0: sayings_.version = input.number<std::uint16_t>(); break;
      case 1: sayings_.link = input.odd_number<std::uint32_t>(); break;
      case 2: sayings_.mode = input.byte(); break;
      case 3: sayings_.region_index = input.odd_number<std::uint16_t>(); break;
      case 4: sayings_.region_bytes = input.odd_number<std::uint64_t>(); break;
      case 5: sayings_.ring_index = input.odd_number<std::uint16_t>(); break;
      case 6: sayings_.ring_region = input.odd_number<std::uint16_t>(); break;
      case 7: sayings_.ring_offset = 64 * input.odd_number<std::uint32_t>(); break;
      case 8: sayings_.log2_slots = input.byte() % 20; break;
      case 9: sayings_.private_bytes = input.odd_number<std::uint16_t>(); break;
      default: sayings_.second_ring_goes_the_other_way = input.below(2) != 0; break;
    }
  }
  void do_all_as_it_should() override {
    peer_.say_init(sayings_);
    accepted();
    say_region(memory().descriptor());
    say_rings(event());
    peer_.say_connect();
  }
  /// How many of the messages were accepted that came since the last time.
  std::uint64_t accepted() {
    const std::uint64_t before = acknowledged_;
    progress();
    return acknowledged_ - before;
  }
  void say_region(int descriptor) {
    peer_.say_region(sayings_, descriptor);
    if (accepted() == 0) return;
    want(link->number().has_value(), "memory is taken before it is said for which link");
    const bool small = descriptor == world().small.descriptor();
    want(small || descriptor == memory().descriptor(), "memory is taken that can get shorter");
    want(sayings_.region_bytes != 0 &&
             sayings_.region_bytes <= (small ? world().small.bytes() : memory().bytes()),
         "memory is taken that there is not");
    said_.push_back(sayings_.region_bytes);
  }
  void say_rings(int descriptor) {
    peer_.say_rings(sayings_, descriptor);
    const std::uint64_t rings = accepted();
    if (rings == 0 || said_anything) return;
    want(descriptor == event(), "something is taken for an event that is none");
    want(sayings_.ring_region < said_.size(), "a ring is taken that lies in no region");
    for (std::uint32_t i = 0; i < rings; ++i) {
      const std::uint32_t offset = sayings_.ring_offset + i * RawPeer::kOtherRing;
      want(offset % 64 == 0, "a ring is taken that begins within a line");
      want(offset + Ring::bytes(sayings_.log2_slots) <= said_[sayings_.ring_region],
           "a ring is taken that lies outside");
    }
  }

  void hear(const format::MessageBytes& message, Descriptor descriptor) override {
    want(!descriptor, "an end that listens sends a descriptor");
    const auto type = static_cast<MessageType>(base::load_le<std::uint16_t>(message.type));
    want((type == MessageType::hello) == (heard_ == 0), "another message is the first than hello");
    ++heard_;
    want(!over_, "there is more behind the last message");
    over_ = type == MessageType::connected || type == MessageType::disconnect;
    if (type == MessageType::connected) {
      want(link->number().has_value(), "it is connected without a number");
    } else if (type == MessageType::disconnect) {
      want(link->state() == MemifLink::State::ended, "a link goes on that was refused");
    } else {
      want(type == MessageType::hello || type == MessageType::acknowledge, "no such message");
      acknowledged_ += type == MessageType::acknowledge;
    }
  }

  RawPeer peer_;
  RawSayings sayings_;
  std::vector<std::uint64_t> said_;  // bytes of regions that were taken
  std::uint64_t acknowledged_ = 0;
  int heard_ = 0;
  bool over_ = false;
};

/// Listens to a link of ours that connects.
class Listening final : public Hostile {
 public:
  Listening() {
    auto made = MemifLink::dial(world().path, kNumber);
    want(made.has_value(), "cannot connect");
    link = std::move(*made);
    socket_ = world().accept();
    progress();
    want(heard_ == 0, "something is said before the hello");
  }

 private:
  static constexpr std::uint32_t kNumber = 3;

  Descriptor& socket() override { return socket_; }
  const SharedMemory& memory() const override { return memory_; }
  Ring sends() const override { return Ring(memory_.at(offset_[1]), log2_slots_); }
  Ring receives() const override { return Ring(memory_.at(offset_[0]), log2_slots_); }
  int event() const override { return event_.number(); }

  template <class T>
  T message(MessageType type) const {
    T made{};
    base::store_le(made.type, std::to_underlying(type));
    return made;
  }
  template <class T>
  void send_message(const T& message) const {
    static_cast<void>(memory::send_packet(socket_.number(), std::as_bytes(std::span(&message, 1))));
  }
  void send_hello(std::uint16_t least, std::uint16_t most, std::uint8_t log2_slots) const {
    auto hello = message<format::HelloBytes>(MessageType::hello);
    base::store_le(hello.version_min, least);
    base::store_le(hello.version_max, most);
    hello.log2_slots_max = log2_slots;
    send_message(hello);
  }
  void say(FuzzInput& input) override {
    switch (input.below(4)) {
      case 0: send_hello(format::kVersion, format::kVersion, input.byte() % 20); break;
      case 1: {
        const auto least = input.number<std::uint16_t>();
        send_hello(least, input.number<std::uint16_t>(), input.byte());
        break;
      }
      case 2: send_message(message<format::MessageBytes>(MessageType::acknowledge)); break;
      default: {
        const bool once = link->state() == MemifLink::State::up;
        send_message(message<format::ConnectBytes>(MessageType::connected));
        progress();
        want(!once || link->state() == MemifLink::State::ended || !socket_,
             "it is connected twice");
        break;
      }
    }
  }
  void do_all_as_it_should() override {
    send_hello(format::kVersion, format::kVersion, 9);
    progress();
    send_message(message<format::ConnectBytes>(MessageType::connected));
  }

  /// It says five things, in this order, and they hold.
  void hear(const format::MessageBytes& message, Descriptor descriptor) override {
    constexpr MessageType kOrder[] = {MessageType::init, MessageType::add_region,
                                      MessageType::add_ring, MessageType::add_ring,
                                      MessageType::connect};
    want(heard_ < std::size(kOrder), "more is said than there is to say");
    const auto type = static_cast<MessageType>(base::load_le<std::uint16_t>(message.type));
    want(type == kOrder[heard_], "it is said in another order");
    const bool with = type == MessageType::add_region || type == MessageType::add_ring;
    want(static_cast<bool>(descriptor) == with, "a descriptor is missing, or one too many");
    if (type == MessageType::init) {
      format::InitBytes init;
      std::memcpy(&init, &message, sizeof init);
      want(base::load_le<std::uint32_t>(init.link) == kNumber, "another link is asked for");
    } else if (type == MessageType::add_region) {
      format::AddRegionBytes said;
      std::memcpy(&said, &message, sizeof said);
      auto memory = SharedMemory::attach(
          std::move(descriptor), base::load_le<std::uint64_t>(said.bytes), memory::Rights::write);
      want(memory.has_value(), "the memory is not as it is said");
      memory_ = std::move(*memory);
    } else if (type == MessageType::add_ring) {
      format::AddRingBytes said;
      std::memcpy(&said, &message, sizeof said);
      const std::size_t number = heard_ - 2;
      log2_slots_ = said.log2_slots;
      offset_[number] = base::load_le<std::uint32_t>(said.offset);
      want(offset_[number] + Ring::bytes(log2_slots_) <= memory_.bytes(), "a ring lies outside");
      want(Ring(memory_.at(offset_[number]), log2_slots_).is_one(), "a ring is none");
      event_ = std::move(descriptor);
    }
    ++heard_;
  }

  Descriptor socket_;
  SharedMemory memory_;
  Descriptor event_;
  std::array<std::uint32_t, 2> offset_{};
  std::uint32_t log2_slots_ = 0;
  std::size_t heard_ = 0;
};

void run(FuzzInput& input) {
  std::unique_ptr<Hostile> peer;
  if (input.below(2) == 0) {
    peer = std::make_unique<Connecting>();
  } else {
    peer = std::make_unique<Listening>();
  }
  while (!input.over()) peer->act(input);
}

}  // namespace
}  // namespace espalier::fabric::memif

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace fabric = espalier::fabric;
  namespace base = espalier::base;
  static int inputs = 0;
  fabric::memif::world();
  const bool counts = ++inputs % fabric::memif::kInputsOfACount == 0;
  const auto before = counts ? base::open_descriptors(true) : 0;
  base::FuzzInput input(data, size);
  fabric::memif::run(input);
  if (counts) {
    base::want(base::open_descriptors(true) == before, "a descriptor is left");
  }
  return 0;
}
