// SPDX-License-Identifier: Apache-2.0
#include "channel/rings/ring_connection.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>

#include "base/barrier.hpp"
#include "base/system_error.hpp"
#include "base/trusted_server.hpp"
#include "channel/rings/link_welcome.hpp"
#include "channel/rings/node_proof.hpp"
#include "memory/seqpacket.hpp"
#include "rings/futex.hpp"
#include "wire/handshake.hpp"

namespace espalier::client {
namespace {

constexpr std::uint32_t kRequestSlots = 512;
constexpr std::uint32_t kResponseSlots = 1024;

template <class T>
Result<void> send_packet(const memory::Descriptor& socket, const T& packet) {
  return memory::send_packet(socket.number(), std::as_bytes(std::span(&packet, 1)));
}

/// Errors: system (ETIMEDOUT: no message arrived), connection_lost (the node closed the socket).
Result<std::size_t> receive_in_time(const memory::Descriptor& socket, std::span<std::byte> packet,
                                    std::span<memory::Descriptor> descriptors = {}) {
  const auto got = memory::receive_packet(socket.number(), packet, descriptors);
  if (!got && got.error() == Error{Code::system, 0, EAGAIN}) return fail(Code::system, ETIMEDOUT);
  if (got && *got == 0) return fail(Code::connection_lost);
  return got;
}

/// The node's next message of a proof. Errors: the node's refusal, not_permitted (detail 6: the
/// node asks for no proof, and has none to give), corrupt, those of receive_in_time().
template <class T>
Result<T> receive_step(const memory::Descriptor& socket, wire::ProofStep step) {
  std::array<std::byte, std::max(sizeof(T), sizeof(wire::Welcome)) + 1> bytes{};
  const auto got = receive_in_time(socket, bytes);
  if (!got) return std::unexpected(got.error());
  const auto refused = base::load_plain<wire::Welcome>(bytes.data());
  if (*got == sizeof refused && refused.magic == wire::kHelloMagic && refused.code != 0) {
    const Error why = refusal_of(refused.code, refused.detail);
    return std::unexpected(why.code == Code::unsupported ? node_not_proven() : why);
  }
  const auto message = base::load_plain<T>(bytes.data());
  const bool is_it = *got == sizeof message && message.magic == wire::kProofMagic &&
                     message.step == static_cast<std::uint32_t>(step);
  if (!is_it) return fail(Code::corrupt, 1);
  return message;
}

}  // namespace

Result<std::shared_ptr<RingConnection>> RingConnection::open(const std::string& path,
                                                             const RingConnectionOptions& options) {
  std::shared_ptr<RingConnection> made(new RingConnection);
  if (const auto done = made->connect(path, options); !done) return std::unexpected(done.error());
  if (options.secret != nullptr) {
    if (const auto done = made->prove(*options.secret); !done) {
      return std::unexpected(done.error());
    }
  }
  if (const auto done = made->say_hello(); !done) return std::unexpected(done.error());
  return made;
}

Result<void> RingConnection::connect(const std::string& path,
                                     const RingConnectionOptions& options) {
  auto connected = memory::connect_packets(path, options.timeout_ms);
  if (!connected && connected.error() == Error{Code::system, 0, EAGAIN}) {
    return fail(Code::system, ETIMEDOUT);
  }
  if (!connected) return std::unexpected(connected.error());
  socket_ = std::move(*connected);
  socket_.close_in_children();
  return base::check_server(socket_.number(), path, options.server_user);
}

// Relay attack: a process that poses as the node could forward all of this to the node. But the
// challenge names the user that the node sees, which would be that process's; and the proof is
// invalid for any other challenge.
Result<void> RingConnection::prove(const KnownSecret& secret) {
  wire::ProofAsk ask{};
  ask.magic = wire::kProofMagic;
  ask.step = static_cast<std::uint32_t>(wire::ProofStep::ask);
  if (const auto sent = send_packet(socket_, ask); !sent) return sent;
  const auto challenge = receive_step<wire::LinkChallenge>(socket_, wire::ProofStep::challenge);
  if (!challenge) return std::unexpected(challenge.error());
  const base::KnownUsers users = base::known_users();
  const bool comparable = !users.unmapped && challenge->node_pair != wire::kUserNotMapped;
  if (comparable && challenge->node_pair != users.own) return std::unexpected(node_not_proven());
  const auto proof = make_proof(secret, *challenge, 0);
  if (!proof) return std::unexpected(proof.error());
  if (const auto sent = send_packet(socket_, *proof); !sent) return sent;
  const auto proven = receive_step<wire::LinkProven>(socket_, wire::ProofStep::proven);
  if (!proven) return std::unexpected(proven.error());
  return check_node_proof(secret, *challenge, *proof, *proven);
}

Result<void> RingConnection::say_hello() {
  wire::Hello hello{};
  hello.magic = wire::kHelloMagic;
  hello.protocol = wire::kProtocolVersion;
  hello.request_slots = kRequestSlots;
  hello.response_slots = kResponseSlots;
  hello.response_rings = wire::kResponseRingsMax;
  if (const auto sent = send_packet(socket_, hello); !sent) return sent;
  wire::Welcome welcome{};
  memory::Descriptor descriptors[wire::kWelcomeDescriptors];
  const auto got =
      receive_in_time(socket_, std::as_writable_bytes(std::span(&welcome, 1)), descriptors);
  if (!got) return std::unexpected(got.error());
  if (*got != sizeof welcome || welcome.magic != wire::kHelloMagic) return fail(Code::corrupt, 1);
  if (welcome.code != 0) return std::unexpected(refusal_of(welcome.code, welcome.detail));
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
  // If the socket's buffer is full, the node has enough bytes to wake for.
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
  // The node assumes that a barrier of this process also acts as one for the node.
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
  // End of the stream, or the node's message that it closes.
  lose();
  return true;
}

}  // namespace espalier::client
