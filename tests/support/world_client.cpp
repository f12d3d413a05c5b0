// SPDX-License-Identifier: Apache-2.0
#include "tests/support/world_client.hpp"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <utility>

#include "kinds/map/remote/testing/node_cache_forger.hpp"
#include "tests/support/scene.hpp"

namespace espalier::test {
namespace {

using fabric::QueuePair;

// Without an answer about its lease a client gives the connection up. Much longer than what it
// reads is believed, so that it is the belief that ends its answers.
constexpr std::uint64_t kKeepaliveNs = 6'000'000;
constexpr std::uint64_t kConnectNs = 5'000'000;
constexpr std::uint64_t kRetryNs = 300'000;
constexpr std::uint32_t kRetries = 50;
constexpr std::uint32_t kPacketBytes = 1024;  // of a READ by key

}  // namespace

WorldClient::WorldClient(fabric::sim::World& world, std::deque<HostOfNow>& hosts,
                         std::uint32_t number, std::uint64_t seed, const OneSidedOptions& options,
                         Clock& clock, MapRecords& records, OneSidedCounts& counts)
    : world_(world),
      hosts_(hosts),
      name_("client" + std::to_string(number)),
      number_(number),
      random_(seed),
      options_(options),
      clock_(clock),
      records_(records),
      counts_(counts),
      left_(options.reads),
      endpoint_(world.add_node(name_)),
      end_(*endpoint_),
      hints_(hosts.back()->map(), seed) {}

WorldClient::~WorldClient() {
  close();
  end_.pair.reset();
}

void WorldClient::turn() {
  if (std::exchange(busy_, true)) return;
  if (reader_) {
    use_reader();
  } else if (end_.pair) {
    go_on_connecting();
  } else {
    connect();
  }
  busy_ = false;
  endpoint_->wait(random_.below(3000));
}

void WorldClient::use_reader() {
  if (options_.forged_cache) forge_cache();
  submit();
  reader_->poll();
  if (const auto asked = reader_->lease().due(world_.now_ns())) ask_host(*asked);
  const bool silent = asked_ns_ && world_.now_ns() - *asked_ns_ > kKeepaliveNs;
  if (silent || reader_->lease().ended() || end_.pair->state() == QueuePair::State::error) {
    reader_->fail();
    reader_->poll();
    if (reader_->pending() == 0) close();
  } else if (map_gone_ && reader_->pending() == 0) {
    close();
  }
}

void WorldClient::submit() {
  while (left_ != 0 && reader_->pending() < 4 && !map_gone_ && random_.one_in(2)) {
    --left_;
    Question question = random_read(random_, host_of_now().keys(), 30);
    if (options_.only_scans) {
      question = {};
      question.op = Op::scan;
    }
    const wire::Ref hint = options_.hints ? hint_for(question.key) : wire::Ref{};
    reader_->submit(recorder().ask(std::move(question), nullptr, hint));
  }
}

// Where a walk for this key enters: at the leaf that had the key in the last request, perhaps of a
// former map or host; at any present or former node; at a place that never was a node; or at the
// root.
wire::Ref WorldClient::hint_for(const std::string& key) {
  hints_.follow(host_of_now().map());
  hints_.current();
  if (random_.one_in(2)) return {};
  if (random_.one_in(2) || key.empty()) return hints_.any();
  return std::exchange(leaves_[key], Scene::leaf_of(host_of_now().map(), key));
}

WalkRecorder& WorldClient::recorder() {
  auto& recorder = recorders_[opening_->map];
  if (!recorder) {
    recorder = std::make_unique<WalkRecorder>(clock_, 10 + number_);
    recorder->expect_refusals({Code::contended, Code::connection_lost, Code::not_found});
    recorder->on_handed_out = [this](const Error& error) { handed_out(error); };
  }
  return *recorder;
}

void WorldClient::handed_out(const Error& error) {
  map_gone_ = map_gone_ || error.code == Code::not_found;
  if (error.code != Code::invalid) return;
  const std::uint64_t now = world_.now_ns();
  if (now - heard_ns_ > kWorldTerms.believed_for_ns) {
    wrong_ = "an answer " + std::to_string(now - heard_ns_) +
             " ns after the host last answered a renewal";
  }
  counts_.answers_of_successors += host_->life() > 1 ? 1 : 0;
  if (!host_->dead()) return;
  ++counts_.answers_of_the_dead;
  counts_.latest_of_the_dead_ns = std::max(counts_.latest_of_the_dead_ns, now - host_->died_ns());
}

// A session first, as by rings, then a pair that names it.
void WorldClient::connect() {
  if (failures_ > kRetries) left_ = 0;
  if (left_ == 0 || world_.now_ns() < retry_ns_) return;
  WorldHost& host = host_of_now();
  if (host.dead()) {  // no session can be had there
    ++failures_;
    retry_ns_ = world_.now_ns() + kRetryNs;
    return;
  }
  end_.sends.poll({});
  end_.poll();
  end_.completions.clear();
  host_ = &host;
  domain_ = host.open_session();
  region_ = host.session(domain_).region.remote();
  ++counts_.sessions;
  choose_map();
  if (opening_->indexed) host.admit(domain_, *opening_->indexed);
  const WorldHost::Hello hello{host.life(), domain_};
  auto pair = endpoint_->connect(kHostName, end_.options, std::as_bytes(std::span(&hello, 1)));
  if (!pair) throw std::runtime_error("no pair: " + message(pair.error()));
  end_.pair = std::move(*pair);
  connecting_since_ns_ = world_.now_ns();
}

// The cache of a map stays valid while the host is the same; another host starts without. Sometimes
// a client has not noticed that the map was dropped.
void WorldClient::choose_map() {
  const bool same_node = opening_ && opening_->life == host_->life();
  const bool keep = same_node && (!map_gone_ || random_.one_in(3));
  if (!keep) opening_.emplace(host_->opening());
  map_gone_ = false;
}

void WorldClient::go_on_connecting() {
  // A process that is dead lets a connection pend for ever.
  const bool in_time = world_.now_ns() - connecting_since_ns_ < kConnectNs;
  if (end_.pair->state() == QueuePair::State::connecting && in_time) return;
  if (end_.pair->state() == QueuePair::State::connected) return open_reader();
  end_.pair.reset();
  ++failures_;
}

void WorldClient::open_reader() {
  failures_ = 0;
  place::OneSidedReader::Options options;
  options.lanes = 4;
  options.terms = kWorldTerms;
  options.now_ns = [this] { return world_.now_ns(); };
  if (options_.cache_bytes != 0 && cached_life_ != host_->life()) {
    cache_ = std::make_unique<place::NodeCache>(options_.cache_bytes);
    cached_life_ = host_->life();
  }
  options.cache = cache_.get();
  options.remembers_leaves = options_.leaf_heads;
  options.groups_gets = options_.groups_gets;
  ++life_;
  reader_ = std::make_unique<place::OneSidedReader>(*endpoint_, *end_.pair, end_.sends, region_,
                                                    opening_->view, options);
  if (const auto& map = opening_->indexed) {
    const std::uint32_t bytes = std::min(options_.map.node_bytes, kPacketBytes);
    reader_->read_by_key({map->keyed_key(), map->prefix(), bytes});
  }
  if (!options_.follows_feed) return;
  reader_->follow(place::FeedCursor::create(opening_->feed, reader_->view()).value());
}

void WorldClient::forge_cache() {
  hints_.follow(host_of_now().map());
  const std::function<wire::Ref()> any = [this] { return hints_.any(); };
  place::NodeCacheForger forger(*cache_, random_, any);
  if (random_.one_in(4)) forger.forge(20);
  if (random_.one_in(20)) forger.forge_root(*reader_->cache());
}

void WorldClient::close() {
  if (!reader_) return;
  if (reader_->cache() != nullptr) {
    counts_.cache_descents += reader_->cache()->descents();
    counts_.cache_hits += reader_->cache()->hits();
    counts_.grouped_gets += reader_->grouped();
  }
  counts_.leaves_ahead += reader_->ahead().taken;
  if (reader_->feed() != nullptr) {
    counts_.feed_changes += reader_->feed()->counts().changes;
    counts_.feed_replaced += reader_->feed()->counts().replaced;
    counts_.feed_behind += reader_->feed()->counts().behind;
  }
  counts_.restarts += reader_->restarts();
  counts_.met_changes += reader_->met_changes();
  counts_.round_trips += reader_->traffic().round_trips;
  counts_.bytes += reader_->traffic().bytes;
  reader_.reset();
  asked_ns_.reset();
  ++life_;
  end_.pair->close();
  end_.pair.reset();
}

std::uint64_t WorldClient::way_ns() {
  return options_.pauses && random_.one_in(12) ? random_.below(2'500'000)
                                               : random_.between(1'000, 20'000);
}

// A question travels, is answered, and the answer travels back; each takes its time, sometimes
// long. A host that is dead answers nothing.
void WorldClient::ask_host(const place::LeaseGuard::Asked& asked) {
  asked_ns_ = world_.now_ns();
  const Asking asking{asked, host_, domain_, life_, *asked_ns_, way_ns()};
  world_.after(way_ns(), [this, asking] {
    if (asking.host->dead()) return;
    asking.what.id == 0 ? grant(asking) : renew(asking);
  });
}

void WorldClient::grant(const Asking& asking) {
  base::LeaseTable& leases = asking.host->store().leases;
  WorldHost::Session& session = asking.host->session(asking.domain);
  std::optional<base::LeaseTable::Granted> granted;
  if (session.region) {
    granted = leases.grant(asking.domain, world_.now_ns());
    if (options_.keeps_leases) session.leases.push_back(granted->id);
    if (!options_.keeps_leases) leases.end(granted->id);
  }
  const std::uint64_t answered_ns = world_.now_ns();
  world_.after(asking.back_ns, [this, granted, asking, answered_ns] {
    if (asking.life != life_) return;
    asked_ns_.reset();
    if (!granted) return reader_->lease().end_all();
    heard_ns_ = answered_ns;
    reader_->lease().granted(granted->id, granted->epoch, asking.asked_ns, world_.now_ns());
  });
}

void WorldClient::renew(const Asking& asking) {
  tree::StoreCore& store = asking.host->store();
  const Result<std::uint64_t> renewed =
      options_.keeps_leases
          ? store.leases.renew(asking.what.id, asking.what.oldest, world_.now_ns())
          : Result<std::uint64_t>(store.epochs.current());
  const std::uint64_t answered_ns = world_.now_ns();
  world_.after(asking.back_ns, [this, renewed, answered_ns, life = asking.life] {
    if (life != life_) return;
    asked_ns_.reset();
    if (renewed) {
      heard_ns_ = answered_ns;
      return reader_->lease().renewed(*renewed, world_.now_ns());
    }
    // Its key is revoked too: a new session is needed.
    ++counts_.leases_lost;
    reader_->lease().end_all();
  });
}

std::string WorldClient::wrong() {
  close();
  for (auto& [map, recorder] : recorders_) {
    if (!wrong_.empty()) break;
    wrong_ = take_log(*recorder, records_[map], options_, counts_);
  }
  if (!wrong_.empty()) wrong_ = name_ + ": " + wrong_;
  return wrong_;
}

}  // namespace espalier::test
