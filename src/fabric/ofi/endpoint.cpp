// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/endpoint.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/system_error.hpp"
#include "fabric/ofi/connections.hpp"
#include "fabric/ofi/pair.hpp"
#include "fabric/ofi/pending_connection.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::fabric::ofi {
namespace {

// Pending connections.
constexpr std::size_t kPendingMax = 128;
// Turns that an endpoint which ends spends on terminate messages.
constexpr int kLastTurns = 64;

class ProviderEndpoint final : public OfiEndpoint, private AcceptHandler {
 public:
  explicit ProviderEndpoint(std::shared_ptr<RegionTable> regions)
      : OfiEndpoint(kProperties, std::move(regions)), reader_(this->regions()) {}
  ~ProviderEndpoint() override;
  Result<void> start(std::shared_ptr<const Library> library, std::string_view provider);

  [[nodiscard]] roce::PortAddress listens_at() const override { return connections_->listens_at(); }
  Result<std::unique_ptr<QueuePair>> connect(std::string_view address,
                                             const QueuePairOptions& options,
                                             std::span<const std::byte> data) override;
  Result<void> listen(std::string_view address) override;
  std::optional<ConnectRequest> next_request() override;
  Result<std::unique_ptr<QueuePair>> accept(const ConnectRequest& request,
                                            const QueuePairOptions& options,
                                            std::span<const std::byte> data) override;
  using Endpoint::reject;
  void reject(const ConnectRequest& request, std::span<const std::byte> data) override;
  void progress() override { static_cast<void>(turn()); }
  void wait(std::uint64_t timeout_ns) override;
  void wake() override;

 private:
  using PendingConnections = std::vector<std::unique_ptr<PendingConnection>>;

  [[nodiscard]] bool has_room() override { return pending_.size() < kPendingMax || evict_one(); }
  void accept(ProviderChannel& link, std::string peer) override;

  [[nodiscard]] bool evict_one();
  [[nodiscard]] bool turn();
  [[nodiscard]] bool maintain();
  [[nodiscard]] PendingConnections::iterator pending_of(std::uint64_t id);
  [[nodiscard]] std::uint64_t due_ns() const;
  void doze(std::span<pollfd> watched, std::uint64_t timeout_ns);

  RegionTable::Reader reader_;
  memory::Descriptor bell_;
  std::optional<Connections> connections_;
  PendingConnections pending_;
  std::uint64_t next_pending_ = 1;
  std::vector<Pair*> pairs_;
  std::uint32_t next_pair_ = 1;
};

// Port 0 is any that is free.
Result<roce::PortAddress> read_address(std::string_view text) {
  const bool has_port =
      text.starts_with('[') ? text.contains("]:") : std::count(text.begin(), text.end(), ':') == 1;
  const bool any_port = has_port && text.ends_with(":0");
  auto where = roce::parse_address(any_port ? text.substr(0, text.size() - 2) : text);
  if (where && !has_port) where->udp_port = kDefaultPort;
  if (where && any_port) where->udp_port = 0;
  return where;
}

ProviderEndpoint::~ProviderEndpoint() {
  ESPALIER_ASSERT(pairs_.empty());
  pending_.clear();
  for (int i = 0; i < kLastTurns && connections_ && connections_->any(); ++i) {
    static_cast<void>(turn());
  }
}

Result<void> ProviderEndpoint::start(std::shared_ptr<const Library> library,
                                     std::string_view provider) {
  bell_ = memory::Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!bell_) return base::refused_by_system();
  connections_.emplace(std::move(library), provider, static_cast<AcceptHandler&>(*this));
  return {};
}

Result<std::unique_ptr<QueuePair>> ProviderEndpoint::connect(std::string_view address,
                                                             const QueuePairOptions& options,
                                                             std::span<const std::byte> data) {
  if (const auto good = check(options, data, kConnectDataMax); !good) {
    return std::unexpected(good.error());
  }
  const auto where = read_address(address);
  if (!where) return std::unexpected(where.error());
  if (where->udp_port == 0) return fail(Code::invalid_argument);
  const auto link = connections_->dial(*where);
  if (!link) return std::unexpected(link.error());
  auto pair =
      std::make_unique<Pair>(next_pair_++, options, properties(), Host{reader_, pairs_}, **link);
  pair->greet(data);
  return pair;
}

Result<void> ProviderEndpoint::listen(std::string_view address) {
  const auto where = read_address(address);
  if (!where) return std::unexpected(where.error());
  return connections_->listen(*where);
}

ProviderEndpoint::PendingConnections::iterator ProviderEndpoint::pending_of(std::uint64_t id) {
  return std::find_if(pending_.begin(), pending_.end(), [id](const auto& pending) {
    return pending->id() == id && pending->asks() && !pending->is_gone();
  });
}

std::optional<ConnectRequest> ProviderEndpoint::next_request() {
  for (const auto& pending : pending_) {
    if (!pending->asks() || pending->is_gone() || std::exchange(pending->announced, true)) continue;
    return ConnectRequest{pending->id(), pending->peer(), pending->data()};
  }
  return {};
}

Result<std::unique_ptr<QueuePair>> ProviderEndpoint::accept(const ConnectRequest& request,
                                                            const QueuePairOptions& options,
                                                            std::span<const std::byte> data) {
  if (const auto good = check(options, data, kAcceptDataMax); !good) {
    return std::unexpected(good.error());
  }
  const auto pending = pending_of(request.id);
  if (pending == pending_.end()) return fail(Code::not_found);
  auto pair = std::make_unique<Pair>(next_pair_++, options, properties(), Host{reader_, pairs_},
                                     (*pending)->hand_over());
  pair->welcome((*pending)->data(), data);
  pending_.erase(pending);
  return pair;
}

void ProviderEndpoint::reject(const ConnectRequest& request, std::span<const std::byte> /*data*/) {
  const auto pending = pending_of(request.id);
  if (pending == pending_.end()) return;
  (*pending)->reject();
  pending_.erase(pending);
}

// The silent give way, oldest first: to say what one wants takes no time.
bool ProviderEndpoint::evict_one() {
  const auto silent = std::find_if(pending_.begin(), pending_.end(),
                                   [](const auto& pending) { return !pending->asks(); });
  if (silent == pending_.end()) return false;
  pending_.erase(silent);
  return true;
}

void ProviderEndpoint::accept(ProviderChannel& link, std::string peer) {
  pending_.push_back(std::make_unique<PendingConnection>(next_pending_++, std::move(peer), link));
}

// Returns whether a receiver was called.
bool ProviderEndpoint::maintain() {
  const std::uint64_t now_ns = base::monotonic_ns();
  bool any = false;
  for (Pair* const pair : pairs_) any = pair->progress(now_ns) || any;
  for (const auto& pending : pending_) {
    if (!pending->is_gone()) pending->flush();
  }
  std::erase_if(pending_, [](const auto& pending) { return pending->is_gone(); });
  return connections_->maintain(now_ns) || any;
}

// Returns whether anything has arrived, or a receiver was called.
bool ProviderEndpoint::turn() {
  const bool came = connections_->take();
  return maintain() || came;
}

std::uint64_t ProviderEndpoint::due_ns() const {
  std::uint64_t due = connections_->due_ns();
  for (const Pair* const pair : pairs_) {
    if (pair->due_ns() != 0) due = std::min(due, pair->due_ns());
  }
  return due;
}

void ProviderEndpoint::wait(std::uint64_t timeout_ns) {
  connections_->look();
  if (turn()) return;
  const std::uint64_t now_ns = base::monotonic_ns();
  const std::uint64_t due = due_ns();
  if (due <= now_ns) return;
  timeout_ns = std::min(timeout_ns, due - now_ns);
  std::vector<pollfd> watched{{bell_.number(), POLLIN, 0}};
  if (!connections_->watch(watched, timeout_ns)) return;
  doze(watched, timeout_ns);
  connections_->look();
}

void ProviderEndpoint::doze(std::span<pollfd> watched, std::uint64_t timeout_ns) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  constexpr std::uint64_t kSecondsMax = 1'000'000;
  const timespec timeout{static_cast<time_t>(std::min(timeout_ns / kSecond, kSecondsMax)),
                         static_cast<long>(timeout_ns % kSecond)};
  if (::ppoll(watched.data(), watched.size(), &timeout, nullptr) <= 0) return;
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(bell_.number(), &count, sizeof count);
}

void ProviderEndpoint::wake() {
  const std::uint64_t one = 1;
  // It is refused only where it has rung as often as can be counted.
  [[maybe_unused]] const auto written = ::write(bell_.number(), &one, sizeof one);
}

}  // namespace

Result<std::unique_ptr<OfiEndpoint>> open(std::string_view provider,
                                          std::shared_ptr<RegionTable> regions,
                                          const char* library) {
  auto loaded = Library::load(library);
  if (!loaded) return std::unexpected(loaded.error());
  auto made = std::make_unique<ProviderEndpoint>(std::move(regions));
  if (const auto started = made->start(std::move(*loaded), provider); !started) {
    return std::unexpected(started.error());
  }
  return made;
}

}  // namespace espalier::fabric::ofi
