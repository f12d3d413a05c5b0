// SPDX-License-Identifier: Apache-2.0
#include "node/node.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "base/assert.hpp"
#include "base/barrier.hpp"
#include "base/descriptor_limit.hpp"
#include "base/durable_mark.hpp"
#include "base/machine_memory.hpp"
#include "base/system_error.hpp"
#include "fabric/address.hpp"
#include "kinds/map/write/map_object.hpp"
#include "node/chain_joining.hpp"
#include "node/chain_node.hpp"
#include "node/config_change.hpp"
#include "node/config_value.hpp"
#include "node/metrics.hpp"
#include "node/node_page.hpp"
#include "node/node_peers.hpp"
#include "node/numbers_format.hpp"
#include "store/clock_groups.hpp"

namespace espalier::node {

Result<std::unique_ptr<Node>> Node::start(const Config& config, const NodeOptions& options) {
  if (config.node.cores == 0 || config.node.cores > wire::kWorkersMax ||
      config.clients.in_flight_max == 0) {
    return fail(Code::invalid_argument, config.node.cores);
  }
  base::raise_descriptor_limit();  // each client needs one
  for (;;) {
    std::unique_ptr<Node> node(new Node(config, options));
    const auto begun = node->begin();
    if (begun) return node;
    if (!node->begins_anew_) return std::unexpected(begun.error());
  }
}

Result<void> Node::begin() {
  for (const auto step :
       {&Node::open_store, &Node::join_chain, &Node::open_data, &Node::open_secrets,
        &Node::follow_chain, &Node::make_maps, &Node::start_checkpoints, &Node::open_page,
        &Node::open_peers, &Node::open_workers, &Node::open_metrics}) {
    if (const auto done = (this->*step)(); !done) return done;
  }
  return {};
}

Node::Node(const Config& config, const NodeOptions& options) : config_(config), options_(options) {}

// Each worker, and the datagram thread, has two epoch slots for each map that it serves.
Result<void> Node::open_store() {
  // Reclamation scans every slot, so there are no more than are likely to be needed.
  const std::uint32_t more = config_.node.cores - 1 + (config_.node.datagrams.empty() ? 0 : 1);
  const std::uint32_t participants = std::min<std::uint32_t>(16384, 256 + 128 * more);
  memory::RegionOptions region_options;
  region_options.bytes_max =
      config_.memory.limit != 0 ? config_.memory.limit : base::default_store_bytes();
  region_options.huge_pages = config_.memory.huge_pages;
  region_options.shared = config_.node.one_sided;
  auto region = memory::Region::reserve(region_options);
  if (!region) return std::unexpected(region.error());
  store_ = std::make_unique<tree::StoreCore>(std::move(*region), participants);
  if (config_.node.shared_clock) store_->groups->share();
  store_->leases.set_terms(config_.node.leases);
  offload::HelperOptions helpers;
  helpers.threads = config_.node.helpers != 0 ? config_.node.helpers : config_.node.cores;
  services_ =
      std::make_unique<offload::Services>(*store_, config_.clients.message_bytes_max,
                                          options_.own_kinds, helpers, options_.device_offloads);
  const std::uint64_t ring_bytes = config_.clients.ring_bytes_max;
  services_->connections.set({.connections_max = config_.clients.connections_max,
                              .principal_max = config_.clients.principal_connections_max,
                              .ring_bytes_max = ring_bytes != 0
                                                    ? ring_bytes
                                                    : offload::ConnectionLimits::default_ring_bytes(
                                                          store_->region.limit_bytes())});
  services_->asymmetric = base::register_asymmetric_barriers();
  if (options_.audit) {
    try {
      audit_ = std::make_unique<AuditThread>(services_->audit, options_.audit);
    } catch (const std::system_error& error) {
      return fail(Code::system, static_cast<std::uint32_t>(error.code().value()));
    }
  }
  return {};
}

// Runs before any client is served, since clients must not see the store change.
Result<void> Node::open_data() {
  if (config_.data.dir.empty()) return {};
  std::string mistake;
  for (const MapConfig& map : config_.maps) {
    if (!map.options.versions) {
      mistake = "map '" + map.name +
                "' of a node with a data folder must keep versions: without them readers see what "
                "a crash can lose";
    }
  }
  if (!mistake.empty()) return refuse_data(std::move(mistake));
  DataFolder::Terms terms{.data = config_.data,
                          .own_kinds = options_.own_kinds,
                          .segment_bytes = options_.segment_bytes,
                          .failed = options_.data_failed,
                          .recovering = [this](const auto& now) { report_recovery(now); },
                          .threads = options_.recovery_threads};
  if (!config_.chain.name.empty()) {
    terms.show = [this](std::uint64_t sequence, std::span<const std::byte> record) -> Result<void> {
      chain_records_.add_recovered(sequence, record);
      return {};
    };
  }
  auto opened = DataFolder::open(terms, *services_);
  if (!opened) return refuse_data(std::move(opened.error()));
  data_ = std::move(*opened);
  services_->waiting_answers_max = config_.data.waiting_max;
  return {};
}

Result<void> Node::refuse_data(std::string mistake) {
  if (options_.data_mistake != nullptr) *options_.data_mistake = std::move(mistake);
  return fail(Code::corrupt);
}

// Runs before the data folder is read, which may have nothing valid yet.
Result<void> Node::join_chain() {
  const auto begun = begin_to_join({.config = config_,
                                    .segment_bytes = options_.segment_bytes,
                                    .stopped = options_.stopped,
                                    .report = options_.chain_report});
  if (!begun) return refuse_data(begun.error());
  return *begun ? Result<void>() : fail(Code::busy);
}

// Meanwhile the previous member's records are applied; afterwards clients' changes are recorded.
Result<void> Node::follow_chain() {
  if (config_.chain.name.empty()) return {};
  if (!data_)
    return refuse_data("a member of a chain keeps its records in a data folder: --data DIR");
  if (config_.data.durability == Durability::async) {
    return refuse_data(
        "a member of a chain answers once all members have a record: start it without "
        "data.durability async");
  }
  if (config_.data.persistent_regions) {
    return refuse_data(
        "what is written to regions goes to no other member of a chain: start it without "
        "data.persistent_regions");
  }
  if (config_.node.one_sided) {
    return refuse_data(
        "the memory of a member of a chain cannot be read by clients themselves yet: "
        "start it without node.one_sided");
  }
  auto started = ChainNode::start({.config = config_,
                                   .services = *services_,
                                   .own_kinds = options_.own_kinds,
                                   .writer = data_->writer(),
                                   .log_folder = data_->log_folder(),
                                   .store = data_->store(),
                                   .log_bytes_max = config_.data.log_bytes_max,
                                   .buffer = chain_records_,
                                   .secrets = secrets_.get(),
                                   .recovered = data_->recovered().next_sequence - 1,
                                   .ended = options_.chain_ended});
  if (!started) return refuse_data(std::move(started.error()));
  chain_ = std::move(*started);
  if (auto begun = start_checkpoints(); !begun) return begun;
  if (auto why_not = chain_->await_head(options_.stopped)) {
    begins_anew_ = chain_->begins_anew();
    if (why_not->empty() || begins_anew_) return fail(Code::busy);
    return refuse_data(std::move(*why_not));
  }
  checkpoints_.reset();  // no thread reads the store while it gets a sink
  data_->writer().set_promise(
      {Durability::sync, nullptr, std::max<std::uint64_t>(1, services_->draw())});
  if (auto recorded = data_->record(*services_, options_.own_kinds); !recorded) {
    return refuse_data(std::move(recorded.error()));
  }
  return await_recorded();
}

// A version that a reader sees here is to be known to each member that may become the head.
Result<void> Node::await_recorded() {
  log::LogWriter& writer = data_->writer();
  const std::uint64_t recorded = writer.handed_over();
  while (!writer.mark().await(recorded, std::chrono::milliseconds(20))) {
    if (writer.mark().failed()) return refuse_data(writer.failure());
    if (auto why_ended = chain_->why_ended(); !why_ended.empty()) {
      return refuse_data(std::move(why_ended));
    }
    if (options_.stopped && options_.stopped()) return fail(Code::busy);
  }
  return {};
}

// Maps from the data folder stay unchanged.
Result<void> Node::make_maps() {
  for (const MapConfig& map : config_.maps) {
    if (data_ && store_->catalog.find_any(map.name) != nullptr) continue;
    const auto made = tree::create_map(*store_, map.name, map.options);
    if (!made) return std::unexpected(made.error());
  }
  return {};
}

Result<void> Node::start_checkpoints() {
  if (!data_) return {};
  try {
    auto terms = checkpoint_terms(*data_, *services_, options_.own_kinds, config_.data,
                                  options_.segment_bytes, options_.checkpoint_failed);
    if (chain_) terms.of.applying = &chain_->applying();
    checkpoints_ = std::make_unique<CheckpointThread>(std::move(terms));
  } catch (const std::system_error& error) {
    return fail(Code::system, static_cast<std::uint32_t>(error.code().value()));
  }
  return {};
}

Result<void> Node::open_page() {
  auto page = make_node_page(services_->asymmetric);
  if (!page) return std::unexpected(page.error());
  page_ = std::move(*page);
  return {};
}

std::uint64_t Node::node_id() const { return node_id_of(page_); }

Result<void> Node::open_secrets() {
  if (config_.clients.secrets.empty()) return {};
  secrets_ = std::make_unique<offload::Secrets>();
  auto loaded = secrets_->load(config_.clients.secrets);
  if (loaded) return {};
  if (options_.secret_mistakes != nullptr) *options_.secret_mistakes = std::move(loaded.error());
  return fail(Code::invalid_argument);
}

Result<void> Node::open_peers() {
  if (config_.peers.empty()) return {};
  auto peers = links_to_peers(config_.peers, services_->budget, options_.peer_silence_ns,
                              options_.peer_mistake);
  if (!peers) return std::unexpected(peers.error());
  services_->parts.make<offload::NodePeers>(std::move(*peers));
  return {};
}

Result<void> Node::open_workers() {
  if (options_.make_parts) {
    if (auto made = options_.make_parts(*services_, config_.node.cores); !made) return made;
  }
  for (std::uint32_t i = 0; i < config_.node.cores; ++i) {
    workers_.push_back(std::make_unique<Worker>(*services_, config_, page_, i));
    workers_.back()->set_core(options_.core);
  }
  if (const auto opened = open_fabrics(); !opened) return opened;
  if (const auto opened = open_datagrams(); !opened) return opened;
  for (const auto& worker : workers_) {
    if (const auto started = worker->start(); !started) return started;
  }
  const auto serve = [this](PendingClient pending) {
    const auto least = std::ranges::min_element(workers_, {}, [](const auto& worker) {
      return worker->counts().clients.load(std::memory_order_relaxed);
    });
    (*least)->enqueue(std::move(pending));
  };
  listener_ = std::make_unique<Listener>(config_, *services_, secrets_.get(), node_id(), serve);
  // Before the first client connects, and after everything that is counted exists.
  services_->numbers.set([this](offload::NumbersSource::For whom) {
    NodeNumbers numbers = numbers_of(*this);
    if (whom != offload::NumbersSource::For::administrators) numbers.principals.clear();
    return encode(numbers);
  });
  return listener_->start();
}

// Round robin over the workers: an endpoint belongs to one thread.
Result<void> Node::open_fabrics() {
  Worker::Fabric fabric;
  fabric.node_id = node_id();
  fabric.silence_ns = options_.silence_ns;
  fabric.secrets = secrets_.get();
  for (const std::string_view each : node::fabric_addresses(config_.node.fabric)) {
    Worker& worker = *workers_[fabric_addresses_.size() % workers_.size()];
    auto address = worker.listen(std::string(each), fabric);
    if (!address) {
      if (options_.failed_address != nullptr) *options_.failed_address = each;
      return std::unexpected(address.error());
    }
    fabric_addresses_.push_back(std::move(*address));
  }
  return {};
}

// Its counter shard follows those of the workers.
Result<void> Node::open_datagrams() {
  if (config_.node.datagrams.empty()) return {};
  const auto at = fabric::parse_host_port(config_.node.datagrams, wire::kDatagramPort);
  if (!at) return std::unexpected(at.error());
  auto opened = DatagramPort::open(
      {.at = *at, .shard = config_.node.cores, .spin_ns = WorkerTimes(config_).spin_ns},
      *services_);
  if (!opened) {
    const bool of_port = opened.error().code != Code::unsupported;
    if (of_port && options_.failed_address != nullptr) {
      *options_.failed_address = config_.node.datagrams;
    }
    return std::unexpected(opened.error());
  }
  datagrams_ = std::move(*opened);
  return {};
}

// The last step: a long recovery has begun to serve them before.
Result<void> Node::open_metrics() {
  has_started_.store(true, std::memory_order_release);
  return http_ ? Result<void>() : begin_metrics();
}

Result<void> Node::begin_metrics() {
  if (!options_.metrics_at_any_port) return serve_metrics_at(config_.metrics.port);
  http_ = make_http();
  return http_->start(0);
}

std::unique_ptr<HttpListener> Node::make_http() {
  return std::make_unique<HttpListener>(
      [this] { return metrics_page(); }, HttpListener::kConnectionNs,
      [this] { return has_started_.load(std::memory_order_acquire); });
}

std::string Node::metrics_page() {
  if (has_started_.load(std::memory_order_acquire)) {
    return metrics_text(numbers_and_samples_of(*this));
  }
  RecoveryProgress now;
  {
    const std::scoped_lock lock(recovery_mutex_);
    now = recovery_;
  }
  return metrics_text(numbers_of_recovery(now));
}

// If the port cannot be had, the end of the start says so.
void Node::report_recovery(const RecoveryProgress& now) {
  bool is_first = false;
  {
    const std::scoped_lock lock(recovery_mutex_);
    is_first = recovery_.records == 0;
    recovery_ = now;
  }
  if (is_first && !begin_metrics()) http_.reset();
  if (options_.recovering) options_.recovering(now);
}

std::vector<Node::NotChanged> Node::change(const Config& wanted) {
  std::vector<NotChanged> result;
  Config next = with_live_settings(config_, wanted);
  if (next.node.socket_mode != config_.node.socket_mode) {
    if (const auto done = listener_->set_mode(next.node.socket_mode); !done) {
      result.push_back({"node.socket_mode", done.error()});
      next.node.socket_mode = config_.node.socket_mode;
    }
  }
  if (next.metrics.port != config_.metrics.port) {
    if (const auto done = serve_metrics_at(next.metrics.port); !done) {
      result.push_back({"metrics.port", done.error()});
      next.metrics.port = config_.metrics.port;
    }
  }
  if (secrets_) {
    if (auto loaded = secrets_->load(config_.clients.secrets); !loaded) {
      result.push_back(
          {"clients.secrets", {Code::invalid_argument, 0, 0}, std::move(loaded.error())});
    }
  }
  // Other threads read only settings that do not change here.
  config_.node.socket_mode = next.node.socket_mode;
  config_.node.spin_us = next.node.spin_us;
  config_.node.sweep_ms = next.node.sweep_ms;
  config_.node.sweep_asleep_ms = next.node.sweep_asleep_ms;
  config_.clients.stuck_seconds = next.clients.stuck_seconds;
  config_.metrics.port = next.metrics.port;
  config_.log.level = next.log.level;
  ESPALIER_ASSERT(config_ == next);  // the table and this function agree on what is live
  for (const auto& worker : workers_) worker->set_times(WorkerTimes(config_));
  if (datagrams_) datagrams_->set_spin_ns(WorkerTimes(config_).spin_ns);
  return result;
}

// The old port serves until the new one does.
Result<void> Node::serve_metrics_at(std::uint16_t port) {
  std::unique_ptr<HttpListener> next;
  if (port != 0) {
    next = make_http();
    if (const auto started = next->start(port); !started) return started;
  }
  http_ = std::move(next);
  return {};
}

std::uint32_t Node::connections() const {
  std::uint32_t sum = 0;
  for (const auto& worker : workers_) {
    sum += worker->counts().clients.load(std::memory_order_relaxed);
  }
  return sum;
}

// First ends the readers of counters, which belong to workers; then no client can connect, and no
// checkpoint is made of objects about to be destroyed; then workers end, then what they shared.
Node::~Node() {
  http_.reset();
  if (services_) services_->numbers.set(nullptr);
  listener_.reset();
  datagrams_.reset();
  checkpoints_.reset();
  workers_.clear();
  chain_.reset();
  audit_.reset();
  services_.reset();
}

}  // namespace espalier::node
