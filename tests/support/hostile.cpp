// SPDX-License-Identifier: Apache-2.0
#include "tests/support/hostile.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/child_process.hpp"
#include "channel/rings/tests/testing/hostile_peer.hpp"
#include "fabric/address.hpp"
#include "tests/support/node_fixture.hpp"

namespace espalier::test {
namespace {

constexpr std::uint64_t kNumberOfNoMap = 1'000'000;
constexpr unsigned kWatchdogSeconds = 120;

std::string random_bytes(Random& random, std::size_t bytes) {
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

// Keys that other hostile clients use too, and some invalid ones.
std::string random_key(Random& random) {
  if (random.one_in(20)) return random_bytes(random, random.below(600));
  if (random.one_in(4)) return "item" + std::to_string(10'000 + random.below(3000));
  return "hostile" + std::to_string(random.below(30));
}

std::string random_payload(Random& random, wire::OffloadId offload) {
  if (random.one_in(10)) return random_bytes(random, random.below(300));
  if (offload == wire::OffloadId::map_create) {
    wire::MapShape shape{};
    shape.node_bytes = 512u << random.below(3);
    shape.versions = static_cast<std::uint8_t>(random.below(2));
    return rings::bytes_of(shape);
  }
  if (offload == wire::OffloadId::compare_and_set) {
    wire::Comparison comparison{};
    comparison.kind = static_cast<std::uint8_t>(random.below(6));
    comparison.expected_bytes = static_cast<std::uint32_t>(random.below(10));
    return rings::bytes_of(comparison) + random_bytes(random, random.below(100));
  }
  if (offload == wire::OffloadId::write_batch) {
    wire::BatchEntry entry{};
    entry.kind = static_cast<std::uint8_t>(random.below(5));
    entry.condition = static_cast<std::uint8_t>(random.one_in(2) ? 0 : random.below(6));
    entry.key_bytes = 8;
    entry.value_bytes = static_cast<std::uint32_t>(random.below(20));
    return rings::bytes_of(entry) + "hostile1" + std::string(entry.value_bytes, 'b');
  }
  if (offload == wire::OffloadId::put) {
    return random_bytes(random, random.below(random.one_in(20) ? 100'000 : 200));
  }
  if (offload == wire::OffloadId::add || offload == wire::OffloadId::snapshot_close) {
    return rings::bytes_of(random.below(10));
  }
  return random.one_in(2) ? std::string() : random_key(random);
}

}  // namespace

std::string random_request(Random& random) {
  const auto offload = static_cast<wire::OffloadId>(random.below(wire::kOffloadIds + 1));
  // Of numbers that may exist only the default map's: the test checks other maps.
  const std::uint64_t no_map = random.one_in(2) ? 0 : kNumberOfNoMap + random.below(4);
  const auto map = static_cast<std::uint32_t>(random.one_in(10) ? no_map : 1);
  wire::RequestHeader header =
      rings::request_of(offload, map, static_cast<std::uint32_t>(random.below(8)),
                        static_cast<std::uint32_t>(random.below(random.one_in(4) ? ~0u : 4)));
  if (random.one_in(10)) header.ring = wire::kAtSnapshot;
  if (random.one_in(8)) header.ring |= 1;
  if (random.one_in(500)) header.ring = static_cast<std::uint8_t>(random());
  header.hint = random.one_in(4) ? random() : 0;
  std::string key = random_key(random);
  // Maps of few names: what they take is theirs by right, and not what is measured.
  const bool names_a_map = offload == wire::OffloadId::map_create;
  if (names_a_map) key = "hostile" + std::to_string(random.below(4));
  return rings::message_of(header, key, random_payload(random, offload));
}

void write_garbage(RawClient& client, Random& random, int lines) {
  rings::RingClient& rings = client.rings();
  for (int i = 0; i < lines && !client.ended(); ++i) {
    if (rings.space().ask_room(rings.tail()) == 0) {
      client.ring();
      std::this_thread::yield();
      continue;
    }
    std::string line = random_bytes(random, wire::kRingSlotPayload);
    if (!random.one_in(4)) {
      // Close enough to a request that more of it is parsed.
      line.replace(0, 28, random_request(random).substr(4, 28));
      const auto bytes =
          static_cast<std::uint32_t>(random.between(32, random.one_in(4) ? 300 : 64));
      line.replace(0, 4, rings::bytes_of(bytes));
    }
    rings.write_slot(line);
    if (random.one_in(3)) client.ring();
    if (random.one_in(3)) static_cast<void>(rings.receive());
  }
  client.ring();
}

bool send_with_descriptors(int socket, std::string_view packet, int count) {
  std::string bytes(packet);
  iovec part{bytes.data(), bytes.size()};
  std::vector<std::size_t> control((CMSG_SPACE(static_cast<std::size_t>(count) * sizeof(int)) + 7) /
                                   8);
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = CMSG_SPACE(static_cast<std::size_t>(count) * sizeof(int));
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(static_cast<std::size_t>(count) * sizeof(int));
  const memory::Descriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const std::vector<int> numbers(static_cast<std::size_t>(count), null.number());
  std::memcpy(CMSG_DATA(header), numbers.data(), numbers.size() * sizeof(int));
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(packet.size());
}

void expect_descriptors(std::size_t count) {
  while (open_descriptors() != count) std::this_thread::yield();
}

void live_and_die(const std::string& socket, std::uint64_t seed) {
  Random random(seed);
  auto opened = RawClient::open(socket, {64u << random.below(3), 64u << random.below(3),
                                         static_cast<std::uint32_t>(random.between(2, 4))});
  if (!opened) ::_exit(1);
  RawClient& client = **opened;
  for (std::uint64_t steps = random.below(200); steps != 0; --steps) {
    client.rings().post(random_request(random));
    if (random.one_in(3)) client.ring();
    if (random.one_in(3)) static_cast<void>(client.rings().receive());
  }
  if (random.one_in(3) && client.rings().flush()) {
    // A line that is written and not published, or a message that only begins.
    const std::string message = rings::message_of(rings::request_of(wire::OffloadId::put, 1),
                                                  "hostile", std::string(5000, 'h'));
    client.rings().write_slot(std::string_view(message).substr(4, random.between(1, 60)));
    if (random.one_in(2)) client.ring();
  }
  ::kill(::getpid(), SIGKILL);
  ::_exit(1);
}

void live_and_die_on_fabric(const std::string& address, std::uint64_t seed) {
  client::Choices choices(seed);
  client::HostileLore lore;
  lore.map = 1;
  std::string target;
  const auto start = [&] {
    auto way = fabric::open_for_connecting(*fabric::parse(address), *fabric::RegionTable::create());
    if (!way) ::_exit(1);
    target = way->target;
    return std::move(way->endpoint);
  };
  auto endpoint = start();
  client::HostilePeer peer({.start = [&] { return std::move(endpoint); },
                            .crash = [] { ::kill(::getpid(), SIGKILL); },
                            .target = target,
                            .timeout_ns = 1'000'000},
                           lore);
  for (std::uint64_t acts = choices.below(400); acts != 0; --acts) {
    peer.act(choices);
    if (choices.one_in(4)) peer.rest(choices.below(300'000));
  }
  ::kill(::getpid(), SIGKILL);
  ::_exit(1);
}

Nursery::Nursery(const std::string& socket) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    throw std::runtime_error("no socket pair");
  }
  memory::Descriptor other(ends[1]);
  line_ = memory::Descriptor(ends[0]);
  process_ = ::fork();
  if (process_ != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  line_ = std::move(other);
  other.close();  // which is the one that we inherited
  work(socket);
}

Nursery::~Nursery() {
  line_.close();
  base::wait_for_child(process_);
}

// For each seed a client; for an empty packet the end of all of them.
void Nursery::work(const std::string& socket) {
  for (;;) {
    std::uint64_t seed = 0;
    const ssize_t got = ::recv(line_.number(), &seed, sizeof seed, 0);
    if (got <= 0) ::_exit(0);
    if (got == sizeof seed) {
      if (::fork() == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        ::alarm(kWatchdogSeconds);
        live_and_die(socket, seed);
      }
      continue;
    }
    int died = 0;
    for (int status = 0; ::waitpid(-1, &status, 0) > 0;) {
      if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) ++died;
    }
    ::send(line_.number(), &died, sizeof died, MSG_NOSIGNAL);
  }
}

void Nursery::begin(std::uint64_t seed) {
  ::send(line_.number(), &seed, sizeof seed, MSG_NOSIGNAL);
}

int Nursery::wait_for_all() {
  int died = 0;
  ::send(line_.number(), "w", 1, MSG_NOSIGNAL);
  ::recv(line_.number(), &died, sizeof died, 0);
  return died;
}

}  // namespace espalier::test
