// SPDX-License-Identifier: Apache-2.0
#include "tests/support/raw_client.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <span>
#include <thread>
#include <utility>

#include "base/barrier.hpp"
#include "base/system_error.hpp"
#include "memory/seqpacket.hpp"
#include "rings/futex.hpp"

namespace espalier::test {

wire::Hello RawClient::hello(const wire::ConnectionLayout& layout) {
  wire::Hello hello{};
  hello.magic = wire::kHelloMagic;
  hello.protocol = wire::kProtocolVersion;
  hello.request_slots = layout.request_slots;
  hello.response_slots = layout.response_slots;
  hello.response_rings = layout.response_rings;
  return hello;
}

Result<std::unique_ptr<RawClient>> RawClient::open(const std::string& path,
                                                   const wire::ConnectionLayout& layout) {
  std::unique_ptr<RawClient> client(new RawClient);
  auto dialled = memory::connect_packets(path);
  if (!dialled) return std::unexpected(dialled.error());
  client->socket_ = std::move(*dialled);
  const wire::Hello hello = RawClient::hello(layout);
  if (!client->send_packet(rings::bytes_of(hello))) return base::refused_by_system();

  memory::Descriptor descriptors[wire::kWelcomeDescriptors];
  const auto got = memory::receive_packet(
      client->socket(), std::as_writable_bytes(std::span(&client->welcome_, 1)), descriptors);
  if (!got || *got == 0) return fail(Code::connection_lost);
  if (*got != sizeof client->welcome_) return fail(Code::corrupt);
  const wire::Welcome& welcome = client->welcome_;
  if (welcome.code != 0) return fail(static_cast<Code>(welcome.code), welcome.detail);

  const wire::ConnectionLayout given{welcome.request_slots, welcome.response_slots,
                                     welcome.response_rings};
  using memory::SharedMemory;
  auto memory =
      SharedMemory::attach(std::move(descriptors[0]), given.bytes(), memory::Rights::write);
  auto doorbells = SharedMemory::attach(std::move(descriptors[1]), wire::kDoorbellPageBytes,
                                        memory::Rights::write);
  auto page =
      SharedMemory::attach(std::move(descriptors[2]), sizeof(wire::NodePage), memory::Rights::read);
  if (!memory || !doorbells || !page) return fail(Code::corrupt);
  client->memory_ = std::move(*memory);
  client->doorbells_ = std::move(*doorbells);
  client->page_ = std::move(*page);
  client->memory_.close_descriptor();
  client->doorbells_.close_descriptor();
  client->page_.close_descriptor();
  std::byte* const bell =
      client->doorbells_.at(std::size_t{welcome.doorbell} * wire::kDoorbellBytes);
  client->rings_ = std::make_unique<rings::RingClient>(client->memory_.at(0), given, bell);
  return client;
}

void RawClient::ring() {
  rings_->ring();
  base::full_fence();
  const std::byte* const sleeps =
      page_.at(offsetof(wire::NodePage, workers) + welcome_.worker * sizeof(wire::WorkerLine));
  if (base::load_shared<std::uint32_t>(sleeps) != 0) {
    send_packet({"\1", 1});
  }
}

bool RawClient::send_packet(std::string_view bytes) const {
  return ::send(socket(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

bool RawClient::ended() const {
  char byte = 0;
  const ssize_t got = ::recv(socket(), &byte, 1, MSG_DONTWAIT);
  return got >= 0 || (errno != EAGAIN && errno != EINTR);
}

std::optional<rings::Response> RawClient::wait(std::uint32_t ring) {
  std::byte* const word = rings_->memory() + rings_->layout().response_side(ring) +
                          offsetof(wire::ResponseSide, sleeping);
  for (int round = 0;; ++round) {
    if (auto response = rings_->receive(ring)) return response;
    if (!rings_->flush() || round == 0) this->ring();
    if (round < 100) {
      std::this_thread::yield();
      continue;
    }
    if (ended()) return rings_->receive(ring);
    // The barrier of a node may be a light one, so this sleep is short.
    base::store_shared(word, std::uint32_t{1}, std::memory_order_seq_cst);
    base::full_fence();
    if (!rings_->responses(ring).ready()) rings::futex_wait(word, 1, 1'000'000);
    base::store_shared(word, std::uint32_t{0});
  }
}

std::optional<rings::Response> RawClient::call(const wire::RequestHeader& header,
                                               std::string_view key, std::string_view payload) {
  rings_->post(rings::message_of(header, key, payload));
  ring();
  std::string items;
  for (;;) {
    auto response = wait(header.ring & wire::kRingBits);
    if (!response) return std::nullopt;
    if (response->answers()) {
      response->payload.insert(0, items);
      return response;
    }
    items += response->payload;
  }
}

}  // namespace espalier::test
