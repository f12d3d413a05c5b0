// SPDX-License-Identifier: Apache-2.0
#include "client/ring_connection.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>

#include "base/barrier.hpp"
#include "base/system_error.hpp"
#include "base/trusted_server.hpp"
#include "memory/seqpacket.hpp"
#include "rings/futex.hpp"
#include "wire/handshake.hpp"

namespace espalier::client {
namespace {

constexpr std::uint32_t kRequestSlots = 512;
constexpr std::uint32_t kResponseSlots = 1024;

}  // namespace

Result<std::shared_ptr<RingConnection>> RingConnection::open(
    const std::string& path, std::optional<std::uint32_t> server_user) {
  std::shared_ptr<RingConnection> made(new RingConnection);
  if (const auto done = made->say_hello(path, server_user); !done) {
    return std::unexpected(done.error());
  }
  return made;
}

Result<void> RingConnection::say_hello(const std::string& path,
                                       std::optional<std::uint32_t> server_user) {
  auto connected = memory::connect_packets(path);
  if (!connected) return std::unexpected(connected.error());
  socket_ = std::move(*connected);
  if (const auto good = base::check_server(socket_.number(), path, server_user); !good) {
    return good;
  }
  wire::Hello hello{};
  hello.magic = wire::kHelloMagic;
  hello.protocol = wire::kProtocolVersion;
  hello.request_slots = kRequestSlots;
  hello.response_slots = kResponseSlots;
  hello.response_rings = wire::kResponseRingsMax;
  const auto sent = memory::send_packet(socket_.number(), std::as_bytes(std::span(&hello, 1)));
  if (!sent) return sent;
  wire::Welcome welcome{};
  memory::Descriptor descriptors[wire::kWelcomeDescriptors];
  const auto got = memory::receive_packet(
      socket_.number(), std::as_writable_bytes(std::span(&welcome, 1)), descriptors);
  if (!got) return std::unexpected(got.error());
  if (*got == 0) return fail(Code::connection_lost);
  if (*got != sizeof welcome || welcome.magic != wire::kHelloMagic) return fail(Code::corrupt, 1);
  if (welcome.code != 0) return fail(static_cast<Code>(welcome.code), welcome.detail);
  if (welcome.protocol != wire::kProtocolVersion) return fail(Code::unsupported, welcome.protocol);
  node_id_ = welcome.node_id;
  const wire::ConnectionLayout layout{welcome.request_slots, welcome.response_slots,
                                      welcome.response_rings};
  return map_memory(layout, welcome.doorbell, welcome.worker, descriptors);
}

Result<void> RingConnection::map_memory(const wire::ConnectionLayout& layout,
                                        std::uint32_t doorbell, std::uint32_t worker,
                                        memory::Descriptor (&descriptors)[3]) {
  using memory::Rights;
  if (!layout.valid() || doorbell >= wire::kDoorbellsPerPage || worker >= wire::kWorkersMax) {
    return fail(Code::corrupt, 2);
  }
  layout_ = layout;
  auto rings =
      memory::SharedMemory::attach(std::move(descriptors[0]), layout.bytes(), Rights::write);
  auto doorbells = memory::SharedMemory::attach(std::move(descriptors[1]), wire::kDoorbellPageBytes,
                                                Rights::write);
  auto page =
      memory::SharedMemory::attach(std::move(descriptors[2]), sizeof(wire::NodePage), Rights::read);
  if (!rings) return std::unexpected(rings.error());
  if (!doorbells) return std::unexpected(doorbells.error());
  if (!page) return std::unexpected(page.error());
  memory_ = std::move(*rings);
  doorbells_ = std::move(*doorbells);
  node_page_ = std::move(*page);
  memory_.close_descriptor();
  doorbells_.close_descriptor();
  node_page_.close_descriptor();
  doorbell_ = doorbells_.at(std::uint64_t{doorbell} * wire::kDoorbellBytes);
  worker_sleeps_ = node_page_.at(offsetof(wire::NodePage, workers) +
                                 std::uint64_t{worker} * sizeof(wire::WorkerLine));
  const auto flags =
      base::load_plain<std::uint32_t>(node_page_.at(offsetof(wire::NodePage, flags)));
  node_asymmetric_ = (flags & wire::kNodeAsymmetric) != 0;
  asymmetric_ = node_asymmetric_ && base::register_asymmetric_barriers();
  return {};
}

rings::SlotReader RingConnection::responses(std::uint32_t ring) const {
  std::byte* const credit =
      memory_.at(layout_.response_side(ring) + offsetof(wire::ResponseSide, credit));
  return {memory_.at(layout_.responses(ring)), layout_.response_slots, credit};
}

std::byte* RingConnection::sleeping_word(std::uint32_t ring) const {
  return memory_.at(layout_.response_side(ring) + offsetof(wire::ResponseSide, sleeping));
}

void RingConnection::ring(std::uint64_t tail) {
  base::store_shared(doorbell_, static_cast<std::uint32_t>(tail), std::memory_order_release);
  base::frequent_barrier(asymmetric_);
  if (base::load_shared<std::uint32_t>(worker_sleeps_) == 0) return;
  const auto byte = wire::SocketByte::wake;
  // Where the socket has no room, there are bytes enough in it.
  if (::send(socket_.number(), &byte, sizeof byte, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
      errno != EAGAIN && errno != EINTR) {
    lose();
  }
}

void RingConnection::fall_asleep(std::uint32_t ring, const rings::SlotReader& responses,
                                 std::uint64_t longest_ns) {
  std::byte* const word = sleeping_word(ring);
  base::store_shared(word, std::uint32_t{1}, std::memory_order_seq_cst);
  base::rare_barrier(asymmetric_);
  // The node takes our barrier for one that makes it pass one too.
  if (node_asymmetric_ && !asymmetric_) {
    longest_ns = std::min<std::uint64_t>(longest_ns, 1'000'000);
  }
  if (!responses.ready()) rings::futex_wait(word, 1, longest_ns);
  base::store_shared(word, std::uint32_t{0});
}

void RingConnection::hang_up() {
  lose();
  ::shutdown(socket_.number(), SHUT_RDWR);
}

bool RingConnection::ask_lost() {
  if (lost()) return true;
  char byte = 0;
  const ssize_t got = ::recv(socket_.number(), &byte, sizeof byte, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return false;
  // The end, or the node's word that it comes.
  lose();
  return true;
}

}  // namespace espalier::client
