// SPDX-License-Identifier: Apache-2.0
#include "tests/support/one_sided_world.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>
#include <utility>

#include "fabric/sim/testing/two_ends.hpp"
#include "offload/one_sided_host.hpp"
#include "place/one_sided_reader.hpp"
#include "tests/support/hints.hpp"
#include "tests/support/version_replay.hpp"

namespace espalier::test {
namespace {

using fabric::sim::World;

// In the world's time, where a message takes some microseconds.
constexpr base::LeaseTerms kTerms{
    .renew_every_ns = 100'000, .believed_for_ns = 1'000'000, .lost_after_ns = 2'000'000};
constexpr std::uint64_t kSweepNs = 300'000;
constexpr std::uint64_t kWorldNs = 2'000'000'000;  // after that, something hangs

/// The host's side of one client's session.
struct Session {
  fabric::Registration region;
  std::vector<base::LeaseId> leases;
};

/// The store beside its memory: writes, reclaims, and answers for leases.
class Host {
 public:
  Host(World& world, std::uint64_t seed, const OneSidedOptions& options)
      : world_(world),
        random_(seed),
        options_(options),
        endpoint_(world.add_node("host")),
        scene_(options.map),
        writer_(scene_.store, *scene_.map, 6, clock) {
    if (!endpoint_->listen("host")) throw std::runtime_error("the host cannot listen");
    for (std::uint32_t i = 0; i < options.keys; ++i)
      keys.push_back(Scene::key(static_cast<int>(i)));
    for (std::uint32_t i = 0; i < options.keys; ++i) write();
  }

  void write() {
    Question question;
    question.op = options_.erases && random_.one_in(3) ? Op::erase : Op::put;
    question.key = random_.pick(keys);
    if (question.op == Op::put) {
      const std::uint64_t most = random_.one_in(100) ? 200'000 : 3000;  // extents come and go
      const bool is_long = random_.one_in(options_.one_in_long);
      const std::uint64_t bytes = is_long ? random_.between(options_.long_bytes, most)
                                          : random_.below(options_.value_bytes);
      question.value = std::to_string(++written_) + " ";
      while (question.value.size() < bytes) question.value += static_cast<char>('a' + bytes % 26);
    }
    writer_.ask(std::move(question));
    // What was given back is used again by the next write, or by another class of buffers.
    scene_.store.reclaimer.collect(writer_.context.cache);
    if (!random_.one_in(50)) return;
    writer_.context.cache.flush();
    scene_.store.pool.trim();
  }

  /// A new session for a client; its pairs are of this domain.
  std::uint32_t open_session() {
    sessions_.emplace_back();
    const auto domain = static_cast<std::uint32_t>(sessions_.size());
    auto region =
        endpoint_->regions().offer({scene_.store.region.at(0), scene_.store.region.bytes()},
                                   fabric::RemoteRights::read, domain);
    if (!region) throw std::runtime_error("no region: " + message(region.error()));
    sessions_.back().region = std::move(*region);
    return domain;
  }
  [[nodiscard]] Session& session(std::uint32_t domain) { return sessions_[domain - 1]; }

  /// Fences sessions that were not heard of for too long, then ends their leases.
  void sweep() {
    const std::uint64_t now = world_.now_ns();
    if (now < kTerms.lost_after_ns) return;
    for (const auto& lease : scene_.store.leases.overdue(now - kTerms.lost_after_ns)) {
      Session& of = session(static_cast<std::uint32_t>(lease.owner));
      offload::fence_and_end(of.region, scene_.store.leases, of.leases);
    }
  }

  void drop_map() { scene_.map->set_dropped(); }

  Clock clock;
  std::vector<std::string> keys;
  [[nodiscard]] fabric::Endpoint& endpoint() { return *endpoint_; }
  [[nodiscard]] tree::StoreCore& store() { return scene_.store; }
  [[nodiscard]] const tree::MapCore& map() const { return *scene_.map; }
  [[nodiscard]] WalkRecorder& recorder() { return writer_.recorder; }

 private:
  World& world_;
  Random random_;
  OneSidedOptions options_;
  std::unique_ptr<fabric::Endpoint> endpoint_;
  Scene scene_;
  HostWalker writer_;
  std::vector<Session> sessions_;
  std::uint64_t written_ = 0;
};

/// One client: asks, answers for its lease, comes again when its session is gone.
class Client {
 public:
  Client(World& world, Host& host, std::uint32_t number, std::uint64_t seed,
         const OneSidedOptions& options, OneSidedCounts& counts)
      : world_(world),
        host_(host),
        name_("client" + std::to_string(number)),
        random_(seed),
        counts_(counts),
        left_(options.reads),
        options_(options),
        hints_(host.map(), seed),
        endpoint_(world.add_node(name_)),
        end_(*endpoint_),
        recorder_(host.clock, 10 + number) {
    recorder_.expect_refusals({Code::contended, Code::connection_lost, Code::not_found});
  }
  ~Client() {
    close();
    end_.pair.reset();
  }

  [[nodiscard]] bool done() const { return left_ == 0 && (!reader_ || reader_->pending() == 0); }
  [[nodiscard]] WalkRecorder& recorder() { return recorder_; }

  // One turn of the client's loop.
  void turn() {
    if (!reader_) {
      open();
      return;
    }
    while (left_ != 0 && reader_->pending() < 4 && random_.one_in(2)) {
      --left_;
      Question question = random_read(random_, host_.keys, 30);
      const wire::Ref hint = options_.hints ? hint_for(question.key) : wire::Ref{};
      reader_->submit(recorder_.ask(std::move(question), nullptr, hint));
    }
    reader_->poll();
    if (const auto asked = reader_->lease().due(world_.now_ns())) ask_host(*asked);
    const bool gone =
        end_.pair->state() == fabric::QueuePair::State::error || (reader_->lease().ended());
    if (gone) {
      reader_->fail();
      reader_->poll();
      if (reader_->pending() == 0) close();
    }
    endpoint_->wait(random_.below(3000));
  }

 private:
  // Where a walk for this key enters: at the leaf that had the key when it was last asked for, at
  // any node that there is or was, where there never was one, or at the root.
  wire::Ref hint_for(const std::string& key) {
    hints_.current();
    if (random_.one_in(2)) return {};
    if (random_.one_in(2) || key.empty()) return hints_.any();
    return std::exchange(leaves_[key], Scene::leaf_of(host_.map(), key));
  }

  void open() {
    end_.sends.poll({});
    end_.poll();
    end_.completions.clear();
    end_.pair.reset();
    domain_ = host_.open_session();
    ++counts_.sessions;
    fabric::sim::End host_end(host_.endpoint());
    host_end.options.domain = domain_;
    end_.options.domain = 0;
    // The host's end of the pair lives as long as the world.
    auto& kept = host_ends_.emplace_back(std::make_unique<fabric::sim::End>(host_.endpoint()));
    kept->options.domain = domain_;
    if (!fabric::sim::connect(world_, end_, *kept, "host")) return;
    wire::MapHeader header;
    std::memcpy(&header, host_.store().region.at(host_.map().header_offset), sizeof header);
    header.superseded = wire::kLive;  // as it was told when the map was opened
    const auto view = tree::MapView::read(header, host_.map().header_offset,
                                          host_.store().region.bytes(), nullptr);
    if (!view) throw std::runtime_error("no view: " + message(view.error()));
    place::OneSidedReader::Options options;
    options.lanes = 4;
    options.terms = kTerms;
    options.now_ns = [this] { return world_.now_ns(); };
    ++life_;
    reader_ = std::make_unique<place::OneSidedReader>(
        *endpoint_, *end_.pair, end_.sends, host_.session(domain_).region.remote(), *view, options);
  }

  void close() {
    if (!reader_) return;
    counts_.restarts += reader_->restarts();
    counts_.met_changes += reader_->met_changes();
    counts_.round_trips += reader_->traffic().round_trips;
    counts_.bytes += reader_->traffic().bytes;
    reader_.reset();
    ++life_;
    end_.pair->close();
  }

  // A question travels, is answered, and the answer travels back; each takes its time, sometimes
  // long.
  void ask_host(const place::LeaseGuard::Asked& asked) {
    const auto delay = [this] {
      return options_.pauses && random_.one_in(12) ? random_.below(2'500'000)
                                                   : random_.between(1'000, 20'000);
    };
    const std::uint64_t back = delay();
    world_.after(delay(), [this, asked, back, life = life_, domain = domain_] {
      base::LeaseTable& leases = host_.store().leases;
      Session& session = host_.session(domain);
      if (asked.id == 0) {
        std::optional<base::LeaseTable::Granted> granted;
        if (session.region) {
          granted = leases.grant(domain, world_.now_ns());
          if (options_.keeps_leases) session.leases.push_back(granted->id);
          if (!options_.keeps_leases) leases.end(granted->id);
        }
        world_.after(back, [this, granted, life] {
          if (life != life_) return;
          if (granted) reader_->lease().granted(granted->id, granted->epoch, world_.now_ns());
          if (!granted) reader_->lease().end_all();
        });
        return;
      }
      const Result<std::uint64_t> renewed =
          options_.keeps_leases ? leases.renew(asked.id, asked.oldest, world_.now_ns())
                                : Result<std::uint64_t>(host_.store().epochs.current());
      world_.after(back, [this, renewed, life] {
        if (life != life_) return;
        if (renewed) return reader_->lease().renewed(*renewed, world_.now_ns());
        // Its key is gone too: a new session is needed.
        ++counts_.leases_lost;
        reader_->lease().end_all();
      });
    });
  }

  World& world_;
  Host& host_;
  std::string name_;
  Random random_;
  OneSidedCounts& counts_;
  std::uint64_t left_;
  const OneSidedOptions options_;
  Hints hints_;
  std::map<std::string, wire::Ref> leaves_;
  std::unique_ptr<fabric::Endpoint> endpoint_;
  fabric::sim::End end_;
  std::vector<std::unique_ptr<fabric::sim::End>> host_ends_;
  std::unique_ptr<place::OneSidedReader> reader_;
  std::uint32_t domain_ = 0;
  std::uint64_t life_ = 0;  // changes with the reader
  WalkRecorder recorder_;
};

}  // namespace

std::string run_one_sided(std::uint64_t seed, const OneSidedOptions& options,
                          OneSidedCounts& counts) {
  World world(seed, options.faults);
  Host host(world, seed + 1, options);
  std::vector<std::unique_ptr<Client>> clients;
  for (std::uint32_t i = 0; i < options.clients; ++i) {
    clients.push_back(std::make_unique<Client>(world, host, i, seed + 10 + i, options, counts));
  }
  Random random(seed + 2);
  // The host writes, sweeps, and now and then does neither for a while.
  std::uint64_t paused_until = 0;
  bool over = false;
  std::function<void()> write = [&] {
    if (over) return;
    if (options.pauses && random.one_in(400)) paused_until = world.now_ns() + 4'000'000;
    if (world.now_ns() >= paused_until) host.write();
    world.after(random.between(500, 15'000), write);
  };
  std::function<void()> sweep = [&] {
    if (over) return;
    host.sweep();
    world.after(kSweepNs, sweep);
  };
  world.after(1, write);
  world.after(kSweepNs, sweep);
  if (options.drop) world.after(3'000'000, [&] { host.drop_map(); });
  const auto all_done = [&] {
    return std::ranges::all_of(clients, [](const auto& client) { return client->done(); });
  };
  while (!all_done()) {
    for (const auto& client : clients) client->turn();
    if (world.now_ns() > kWorldNs) return "the clients do not come to an end";
  }
  over = true;
  History history;
  const auto add = [&](WalkRecorder& recorder) -> std::string {
    if (recorder.unexpected()) return *recorder.unexpected();
    for (Operation& operation : recorder.log()) {
      counts.answers += operation.refused ? 0 : 1;
      counts.refused += operation.refused ? 1 : 0;
      for (const ReadItem& item : operation.items) {
        counts.long_values += item.value.size() > options.map.node_bytes ? 1 : 0;
      }
      if (!operation.refused) history.operations.push_back(std::move(operation));
    }
    return {};
  };
  std::string wrong = add(host.recorder());
  for (const auto& client : clients) {
    if (wrong.empty()) wrong = add(client->recorder());
  }
  counts.torn_reads += world.counts().torn_reads;
  counts.reads_reordered += world.counts().reads_reordered;
  if (!wrong.empty()) return wrong;
  return replay_versions(history).value_or("");
}

}  // namespace espalier::test
