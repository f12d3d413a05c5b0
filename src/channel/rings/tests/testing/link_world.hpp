// SPDX-License-Identifier: Apache-2.0
// A node's scheduler and one client in a simulated fabric, with production code on both sides: the
// scheduler over a store, FabricClients, and a FabricConnection. Faults are drawn from a seed.
//
// The client keeps requests in flight with countable effects: numbers of a sequencer, each of which
// must arrive exactly once, and values that it wrote and reads again. So a request that runs twice,
// is lost, or is answered twice is detected.
//
// Thread: one at a time.
#pragma once

#include <sys/stat.h>

#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "base/temporary_folder.hpp"
#include "channel/rings/fabric_connection.hpp"
#include "channel/rings/thread_rings.hpp"
#include "engine/fabric_clients.hpp"
#include "engine/tests/testing/scheduler_fixture.hpp"
#include "fabric/sim/world.hpp"

namespace espalier::client {

/// Counts over one or more worlds.
struct LinkReached {
  std::uint64_t resumed = 0;  // by the client
  std::uint64_t node_resumed = 0;
  std::uint64_t cuts = 0;
  std::uint64_t pauses = 0;
  std::uint64_t lost_pairs = 0;  // noticed by the node
  std::uint64_t ring_full = 0;   // no room for a request
  std::uint64_t long_messages = 0;
  std::uint64_t answers = 0;
};

struct LinkWorldOptions {
  wire::LinkWay way = wire::LinkWay::write;
  std::uint32_t requests = 150;
  bool cuts = true;    // of links, in each direction
  bool pauses = true;  // of the node
  std::uint64_t give_up_ms = 20'000;
  std::uint64_t tick_ns = 5'000;  // between two turns of the node
  std::uint64_t resume_ms = 2'000;
  std::uint32_t sessions_max = 4000;
  std::uint32_t posts_max = offload::FabricClientsOptions{}.posts_max;
  bool secrets = false;  // the node asks for proofs, and the client has one
  std::optional<bool> client_has_secret = std::nullopt;  // if that is another matter
};

class LinkWorld {
 public:
  LinkWorld(std::uint64_t seed, const LinkWorldOptions& options)
      : options_(options), random_(seed), world_(seed, faults(seed)) {
    if (options.secrets) write_secrets(std::string(kSecretLine) + "\nother read " + kOtherSecret);
    start_node(world_.add_node("n"));
    tick();
  }
  ~LinkWorld() {
    ended_ = true;
    part();
    end_node();
  }
  LinkWorld(const LinkWorld&) = delete;
  LinkWorld& operator=(const LinkWorld&) = delete;

  /// Returns what went wrong; empty: nothing.
  std::string run(LinkReached& reached) {
    std::string wrong = connect();
    return wrong.empty() ? go_on(reached) : wrong;
  }

  /// The parts of run(), for callers that act between them; same results as run().
  std::string connect() {
    if (!listens_) return "cannot listen";
    FabricConnectionOptions options;
    options.way = options_.way;
    options.request_slots = kRings.request_slots;
    options.response_slots = kRings.response_slots;
    options.response_rings = kRings.response_rings;
    options.now_ns = [this] { return world_.now_ns(); };
    options.pair_timeout_ns = kMs;
    options.timeout_ns = 4'000 * kMs;
    options.silence_ns = 20 * kMs;
    if (options_.client_has_secret.value_or(options_.secrets)) options.secret = secret();
    fabric::Connecting way{client_came_ ? world_.add_endpoint("c") : world_.add_node("c"), "n"};
    client_came_ = true;
    auto opened = FabricConnection::open(std::move(way), options);
    if (!opened) return "cannot connect: " + message(opened.error());
    connection_ = std::move(*opened);
    auto rings = ThreadRings::open(connection_);
    if (!rings) return "no lane: " + message(rings.error());
    rings_ = std::move(*rings);
    return {};
  }
  std::string go_on(LinkReached& reached) {
    plan_trouble(reached);
    std::string wrong = work(options_.requests, reached);
    count_resumed(reached);
    return wrong;
  }
  void plan_trouble(LinkReached& reached) {
    if (options_.cuts) plan_cuts(reached);
    if (options_.pauses) plan_pauses(reached);
  }
  void count_resumed(LinkReached& reached) const {
    reached.resumed += connection_->resumed();
    reached.node_resumed += clients_->counts().resumed;
    reached.lost_pairs += clients_->counts().lost;
  }
  std::string work(std::uint32_t requests, LinkReached& reached) {
    const std::uint64_t until = world_.now_ns() + options_.give_up_ms * kMs;
    std::uint32_t sent = 0;
    std::optional<Asked> next;
    while (sent < requests || !in_flight_.empty()) {
      if (world_.now_ns() > until) return stuck();
      if (connection_->lost()) return "lost";
      while (sent < requests && in_flight_.size() < kWindow) {
        if (!next) next = draw_request();
        if (is_busy(*next) || !send(*next, reached)) break;
        next.reset();
        ++sent;
      }
      Incoming response;
      while (rings_->receive(response)) {
        ++reached.answers;
        if (std::string wrong = check(response); !wrong.empty()) return wrong;
      }
    }
    return check_end();
  }
  /// The node crashes at this time; later another one starts in its place, without its state.
  void plan_restart(std::uint64_t crash_ns, std::uint64_t down_ns) {
    world_.at(crash_ns, [this] {
      world_.crash("n");
      end_node();
    });
    world_.at(crash_ns + down_ns, [this] { start_node(world_.restart("n")); });
  }
  /// Drops the client's state of a node that is gone. Requires: connect() follows.
  void forget() {
    part();
    in_flight_.clear();
    numbers_.clear();
    values_.clear();
  }
  /// Sets the interval of the node's turns.
  void turn_every(std::uint64_t tick_ns) { tick_ns_ = tick_ns; }
  /// Runs the client as if it waited: after a failure it connects again.
  void attend() {
    if (connection_) connection_->make_progress();
  }
  /// The client sends a close note.
  void part() {
    rings_.reset();
    connection_.reset();
  }

  /// Writes the node's secrets file and has it loaded. Returns whether it was.
  bool write_secrets(const std::string& lines) {
    const std::string path = (folder_ / "secrets").string();
    std::ofstream(path) << lines << '\n';
    ::chmod(path.c_str(), 0600);
    return secrets_.load(path).has_value();
  }
  /// The client's secret.
  static std::shared_ptr<const KnownSecret> secret(std::string_view line = kSecretLine) {
    crypto::SecretBytes bytes{};
    const auto credential = crypto::parse_credential(line, bytes);
    return KnownSecret::make((**credential).name, bytes).value();
  }
  static constexpr const char* kSecretLine =
      "client write 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
  static constexpr const char* kOtherSecret =
      "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

  /// The rings of the client.
  static constexpr wire::ConnectionLayout kRings{64, 64, 2};

  [[nodiscard]] fabric::sim::World& world() { return world_; }
  [[nodiscard]] FabricConnection& connection() { return *connection_; }
  [[nodiscard]] ThreadRings& rings() { return *rings_; }
  /// How many sessions were accepted and have not ended.
  [[nodiscard]] std::int64_t admitted() const { return admitted_; }
  /// The token of the first session, which only its client should know. With secrets the challenge
  /// was drawn before it.
  [[nodiscard]] wire::LinkToken first_token() const {
    const std::size_t at = options_.secrets ? sizeof(wire::ProofNonce) / sizeof(drawn_[0]) : 0;
    return {drawn_.at(at), drawn_.at(at + 1)};
  }
  [[nodiscard]] offload::FabricClients& clients() { return *clients_; }
  [[nodiscard]] offload::SchedulerFixture& node() { return *serving_; }

 private:
  static constexpr std::uint64_t kMs = 1'000'000;
  static constexpr std::uint32_t kWindow = 24;
  static constexpr std::uint32_t kKeys = 8;

  struct Asked {
    wire::OffloadId offload = wire::OffloadId::invalid;
    std::string key;
    std::string value;
  };

  static fabric::sim::Faults faults(std::uint64_t seed) {
    auto faults = fabric::sim::Faults::harsh();
    faults.split_atomic_ns = {0, 0};
    // Some worlds have fewer faults, so that a whole lap of the rings fits between two failures.
    if (seed % 3 == 0) faults = {};
    return faults;
  }

  offload::FabricClientsOptions client_options() {
    offload::FabricClientsOptions options;
    options.node_id = ++nodes_;
    options.now_ns = [this] { return world_.now_ns(); };
    options.draw = [this] { return drawn_.emplace_back(random_()); };
    options.pair_timeout_ns = kMs;
    options.silence_ns = 20 * kMs;
    options.resume_ns = options_.resume_ms * kMs;
    options.posts_max = options_.posts_max;
    options.sessions_max = options_.sessions_max;
    options.secrets = options_.secrets ? &secrets_ : nullptr;
    options.count = [this](bool comes) { admitted_ += comes ? 1 : -1; };
    return options;
  }

  // The machine's real time decides nothing.
  static offload::FixtureOptions no_sweeps() {
    offload::FixtureOptions options;
    options.sweep_ns = ~std::uint64_t{0} >> 2;
    return options;
  }

  void start_node(std::unique_ptr<fabric::Endpoint> endpoint) {
    listens_ = endpoint->listen("n").has_value();
    serving_ = std::make_unique<offload::SchedulerFixture>(no_sweeps());
    map_ = serving_->map();
    clients_ = std::make_unique<offload::FabricClients>(std::move(endpoint), serving_->services(),
                                                        serving_->scheduler(),
                                                        serving_->doorbells(), client_options());
    serving_->client_table().on_broken = [this](offload::Connection& connection) {
      broken_.push_back(&connection);
    };
    // The last may end with the fixture, when nothing points to it any more.
    serving_->client_table().on_ended =
        [&doorbells = serving_->doorbells()](offload::Connection& connection) {
          doorbells.close(connection.doorbell);
        };
  }
  void end_node() {
    clients_.reset();
    broken_.clear();
    if (!serving_) return;
    for (int i = 0; i < 100'000 && !serving_->scheduler().idle(); ++i) serving_->scheduler().turn();
    serving_->scheduler().turn();
    serving_.reset();
  }

  // The node's thread.
  void tick() {
    if (ended_) return;
    if (clients_ && !paused_) {
      await_helpers();
      clients_->turn();
      serving_->scheduler().turn();
      for (offload::Connection* connection : std::exchange(broken_, {})) {
        clients_->end_broken(*connection);
      }
      clients_->turn();
    }
    world_.after(tick_ns_, [this] { tick(); });
  }

  // Helper threads take no simulated time.
  void await_helpers() {
    for (;;) {
      const auto numbers = serving_->services().helpers.numbers();
      if (numbers.ready + numbers.running == 0) return;
      std::this_thread::yield();
    }
  }

  // Overlapping with cuts or not; shorter or longer than a pair's timeout.
  void plan_pauses(LinkReached& reached) {
    std::uint64_t at = world_.now_ns();
    for (std::uint64_t i = random_.between(0, 2); i != 0; --i) {
      at += random_.between(0, 10 * kMs);
      const std::uint64_t end = at + random_.between(kMs / 10, 20 * kMs);
      world_.at(at, [this] { set_paused(true); });
      world_.at(end, [this] { set_paused(false); });
      ++reached.pauses;
      at = end;
    }
  }
  void set_paused(bool paused) {
    paused_ = paused;
    paused ? world_.pause("n") : world_.resume("n");
  }

  // In one direction or both; shorter or longer than a pair's timeout.
  void plan_cuts(LinkReached& reached) {
    std::uint64_t at = world_.now_ns();
    for (std::uint64_t i = random_.between(1, 4); i != 0; --i) {
      at += random_.between(0, 4 * kMs);
      const std::uint64_t end = at + random_.between(kMs / 10, 20 * kMs);
      const std::uint64_t which = random_.between(1, 3);
      const auto each = [which](auto change) {
        if ((which & 1) != 0) change("c", "n");
        if ((which & 2) != 0) change("n", "c");
      };
      world_.at(at, [this, each] { each([this](auto a, auto b) { world_.cut(a, b); }); });
      world_.at(end, [this, each] { each([this](auto a, auto b) { world_.heal(a, b); }); });
      ++reached.cuts;
      at = end;
    }
  }

  Asked draw_request() {
    Asked asked;
    const std::uint64_t kind = random_.between(0, 9);
    if (kind < 5) {
      asked.offload = wire::OffloadId::sequence;
      asked.key = "s";
    } else if (kind < 8) {
      asked.offload = wire::OffloadId::put;
      asked.key = "k" + std::to_string(random_.between(0, kKeys - 1));
      // Sometimes more than the rings hold.
      const std::uint64_t bytes = random_.between(0, 19) == 0 ? 9'000 : random_.between(0, 300);
      asked.value = std::string(bytes, static_cast<char>('a' + random_.between(0, 25)));
    } else {
      asked.offload = wire::OffloadId::get;
      asked.key = "k" + std::to_string(random_.between(0, kKeys - 1));
    }
    return asked;
  }

  // At most one request in flight per key, so that the key's value is known.
  [[nodiscard]] bool is_busy(const Asked& asked) const {
    if (asked.offload == wire::OffloadId::sequence) return false;
    for (const auto& [tag, other] : in_flight_) {
      if (other.key == asked.key) return true;
    }
    return false;
  }

  bool send(const Asked& asked, LinkReached& reached) {
    wire::CallMessage request;
    request.offload = asked.offload;
    request.key = asked.key;
    request.payload = asked.value;
    const bool sequence = asked.offload == wire::OffloadId::sequence;
    request.map = sequence ? 0 : map_;
    request.argument = sequence ? 1 : 0;
    const bool is_long = ThreadRings::slots_of(request) > rings_->batch_slots_max();
    if (!rings_->send(request, next_tag_)) {
      ++reached.ring_full;
      return false;
    }
    if (is_long) ++reached.long_messages;
    rings_->ring();
    in_flight_.emplace(next_tag_++, asked);
    return true;
  }

  [[nodiscard]] std::string stuck() const {
    std::string what = "stuck at " + std::to_string(world_.now_ns() / kMs) + " ms, resumed " +
                       std::to_string(connection_->resumed()) + " times, behind line " +
                       std::to_string(connection_->tail()) + ", with";
    for (const auto& [tag, asked] : in_flight_) {
      what += " " + std::to_string(tag) + ":" + asked.key;
    }
    return what;
  }

  std::string check(const Incoming& response) {
    const auto at = in_flight_.find(response.header.tag);
    if (at == in_flight_.end()) return "an answer that nobody waits for";
    const Asked asked = at->second;
    in_flight_.erase(at);
    if (response.header.code != 0) return "code " + std::to_string(response.header.code);
    if (asked.offload == wire::OffloadId::sequence) {
      if (!numbers_.insert(response.header.version).second) return "a number came twice";
    } else if (asked.offload == wire::OffloadId::put) {
      values_[asked.key] = asked.value;
    } else {
      const bool found = (response.header.flags & wire::kFound) != 0;
      const auto known = values_.find(asked.key);
      if (found != (known != values_.end())) return "found, or not, against what was written";
      if (found && response.payload != known->second) return "another value than was written";
    }
    return {};
  }

  // Numbers without a gap: no request ran twice.
  std::string check_end() {
    if (!numbers_.empty() && *numbers_.rbegin() + 1 != numbers_.size()) {
      return "numbers were taken twice";
    }
    return {};
  }

  const LinkWorldOptions options_;
  const base::TemporaryFolder folder_;
  offload::Secrets secrets_;
  base::Random random_;
  fabric::sim::World world_;
  // The node; null while it is down.
  std::unique_ptr<offload::SchedulerFixture> serving_;
  std::unique_ptr<offload::FabricClients> clients_;
  std::vector<offload::Connection*> broken_;
  std::vector<std::uint64_t> drawn_;
  std::int64_t admitted_ = 0;
  std::uint64_t tick_ns_ = options_.tick_ns;
  std::uint64_t nodes_ = 0;  // so far
  std::uint32_t map_ = 0;    // its number at the last node, for requests while there is none
  bool client_came_ = false;
  bool listens_ = false;
  bool paused_ = false;
  bool ended_ = false;
  std::shared_ptr<FabricConnection> connection_;
  std::unique_ptr<ThreadRings> rings_;
  std::map<std::uint32_t, Asked> in_flight_;
  std::uint32_t next_tag_ = 1;
  std::set<std::uint64_t> numbers_;
  std::map<std::string, std::string> values_;
};

}  // namespace espalier::client
