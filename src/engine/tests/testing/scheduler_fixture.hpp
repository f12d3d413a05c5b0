// SPDX-License-Identifier: Apache-2.0
// A scheduler over a store of its own, run turn by turn: no sockets, and no threads but the helper.
//
// Thread: one at a time.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "engine/client_table.hpp"
#include "engine/scheduler.hpp"
#include "engine/services.hpp"
#include "kinds/map/write/audit.hpp"
#include "kinds/map/write/map_object.hpp"
#include "memory/shared_memory.hpp"
#include "rings/doorbells.hpp"
#include "rings/testing/ring_client.hpp"
#include "store/store_core.hpp"

namespace espalier::offload {

// Names that tests of the engine use all the time.
using rings::bytes_of;
using rings::message_of;
using rings::request_of;
using rings::Response;

inline constexpr wire::ConnectionLayout kSmallRings{64, 64, 1};
inline constexpr wire::ConnectionLayout kLongRequests{1024, 64, 1};

/// Options of both, since tests seldom care which one has an option.
struct FixtureOptions : SchedulerOptions, ClientTableOptions {
  HelperOptions helpers{};
  void (*make_part)(TypedSlots<NodePart>& parts) = nullptr;  ///< of the own offloads' kind
  /// Makes what the scheduler needs besides, before it is made.
  std::function<void(TypedSlots<NodePart>& parts)> make_parts{};
};

class SchedulerFixture {
 public:
  struct Client {
    Connection* connection;
    memory::SharedMemory doorbells;
    std::unique_ptr<rings::RingClient> rings;
    bool ended = false;

    rings::RingClient* operator->() const { return rings.get(); }
  };

  explicit SchedulerFixture(const FixtureOptions& options = {},
                            std::uint64_t message_bytes_max = std::uint64_t{64} << 20,
                            std::span<const Offload> own_offloads = {},
                            const OffloadTable* instead = nullptr)
      : store_(region(), 64),
        own_calls_(own_offloads),
        own_kind_{.name = "own", .calls = {&own_calls_, 1}, .make_part = options.make_part},
        services_(store_, message_bytes_max, {&own_kind_, 1}, options.helpers, instead),
        doorbells_(must(rings::Doorbells::reserve(4096))),
        client_table_(services_, doorbells_, options),
        scheduler_(make_scheduler(options)) {
    const auto made = tree::create_map(store_, "m", MapOptions{});
    map_ = must(made)->id;
    client_table_.on_broken = [this](Connection& connection) {
      ++broken_;
      broken_now_.push_back(&connection);
    };
    client_table_.on_ended = [this](Connection& connection) {
      doorbells_.close(connection.doorbell);
      clients_.at(&connection)->ended = true;
    };
  }
  ~SchedulerFixture() {
    for (const auto& [connection, client] : clients_) {
      if (!client->ended && !connection->closing) scheduler_->remove(*connection);
    }
    while (!scheduler_->idle()) turn();
    scheduler_->turn();
  }
  SchedulerFixture(const SchedulerFixture&) = delete;
  SchedulerFixture& operator=(const SchedulerFixture&) = delete;

  /// `user`: the owner of its doorbell, and of its account.
  Client& connect(const wire::ConnectionLayout& layout = kSmallRings, std::uint32_t user = 1) {
    auto connection = must(Connection::create(layout, services_.budget));
    const auto doorbell = must(doorbells_.open(user));
    connection->doorbell = doorbell.place;
    connection->access = Access::everything();
    connection->account = services_.principals.of(principal_of_user(user));
    auto page = must(memory::SharedMemory::attach(memory::Descriptor(::dup(doorbell.page)),
                                                  wire::kDoorbellPageBytes, memory::Rights::write));
    std::byte* const word = page.at(std::size_t{doorbell.in_page} * wire::kDoorbellBytes);
    // A mapping of its own: the client's rings outlive the node's.
    auto memory = must(
        memory::SharedMemory::attach(memory::Descriptor(::dup(connection->memory().descriptor())),
                                     layout.bytes(), memory::Rights::write));
    page.close_descriptor();
    memory.close_descriptor();
    auto client = std::make_unique<Client>();
    client->connection = connection.get();
    client->doorbells = std::move(page);
    client->rings = std::make_unique<rings::RingClient>(memory.at(0), layout, word);
    memories_.push_back(std::move(memory));
    // A new connection may get the address of an ended one.
    auto& place = clients_[connection.get()];
    if (place) gone_.push_back(std::move(place));
    place = std::move(client);
    client_table_.add(std::move(connection));
    return *place;
  }
  void disconnect(Client& client) { scheduler_->remove(*client.connection); }

  /// Runs one turn, and then removes connections that broke the protocol, as a scheduler's owner
  /// does.
  bool turn() {
    const bool moved = scheduler_->turn();
    for (Connection* connection : std::exchange(broken_now_, {})) scheduler_->remove(*connection);
    // The helper may need the core; but on a busy machine each yield takes long.
    if (!moved && ++quiet_turns_ % 64 == 0) std::this_thread::yield();
    return moved;
  }
  void turns(int count) {
    for (; count != 0; --count) turn();
  }
  /// Runs turns until a response arrives. One of kind invalid: none arrived.
  Response wait(Client& client, std::uint32_t ring = 0) {
    for (Timeout timeout; !timeout.passed();) {
      if (auto response = client->receive(ring)) return std::move(*response);
      if (client->flush()) client->ring();
      turn();
    }
    return {};
  }
  /// Sends one request and runs turns until its last answer has arrived; items go into its payload.
  Response call(Client& client, const wire::RequestHeader& header, std::string_view key = {},
                std::string_view payload = {}) {
    return call(client, message_of(header, key, payload));
  }
  Response call(Client& client, std::string message) {
    const auto header =
        base::load_plain<wire::RequestHeader>(reinterpret_cast<const std::byte*>(message.data()));
    client->post(std::move(message));
    client->ring();
    std::string items;
    for (;;) {
      Response response = wait(client, header.ring & wire::kRingBits);
      if (response.header.kind != static_cast<std::uint8_t>(wire::ResponseKind::chunk)) {
        response.payload.insert(0, items);
        return response;
      }
      items += response.payload;
    }
  }
  /// Whether everything in flight has ended.
  bool run_until_idle() {
    return run_until([this] { return scheduler_->idle(); });
  }
  /// Runs turns until `condition` holds. False: it never did.
  template <class Condition>
  bool run_until(const Condition& condition) {
    for (Timeout timeout; !condition() && !timeout.passed();) turn();
    return condition();
  }

  [[nodiscard]] std::uint32_t map() const { return map_; }
  [[nodiscard]] Scheduler& scheduler() { return *scheduler_; }
  [[nodiscard]] ClientTable& client_table() { return client_table_; }
  [[nodiscard]] Services& services() { return services_; }
  [[nodiscard]] rings::Doorbells& doorbells() { return doorbells_; }
  [[nodiscard]] catalog::Catalog& catalog() { return store_.catalog; }
  [[nodiscard]] tree::StoreCore& store() { return store_; }
  [[nodiscard]] tree::MapCore& core() { return **catalog().open<tree::MapCore>("m"); }
  /// How many connections were reported for breaking the protocol.
  [[nodiscard]] int broken() const { return broken_; }
  [[nodiscard]] std::vector<std::string> audit() const { return tree::audit_store(store_); }

 private:
  std::unique_ptr<Scheduler> make_scheduler(const FixtureOptions& options) {
    if (options.make_parts) options.make_parts(services_.parts);
    return std::make_unique<Scheduler>(services_, client_table_, options);
  }
  /// Whether to give up waiting: a helper may wait long for a processor.
  class Timeout {
   public:
    bool passed() { return ++turns_ % 1024 == 0 && watch_.elapsed_ns() > kTimeoutNs; }

   private:
    static constexpr std::uint64_t kTimeoutNs = 60'000'000'000;
    base::Stopwatch watch_;
    std::uint32_t turns_ = 0;
  };

  template <class T>
  static T must(Result<T> result) {
    if (!result) throw std::runtime_error(message(result.error()));
    return std::move(*result);
  }
  static memory::Region region() {
    memory::RegionOptions options;
    options.bytes_max = std::uint64_t{256} << 20;
    options.huge_pages = false;
    return must(memory::Region::reserve(options));
  }

  tree::StoreCore store_;
  const std::span<const Offload> own_calls_;
  const Kind own_kind_;
  Services services_;
  rings::Doorbells doorbells_;
  ClientTable client_table_;
  std::unique_ptr<Scheduler> scheduler_;
  std::uint32_t map_ = 0;
  std::map<Connection*, std::unique_ptr<Client>> clients_;
  std::vector<std::unique_ptr<Client>> gone_;
  std::vector<memory::SharedMemory> memories_;
  std::vector<Connection*> broken_now_;
  int broken_ = 0;
  std::uint32_t quiet_turns_ = 0;
};

using SchedulerClient = SchedulerFixture::Client;

}  // namespace espalier::offload
