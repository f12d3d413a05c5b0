// SPDX-License-Identifier: Apache-2.0
// The packets of a connection's socket, in both directions: to an endpoint that listens, and to one
// that connects, come hellos, welcomes, questions, answers and noise, with descriptors of all
// kinds, in any order. Only valid packets are accepted. No peer gets memory of another domain, or
// writable memory that was granted read-only; pairs end once, requests complete in order; no
// descriptor leaks. And after each packet another peer is still answered.
//
// Input: one byte of choices, then acts: a byte that says which, and what that needs. The endpoint
// has a thread that reads sockets; to wait for it, the one beside asks it something.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "base/temporary_folder.hpp"
#include "base/testing/fuzz_input.hpp"
#include "base/testing/open_descriptors.hpp"
#include "base/unix_address.hpp"
#include "fabric/shm/control_packets.hpp"
#include "fabric/shm/endpoint.hpp"
#include "memory/seqpacket.hpp"

namespace espalier::fabric::shm {
namespace {

using base::FuzzInput;
using base::want;

using memory::Descriptor;
using memory::SharedMemory;
using wire::FabricPacket;
using Buffer = std::vector<std::byte>;

constexpr int kActsMax = 48;
constexpr int kInputsOfACount = 64;
constexpr std::uint32_t kSlots = 64;
constexpr Domain kOtherDomain = 9;
constexpr std::uint64_t kWordsBytes = RegionTable::kRegionsMax * sizeof(RegionKey);

template <class T>
std::span<std::byte> bytes_of(T& packet) {
  return std::as_writable_bytes(std::span(&packet, 1));
}

/// What all inputs have in common: an endpoint, a well-behaved peer, and what may come
/// instead of memory.
struct World {
  World() {
    want(endpoint->listen(path).has_value(), "cannot listen");
    const auto address = base::UnixAddress::file(hostile_path);
    want(::bind(listening.number(), address->get(), address->bytes()) == 0, "cannot bind");
    want(::listen(listening.number(), 8) == 0, "cannot listen");
    want(::ftruncate(loose.number(), 1 << 20) == 0, "there is no memory");
    const auto offer = [this](const SharedMemory& of, RemoteRights rights, Domain domain) {
      return *table->offer({of.at(0), of.bytes(), of.descriptor(), 0}, rights, domain);
    };
    all = offer(to_write, RemoteRights::read | RemoteRights::write, 0);
    read = offer(to_read, RemoteRights::read, 0);
    other = offer(to_write, RemoteRights::read | RemoteRights::write, kOtherDomain);
    kept = *table->offer({own.data(), own.size(), -1, 0}, RemoteRights::read);
    gone = offer(to_read, RemoteRights::read, 0);
    gone.make_void();
    let_in_the_one_beside();
  }

  void let_in_the_one_beside() {
    beside = *memory::connect_packets(path);
    want(send_hello(beside.number(), {}, *table).has_value(), "cannot say hello");
    std::optional<ConnectRequest> request;
    while (!(request = endpoint->next_request())) endpoint->progress();
    QueuePairOptions options;
    options.sends = &queue;
    pair_beside = *endpoint->accept(*request, options, {});
    wire::FabricWelcome welcome;
    want(memory::receive_packet(beside.number(), bytes_of(welcome), {}).has_value(), "no welcome");
  }
  /// The service looks at sockets by turns: it has dealt with what came before this began when it
  /// has answered two questions, for the first may be answered out of turn.
  void let_the_service_read() {
    constexpr RegionKey kUnknown = 5;
    for (int i = 0; i < 2; ++i) {
      want(send_ask(beside.number(), kUnknown).has_value(), "the one beside cannot ask");
      wire::FabricAnswer answer{};
      const auto got = memory::receive_packet(beside.number(), bytes_of(answer), {});
      want(got && *got == sizeof answer && answer.key == kUnknown, "somebody is not answered");
      want(answer.status == static_cast<std::uint32_t>(Status::remote_access), "such a key is new");
    }
    endpoint->progress();
    want(pair_beside->state() == QueuePair::State::connected, "the one beside is ended");
  }

  base::TemporaryFolder folder;
  std::string path = (folder / "s").string();
  std::string hostile_path = (folder / "h").string();
  std::shared_ptr<RegionTable> table = *RegionTable::create(7);
  std::unique_ptr<Endpoint> endpoint = *shm::open(table);
  CompletionQueue queue{*endpoint, 64};
  std::unique_ptr<QueuePair> pair_beside;
  Descriptor beside;
  Descriptor listening{::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)};

  SharedMemory to_write = *SharedMemory::create("to write", 8192);
  SharedMemory to_read = *SharedMemory::create("to read", 4096);
  Buffer own = Buffer(4096);
  Registration all;
  Registration read;
  Registration other;
  Registration kept;  // in memory that is not shared
  Registration gone;  // its key is void

  // The peer's.
  SharedMemory words = *SharedMemory::create("words", kWordsBytes);
  SharedMemory channel = *SharedMemory::create("channel", wire::fabric_channel_bytes(kSlots));
  SharedMemory small = *SharedMemory::create("small", 100);
  Descriptor readable = *channel.read_only();
  Descriptor loose{::memfd_create("loose", MFD_CLOEXEC)};  // could get shorter under us
};

World& world() {
  static World made;
  return made;
}

bool can_be_mapped(Descriptor descriptor, std::uint64_t bytes, memory::Rights rights) {
  return SharedMemory::attach(std::move(descriptor), bytes, rights).has_value();
}

/// What either peer does, at the other end of a pair of ours, or of one that is to be.
class Hostile {
 public:
  explicit Hostile(Domain of_pair)
      : domain(of_pair), sends_(*world().endpoint, 64), receives_(*world().endpoint, 64) {
    for (const RegionKey key : kKeys) base::store_shared(word(key), RegionKey{0});
    std::memset(world().channel.at(0), 0, world().channel.bytes());
  }
  Hostile(const Hostile&) = delete;
  Hostile& operator=(const Hostile&) = delete;
  virtual ~Hostile() = default;

  void act(FuzzInput& input) {
    const auto before = pair ? pair->state() : QueuePair::State::connecting;
    const std::uint64_t which = input.below(9);
    switch (which) {
      case 0: say(input); break;
      case 1: static_cast<void>(send_ask(socket.number(), draw_own_key(input))); break;
      case 2: static_cast<void>(send_wake(socket.number())); break;
      case 3: say_anything(input); break;
      case 4: answer(input); break;
      case 5: post(input); break;
      case 6: scribble(input); break;
      case 7: decide(input); break;
      default:
        if (input.byte() == 0) socket.close();
        break;
    }
    if (which >= 1 && which <= 4) spoken_ = true;
    run_until_idle();
    if (pair) check(before);
  }

 protected:
  virtual void say(FuzzInput& input) = 0;
  virtual void decide(FuzzInput&) {}
  /// A packet of ours that is no note and no answer.
  virtual void hear(std::span<const std::byte> packet, std::span<Descriptor> descriptors) = 0;
  /// Once all that was said is dealt with.
  virtual void look() {}

  [[nodiscard]] QueuePairOptions options() {
    QueuePairOptions options;
    options.sends = &sends_;
    options.receives = &receives_;
    options.domain = domain;
    return options;
  }
  void run_until_idle() {
    world().let_the_service_read();
    look();
    hear_all();
  }
  void send(std::span<const std::byte> packet, std::span<const int> descriptors) const {
    static_cast<void>(memory::send_packet(socket.number(), packet, descriptors));
  }
  [[nodiscard]] static int any_descriptor(FuzzInput& input) {
    return input.pick({world().words.descriptor(), world().channel.descriptor(),
                       world().small.descriptor(), world().readable.number(),
                       world().loose.number(), world().listening.number()});
  }
  /// Whether this is the first packet.
  [[nodiscard]] bool speaks_first() { return !std::exchange(spoken_, true); }
  [[nodiscard]] bool has_posted() const { return posted_ != 0; }

  const Domain domain;  // which the pair is let into
  Descriptor socket;
  std::unique_ptr<QueuePair> pair;

 private:
  static constexpr std::array<RegionKey, 2> kKeys{0x10003, 0x20044};

  [[nodiscard]] static std::byte* word(RegionKey key) {
    return world().words.at((key & 0xFFFF) * sizeof(RegionKey));
  }
  static RegionKey draw_own_key(FuzzInput& input) {
    const World& w = world();
    const RegionKey key = input.pick({&w.all, &w.read, &w.other, &w.kept})->remote().key;
    const std::uint8_t choice = input.byte();
    if (choice >= 0xE0 && choice < 0xF0) return w.gone.remote().key;
    return choice < 0xF0 ? key : input.number<RegionKey>();
  }

  void say_anything(FuzzInput& input) const {
    std::array<std::byte, kPacketBytesMax + 8> packet{};
    const std::size_t bytes =
        input.below(8) != 0 ? input.pick({sizeof(wire::FabricHello), sizeof(wire::FabricWelcome),
                                          sizeof(wire::FabricNote), sizeof(wire::FabricAnswer)})
                            : input.below(packet.size() + 1);
    packet[0] = static_cast<std::byte>(input.below(8));
    input.fill(std::span(packet).subspan(4, input.below(32)));
    std::vector<int> descriptors;
    for (auto left = input.below(memory::kPassedDescriptorsMax + 1); left != 0; --left) {
      descriptors.push_back(any_descriptor(input));
    }
    send(std::span(packet).first(bytes), descriptors);
  }
  /// To what we have asked, or not.
  void answer(FuzzInput& input) {
    wire::FabricAnswer said{};
    said.packet = static_cast<std::uint32_t>(FabricPacket::answer);
    said.key = input.byte() < 0xF0 ? asked_ : kKeys[input.below(2)];
    said.status = input.byte() / 0xE0;
    const std::uint8_t rights = input.byte();
    said.rights = rights % 10;
    if ((rights & 0x20) != 0) said.rights |= wire::kFabricPersistent;
    if ((rights & 0x40) != 0) said.rights |= wire::kFabricPastCache;
    const bool is_void = rights >= 0xC0;
    if (is_void) said.packet = static_cast<std::uint32_t>(FabricPacket::void_answer);
    said.bytes = input.odd_number<std::uint64_t>();
    said.descriptor_offset = input.odd_number<std::uint64_t>();
    const int descriptor = any_descriptor(input);
    const bool with_descriptor = input.below(8) != 0;
    if (is_void && with_descriptor) said.descriptor_offset = 0;
    send(bytes_of(said), std::span(&descriptor, with_descriptor != is_void));
  }
  void post(FuzzInput& input) {
    const RegionKey key = input.byte() < 0xF0 ? kKeys[input.below(2)] : input.number<RegionKey>();
    const auto remote = input.odd_number<std::uint64_t>();
    const std::uint8_t kind = input.byte() % 3;
    Buffer& local = buffers_.emplace_back(input.byte());
    if (!pair) return;
    const std::uint64_t id = posted_ + 1;
    const std::array choices{WorkRequest::read(id, local, key, remote),
                             WorkRequest::write(id, local, key, remote),
                             WorkRequest::fetch_add(id, key, remote, 1)};
    posted_ += pair->post(choices[kind]).taken;
  }
  /// Over the memory of the connection, or a word that says whether a key is good.
  static void scribble(FuzzInput& input) {
    const RegionKey key = kKeys[input.below(2)];
    switch (input.below(3)) {
      case 0: base::store_shared(word(key), key); break;
      case 1: {
        const auto number = input.odd_number<RegionKey>();
        base::store_shared(word(key), number % 4 == 1 ? void_word(key) : number);
        break;
      }
      default: {
        std::byte* const at = world().channel.at(8 * input.below(48));
        base::store_shared(at, input.odd_number<std::uint64_t>());
        break;
      }
    }
  }

  void hear_all() {
    while (socket) {
      std::array<std::byte, kPacketBytesMax> packet;
      std::array<Descriptor, 4> descriptors;
      const auto got = memory::receive_packet(socket.number(), packet, descriptors);
      if (!got || *got == 0) return;
      want(!descriptors[2], "more descriptors come than any packet has");
      if (*got == sizeof(wire::FabricNote)) {
        wire::FabricNote note;
        std::memcpy(&note, packet.data(), sizeof note);
        want(!descriptors[0], "a note comes with a descriptor");
        if (note.packet == static_cast<std::uint32_t>(FabricPacket::ask)) asked_ = note.key;
      } else if (*got == sizeof(wire::FabricAnswer)) {
        wire::FabricAnswer said;
        std::memcpy(&said, packet.data(), sizeof said);
        check_answer(said, std::move(descriptors[0]));
      } else {
        hear(std::span(packet).first(*got), descriptors);
      }
    }
  }
  /// No peer gets memory of another domain than its own, or more rights than were granted.
  void check_answer(const wire::FabricAnswer& said, Descriptor descriptor) const {
    want(pair != nullptr, "an unknown peer is answered");
    const RemoteRegion& gone = world().gone.remote();
    const bool is_void = said.packet == static_cast<std::uint32_t>(FabricPacket::void_answer);
    want(is_void == (said.status == 0 && said.key == gone.key), "a key is void, or is not");
    if (is_void) {
      want(domain == 0 && !descriptor, "memory is handed out whose key is void");
      want(said.base == gone.base && said.bytes == gone.bytes, "a region is told wrongly");
      return;
    }
    want(static_cast<bool>(descriptor) == (said.status == 0), "there is an answer without memory");
    if (said.status != 0) return;
    const World& w = world();
    const bool all = domain == 0 && said.key == w.all.remote().key;
    const bool read = domain == 0 && said.key == w.read.remote().key;
    const bool other = domain == kOtherDomain && said.key == w.other.remote().key;
    want(all || read || other, "memory is handed out that is for others");
    const RemoteRegion& region = (all ? w.all : read ? w.read : w.other).remote();
    want(said.base == region.base && said.bytes == region.bytes, "a region is told wrongly");
    want(can_be_mapped(std::move(descriptor), said.bytes, memory::Rights::write) == !read,
         "memory comes with other rights than were granted");
  }
  void check(QueuePair::State before) {
    want(pair->state() >= before, "a pair goes back");
    Completion completion;
    while (sends_.poll({&completion, 1}) != 0) {
      want(completion.work_id == ++completed_ && completed_ <= posted_,
           "a completion is out of order");
    }
    want(pair->state() != QueuePair::State::error || completed_ == posted_,
         "a pair has ended, and requests are not told");
  }

  CompletionQueue sends_;
  CompletionQueue receives_;
  std::deque<Buffer> buffers_;
  bool spoken_ = false;
  RegionKey asked_ = 0;
  std::uint64_t posted_ = 0;
  std::uint64_t completed_ = 0;
};

/// A hello or a welcome with nothing in it yet.
template <class Packet>
Packet begun(FabricPacket packet) {
  Packet begun{};
  begun.packet = static_cast<std::uint32_t>(packet);
  begun.format = wire::kFabricFormat;
  begun.magic = wire::kFabricMagic;
  return begun;
}

/// From 1 to 3: makes it none.
template <class Packet>
void spoil_start(Packet& packet, std::uint8_t spoiled, FuzzInput& input) {
  if (spoiled == 1) packet.packet ^= 1u << input.below(32);
  if (spoiled == 2) packet.format ^= 1u << input.below(32);
  if (spoiled == 3) packet.magic ^= std::uint64_t{1} << input.below(64);
}

/// Connects to us.
class Connecting final : public Hostile {
 public:
  explicit Connecting(Domain to) : Hostile(to) {
    socket = *memory::connect_packets(world().path);
    want(::fcntl(socket.number(), F_SETFL, O_NONBLOCK) == 0, "the socket waits");
    run_until_idle();
  }
  ~Connecting() override { pair.reset(); }

 private:
  void say(FuzzInput& input) override {
    auto hello = begun<wire::FabricHello>(FabricPacket::hello);
    const std::uint8_t spoiled = input.byte();
    hello.data_bytes = input.byte() % (sizeof hello.data + 3);
    spoil_start(hello, spoiled, input);
    if (spoiled == 4) hello.data_bytes = input.odd_number<std::uint32_t>();
    for (std::size_t i = 0; i < sizeof hello.data; ++i) {
      hello.data[i] = static_cast<std::uint8_t>(i);
    }
    const int descriptor = spoiled == 5 ? any_descriptor(input) : world().words.descriptor();
    const bool good = (spoiled == 0 || spoiled > 3) && hello.data_bytes <= sizeof hello.data &&
                      descriptor == world().words.descriptor();
    if (speaks_first() && good && socket) expected_ = hello.data_bytes;
    send(bytes_of(hello), {&descriptor, 1});
  }
  /// Each peer that has sent a hello is a pending connection once.
  void look() override {
    while (auto request = world().endpoint->next_request()) {
      want(!request_, "somebody knocks twice");
      if (expected_) {
        want(request->data.size() == *expected_, "other data come than were said");
        for (std::size_t i = 0; i < request->data.size(); ++i) {
          want(request->data[i] == static_cast<std::byte>(i), "other data come than were said");
        }
      }
      request_ = std::move(request);
    }
    want(!expected_ || request_, "a hello was not heard");
  }
  void decide(FuzzInput& input) override {
    const bool in = input.below(4) != 3;
    if (!request_ || decided_) return;
    decided_ = true;
    if (in) {
      auto made = world().endpoint->accept(*request_, options(), {});
      if (made) pair = std::move(*made);
    } else {
      world().endpoint->reject(*request_);
    }
  }
  void hear(std::span<const std::byte> packet, std::span<Descriptor> descriptors) override {
    wire::FabricWelcome welcome;
    want(packet.size() == sizeof welcome && decided_, "an unknown peer is told something");
    std::memcpy(&welcome, packet.data(), sizeof welcome);
    const bool in = welcome.refused == 0;
    want(in == (pair != nullptr), "whether one may come in is told wrongly");
    want(in == static_cast<bool>(descriptors[0]) && in == static_cast<bool>(descriptors[1]),
         "memory is missing, or there is too much");
    if (!in) return;
    want(can_be_mapped(std::move(descriptors[0]), wire::fabric_channel_bytes(welcome.ring_slots),
                       memory::Rights::write),
         "the memory of the connection is not as it is said");
    want(!can_be_mapped(std::move(descriptors[1]), kWordsBytes, memory::Rights::write),
         "a peer can make its keys good");
  }

  bool decided_ = false;
  std::optional<std::uint32_t> expected_;  // data of a hello that is good, and the first packet
  std::optional<ConnectRequest> request_;
};

/// Is connected to.
class Listening final : public Hostile {
 public:
  explicit Listening(Domain of) : Hostile(of) {
    pair = *world().endpoint->connect(world().hostile_path, options(), {});
    socket = Descriptor(
        ::accept4(world().listening.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    want(static_cast<bool>(socket), "nobody has come");
    run_until_idle();
    want(heard_, "there is no hello");
  }
  ~Listening() override { pair.reset(); }

 private:
  void say(FuzzInput& input) override {
    auto welcome = begun<wire::FabricWelcome>(FabricPacket::welcome);
    welcome.ring_slots = kSlots;
    const std::uint8_t spoiled = input.byte();
    welcome.data_bytes = input.byte();
    std::array descriptors{world().channel.descriptor(), world().words.descriptor()};
    std::size_t count = descriptors.size();
    std::uint64_t magic = wire::kFabricMagic;
    spoil_start(welcome, spoiled, input);
    switch (spoiled) {
      case 4: welcome.ring_slots = input.odd_number<std::uint32_t>(); break;
      case 5: descriptors[0] = any_descriptor(input); break;
      case 6: descriptors[1] = any_descriptor(input); break;
      case 7: count = input.below(2); break;
      case 8: magic ^= std::uint64_t{1} << input.below(64); break;
      case 9: welcome.refused = 1; break;
      default: break;
    }
    base::store_shared(world().channel.at(0), magic);
    const bool good = (spoiled == 0 || spoiled > 9) && welcome.data_bytes <= sizeof welcome.data;
    const bool first = speaks_first() && socket && pair->state() == QueuePair::State::connecting;
    send(bytes_of(welcome), std::span(descriptors).first(count));
    world().let_the_service_read();
    if (!first) return;
    // An earlier post may have ended it immediately.
    const bool heard = pair->state() == QueuePair::State::connected || has_posted();
    want(!good || heard, "a welcome was not heard");
    want(!good || pair->peer_data().size() == welcome.data_bytes, "other data come than were said");
    if (spoiled != 0 && spoiled < 4) {
      want(pair->state() == QueuePair::State::error, "a welcome was heard that is none");
    }
  }
  void hear(std::span<const std::byte> packet, std::span<Descriptor> descriptors) override {
    want(packet.size() == sizeof(wire::FabricHello) && !heard_,
         "something else is said than hello");
    heard_ = true;
    want(!descriptors[1], "there is more memory than that of the keys");
    want(!can_be_mapped(std::move(descriptors[0]), kWordsBytes, memory::Rights::write),
         "a peer can make its keys good");
  }

  bool heard_ = false;
};

template <class T>
void run(FuzzInput& input, Domain domain) {
  T peer(domain);
  for (int acts = 0; acts < kActsMax && !input.over(); ++acts) peer.act(input);
}

}  // namespace
}  // namespace espalier::fabric::shm

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace fabric = espalier::fabric;
  namespace base = espalier::base;
  namespace shm = espalier::fabric::shm;
  static int inputs = 0;
  shm::World& world = shm::world();
  const bool counts = ++inputs % shm::kInputsOfACount == 0;
  const auto before = counts ? base::open_descriptors(true) : 0;
  base::FuzzInput input(data, size);
  const std::uint8_t choices = input.byte();
  const fabric::Domain domain = (choices & 2) != 0 ? shm::kOtherDomain : 0;
  if ((choices & 1) == 0) {
    shm::run<shm::Connecting>(input, domain);
  } else {
    shm::run<shm::Listening>(input, domain);
  }
  world.let_the_service_read();
  if (counts) {
    base::want(base::open_descriptors(true) == before, "a descriptor is left");
  }
  return 0;
}
