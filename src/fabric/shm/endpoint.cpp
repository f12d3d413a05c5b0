// SPDX-License-Identifier: Apache-2.0
#include "fabric/shm/endpoint.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/system_error.hpp"
#include "fabric/shm/notice.hpp"
#include "fabric/shm/pair.hpp"
#include "fabric/shm/service.hpp"

namespace espalier::fabric::shm {
namespace {

constexpr Properties kProperties{
    .transport = "shm",
    .reads_in_order = true,
    .reads_end_in_post = true,
    .write_is_placed = true,
    .write_is_durable = true,  // the side that completes it has stored and fenced it itself
    .atomic_with_processor = true,
    .peer_makes_progress = false,
    .peer_maps_memory = true,
    .inline_bytes_max = 256,
    .message_bytes_max = kMessageBytesMax,
    .reads_in_flight_max = 1u << 16,  // each is done before the next begins
};

class ShmEndpoint final : public Endpoint {
 public:
  ShmEndpoint(std::shared_ptr<RegionTable> regions, std::optional<std::uint32_t> server_user)
      : Endpoint(kProperties, std::move(regions)),
        server_user_(server_user),
        reader_(this->regions()),
        service_(this->regions(), notice_) {}
  Result<void> start() {
    if (!notice_.open()) return base::refused_by_system();
    return service_.start();
  }

  Result<std::unique_ptr<QueuePair>> connect(std::string_view address,
                                             const QueuePairOptions& options,
                                             std::span<const std::byte> data) override;
  Result<void> listen(std::string_view address) override { return service_.listen(address); }
  std::optional<ConnectRequest> next_request() override { return service_.next_request(); }
  Result<std::unique_ptr<QueuePair>> accept(const ConnectRequest& request,
                                            const QueuePairOptions& options,
                                            std::span<const std::byte> data) override;
  using Endpoint::reject;
  void reject(const ConnectRequest& request, std::span<const std::byte> /*data*/) override {
    service_.reject(request.id);
  }
  void progress() override;
  void wait(std::uint64_t timeout_ns) override;
  int begin_sleep() override;
  void end_sleep() override;
  void wake() override { notice_.wake(); }

 private:
  void set_asleep(bool asleep);
  [[nodiscard]] bool any_has_work() const;
  [[nodiscard]] Host host() { return {regions(), reader_, service_, pairs_, server_user_}; }

  const std::optional<std::uint32_t> server_user_;
  RegionTable::Reader reader_;
  Notice notice_;
  Service service_;
  std::vector<Pair*> pairs_;
  std::uint32_t next_pair_ = 1;
  std::size_t first_ = 0;  // whose turn is first
};

Result<std::unique_ptr<QueuePair>> ShmEndpoint::connect(std::string_view address,
                                                        const QueuePairOptions& options,
                                                        std::span<const std::byte> data) {
  if (const auto good = check(options, data, kConnectDataMax); !good) {
    return std::unexpected(good.error());
  }
  auto pair = std::make_unique<Pair>(next_pair_++, options, properties(), host());
  if (const auto dialled = pair->dial(address, data); !dialled) {
    return std::unexpected(dialled.error());
  }
  return pair;
}

Result<std::unique_ptr<QueuePair>> ShmEndpoint::accept(const ConnectRequest& request,
                                                       const QueuePairOptions& options,
                                                       std::span<const std::byte> data) {
  if (const auto good = check(options, data, kAcceptDataMax); !good) {
    return std::unexpected(good.error());
  }
  auto link = service_.accept(request.id, options.domain);
  if (link == nullptr) return fail(Code::not_found);
  auto pair = std::make_unique<Pair>(next_pair_++, options, properties(), host());
  if (const auto accepted = pair->accept(request.id, std::move(link), data); !accepted) {
    return std::unexpected(accepted.error());
  }
  return pair;
}

void ShmEndpoint::progress() {
  if (notice_.take()) {
    for (Pair* const pair : pairs_) pair->attend();
  }
  // Each time another one is first: receives that they share may be few.
  const std::size_t count = pairs_.size();
  if (++first_ >= count) first_ = 0;
  for (std::size_t i = first_; i < count; ++i) pairs_[i]->progress();
  for (std::size_t i = 0; i < std::min(first_, count); ++i) pairs_[i]->progress();
}

void ShmEndpoint::wait(std::uint64_t timeout_ns) {
  std::uint64_t due_ns = 0;
  for (const Pair* const pair : pairs_) {
    const std::uint64_t due = pair->due_ns();
    if (due != 0) due_ns = due_ns == 0 ? due : std::min(due_ns, due);
  }
  if (due_ns != 0) {
    const std::uint64_t now = base::monotonic_ns();
    timeout_ns = std::min(timeout_ns, due_ns > now ? due_ns - now : 0);
  }
  set_asleep(true);
  notice_.wait(timeout_ns, [this] { return any_has_work(); });
  set_asleep(false);
}

int ShmEndpoint::begin_sleep() {
  set_asleep(true);
  return notice_.begin_sleep([this] { return any_has_work(); });
}

void ShmEndpoint::end_sleep() {
  notice_.end_sleep();
  set_asleep(false);
}

void ShmEndpoint::set_asleep(bool asleep) {
  for (Pair* const pair : pairs_) pair->set_asleep(asleep);
}

bool ShmEndpoint::any_has_work() const {
  return std::any_of(pairs_.begin(), pairs_.end(), [](Pair* pair) { return pair->has_work(); });
}

}  // namespace

Result<std::unique_ptr<Endpoint>> open(std::shared_ptr<RegionTable> regions,
                                       std::optional<std::uint32_t> server_user) {
  auto made = std::make_unique<ShmEndpoint>(std::move(regions), server_user);
  if (const auto started = made->start(); !started) return std::unexpected(started.error());
  return made;
}

}  // namespace espalier::fabric::shm
