// SPDX-License-Identifier: Apache-2.0
// The peer of a client's connection, for tests: provides memory as a node does, and then sends only
// the answers that the test requests.
//
// Thread: one at a time, the client's included; connect() starts another one for a moment.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/unix_address.hpp"
#include "channel/rings/ring_connection.hpp"
#include "memory/seqpacket.hpp"
#include "rings/response_ring.hpp"
#include "rings/testing/ring_client.hpp"
#include "wire/handshake.hpp"

namespace espalier::client {

class FakeNode {
 public:
  /// Listens at this path.
  explicit FakeNode(std::string path) : path_(std::move(path)) {
    ::unlink(path_.c_str());
    const auto address = base::UnixAddress::file(path_);
    listener_ = memory::Descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (!address || ::bind(listener_.number(), address->get(), address->bytes()) != 0 ||
        ::listen(listener_.number(), 8) != 0) {
      throw std::runtime_error("cannot listen at " + path_);
    }
  }
  ~FakeNode() { ::unlink(path_.c_str()); }
  FakeNode(const FakeNode&) = delete;
  FakeNode& operator=(const FakeNode&) = delete;

  /// Connects a client to new memory.
  Result<std::shared_ptr<RingConnection>> connect(const wire::ConnectionLayout& layout) {
    std::thread other([&] { accept_client(layout); });
    auto connected = RingConnection::open(path_);
    other.join();
    if (connected) set_up(layout);
    return connected;
  }
  /// Works while the first client that comes, if any does, is accepted to new memory. No further
  /// one can connect.
  template <class Work>
  auto accepting(const wire::ConnectionLayout& layout, const Work& work) {
    std::thread other([&] { accept_client(layout); });
    auto done = work();
    ::shutdown(listener_.number(), SHUT_RDWR);
    other.join();
    return done;
  }
  /// The next request; nothing: none has arrived.
  bool take_request(wire::RequestHeader& header) {
    rings::MessageBuffer message;
    if (requests_.take(message) != rings::Taken::message) return false;
    header = base::load_plain<wire::RequestHeader>(message.data());
    return true;
  }
  void answer(std::uint32_t tag, std::string_view payload = {}) {
    response_.send(wire::ResponseKind::answer, tag, {}, {payload});
  }
  /// A piece of an answer; answer() ends it.
  void send_piece(std::uint32_t tag, std::string_view payload) {
    response_.send(wire::ResponseKind::chunk, tag, {}, {payload});
  }
  /// The slots of the first response ring, which the test may write.
  [[nodiscard]] rings::SlotSpace& responses() { return raw_; }
  [[nodiscard]] memory::SharedMemory& memory() { return memory_; }
  /// Changes the welcome that the next client gets at the socket.
  std::function<void(wire::Welcome&)> change = [](wire::Welcome&) {};
  void hang_up() { client_.close(); }

 private:
  static memory::SharedMemory make(std::uint64_t bytes) {
    auto made = memory::SharedMemory::create("fake", bytes);
    if (!made) throw std::runtime_error(message(made.error()));
    return std::move(*made);
  }
  void accept_client(const wire::ConnectionLayout& layout) {
    client_ = memory::Descriptor(::accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC));
    wire::Hello hello{};
    if (::recv(client_.number(), &hello, sizeof hello, 0) != sizeof hello) return;
    memory_ = make(layout.bytes());
    doorbells_ = make(wire::kDoorbellPageBytes);
    page_ = make(sizeof(wire::NodePage));
    wire::Welcome welcome{};
    welcome.magic = wire::kHelloMagic;
    welcome.protocol = wire::kProtocolVersion;
    welcome.request_slots = layout.request_slots;
    welcome.response_slots = layout.response_slots;
    welcome.response_rings = layout.response_rings;
    change(welcome);
    const int numbers[] = {memory_.descriptor(), doorbells_.descriptor(), page_.descriptor()};
    static_cast<void>(
        memory::send_packet(client_.number(), std::as_bytes(std::span(&welcome, 1)), numbers));
  }
  void set_up(const wire::ConnectionLayout& layout) {
    std::byte* const credit = memory_.at(offsetof(wire::ConnectionPage, request_credit));
    requests_ = rings::MessageReader(
        rings::SlotReader(memory_.at(layout.requests()), layout.request_slots, credit),
        wire::kRequestHeaderBytes, share_);
    std::byte* const side = memory_.at(layout.response_side(0));
    response_ =
        rings::ResponseRing(memory_.at(layout.responses(0)), layout.response_slots, side, share_);
    raw_ = rings::SlotSpace(memory_.at(layout.responses(0)), layout.response_slots, side);
  }

  std::string path_;
  memory::Descriptor listener_;
  memory::Descriptor client_;
  memory::SharedMemory memory_;
  memory::SharedMemory doorbells_;
  memory::SharedMemory page_;
  rings::MessageShare share_;
  rings::MessageReader requests_;
  rings::ResponseRing response_;
  rings::SlotSpace raw_;
};

}  // namespace espalier::client
