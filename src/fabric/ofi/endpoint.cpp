// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/endpoint.hpp"

#include <netinet/in.h>
#include <poll.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/system_error.hpp"
#include "fabric/ofi/device.hpp"
#include "fabric/ofi/door_patience.hpp"
#include "fabric/ofi/guest.hpp"
#include "fabric/ofi/link.hpp"
#include "fabric/ofi/pair.hpp"
#include "fabric/roce/udp_address.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::fabric::ofi {
namespace {

// To ask for events costs a call of the system, so while nobody connects it is done now and then.
constexpr std::uint32_t kTurnsPerLook = 16;
// Those who have dialled and are not let in.
constexpr std::size_t kGuestsMax = 128;
// How often an endpoint looks whose provider cannot wake it.
constexpr std::uint64_t kLookNs = 50'000;
// Turns that an endpoint which ends spends on farewells.
constexpr int kLastTurns = 64;

constexpr std::uint64_t kSlotBits = 16;
static_assert(kLinksMax <= std::uint64_t{1} << kSlotBits);

class ProviderEndpoint final : public OfiEndpoint {
 public:
  ProviderEndpoint(std::string_view provider, std::shared_ptr<RegionTable> regions,
                   std::shared_ptr<const Library> library)
      : OfiEndpoint(kProperties, std::move(regions)),
        library_(std::move(library)),
        provider_(provider),
        reader_(this->regions()) {}
  ~ProviderEndpoint() override;
  Result<void> start() {
    bell_ = memory::Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!bell_) return base::refused_by_system();
    return {};
  }

  [[nodiscard]] roce::PortAddress listens_at() const override;
  Result<std::unique_ptr<QueuePair>> connect(std::string_view address,
                                             const QueuePairOptions& options,
                                             std::span<const std::byte> data) override;
  Result<void> listen(std::string_view address) override;
  std::optional<ConnectRequest> next_request() override;
  Result<std::unique_ptr<QueuePair>> accept(const ConnectRequest& request,
                                            const QueuePairOptions& options,
                                            std::span<const std::byte> data) override;
  void reject(const ConnectRequest& request) override;
  void progress() override { static_cast<void>(turn()); }
  void wait(std::uint64_t timeout_ns) override;
  void wake() override;

 private:
  using Guests = std::vector<std::unique_ptr<Guest>>;

  [[nodiscard]] bool turn();
  [[nodiscard]] bool take_events();
  [[nodiscard]] bool take_completions(bool all);
  [[nodiscard]] bool settle();
  void answer_door(fi_info& info);
  [[nodiscard]] bool make_room_for_guest();
  [[nodiscard]] Guests::iterator guest_of(std::uint64_t id);
  Result<Device*> device_for(fi_info& info);
  Result<Link*> make_link(Device& device, fi_info& info);
  void forget(Link& link) { links_[link.number() % (1u << kSlotBits)].reset(); }
  [[nodiscard]] Link* link_of(const fid* object);
  [[nodiscard]] std::uint64_t due_ns() const;
  void doze(std::span<pollfd> watched, std::uint64_t timeout_ns);

  std::shared_ptr<const Library> library_;
  std::string provider_;
  RegionTable::Reader reader_;
  memory::Descriptor bell_;
  std::vector<std::unique_ptr<Device>> devices_;
  Device* door_device_ = nullptr;
  Fid<fid_pep> door_;
  std::vector<std::unique_ptr<Link>> links_;  // by their slots
  std::uint64_t next_link_ = 1;
  Guests guests_;
  std::uint64_t next_guest_ = 1;
  std::vector<Pair*> pairs_;
  std::uint32_t next_pair_ = 1;
  std::uint32_t turns_ = 0;
  bool look_ = true;  // at events, in the next turn
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

roce::PortAddress address_of(const void* at, std::size_t bytes) {
  sockaddr_storage storage{};
  std::memcpy(&storage, at, std::min(bytes, sizeof storage));
  const bool known = storage.ss_family == AF_INET || storage.ss_family == AF_INET6;
  return known ? roce::to_port_address(storage) : roce::PortAddress{};
}

ProviderEndpoint::~ProviderEndpoint() {
  ESPALIER_ASSERT(pairs_.empty());
  guests_.clear();
  for (int i = 0; i < kLastTurns; ++i) {
    static_cast<void>(turn());
    if (std::none_of(links_.begin(), links_.end(), [](const auto& link) { return !!link; })) break;
  }
}

roce::PortAddress ProviderEndpoint::listens_at() const {
  sockaddr_storage storage{};
  std::size_t bytes = sizeof storage;
  ESPALIER_ASSERT(door_ && fi_getname(door_.base(), &storage, &bytes) == 0);
  return address_of(&storage, bytes);
}

Result<Device*> ProviderEndpoint::device_for(fi_info& info) {
  for (const auto& device : devices_) {
    if (device->is(info)) return device.get();
  }
  auto opened = Device::open(library_, info);
  if (!opened) return std::unexpected(opened.error());
  devices_.push_back(std::move(*opened));
  return devices_.back().get();
}

Result<Link*> ProviderEndpoint::make_link(Device& device, fi_info& info) {
  std::size_t slot = 0;
  while (slot != links_.size() && links_[slot] != nullptr) ++slot;
  if (slot == kLinksMax) return fail(Code::out_of_memory, kLinksMax);
  auto made = Link::make(device, info, next_link_++ << kSlotBits | slot);
  if (!made) return std::unexpected(made.error());
  if (slot == links_.size()) links_.emplace_back();
  links_[slot] = std::move(*made);
  look_ = true;
  return links_[slot].get();
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
  const auto info = library_->find(provider_, *where, false);
  if (!info) return std::unexpected(info.error());
  const auto device = device_for(*info->get());
  if (!device) return std::unexpected(device.error());
  const auto link = make_link(**device, *info->get());
  if (!link) return std::unexpected(link.error());
  if (const auto dialled = (*link)->dial(*info->get()); !dialled) {
    forget(**link);
    return std::unexpected(dialled.error());
  }
  auto pair =
      std::make_unique<Pair>(next_pair_++, options, properties(), Host{reader_, pairs_}, **link);
  pair->greet(data);
  return pair;
}

Result<void> ProviderEndpoint::listen(std::string_view address) {
  if (door_) return fail(Code::already_exists);
  const auto where = read_address(address);
  if (!where) return std::unexpected(where.error());
  const auto info = library_->find(provider_, *where, true);
  if (!info) return std::unexpected(info.error());
  const auto device = device_for(*info->get());
  if (!device) return std::unexpected(device.error());
  auto door = (*device)->make_door(*info->get());
  const int answer = door ? fi_listen(door->get()) : -static_cast<int>(door.error().detail);
  if (answer == -FI_EADDRINUSE) return fail(Code::already_exists);
  if (answer != 0) return refused(answer);
  door_ = std::move(*door);
  door_device_ = *device;
  shorten_patience(listens_at());
  return {};
}

ProviderEndpoint::Guests::iterator ProviderEndpoint::guest_of(std::uint64_t id) {
  return std::find_if(guests_.begin(), guests_.end(), [id](const auto& guest) {
    return guest->id() == id && guest->asks() && !guest->is_gone();
  });
}

std::optional<ConnectRequest> ProviderEndpoint::next_request() {
  for (const auto& guest : guests_) {
    if (!guest->asks() || guest->is_gone() || std::exchange(guest->told, true)) continue;
    return ConnectRequest{guest->id(), guest->peer(), guest->data()};
  }
  return {};
}

Result<std::unique_ptr<QueuePair>> ProviderEndpoint::accept(const ConnectRequest& request,
                                                            const QueuePairOptions& options,
                                                            std::span<const std::byte> data) {
  if (const auto good = check(options, data, kAcceptDataMax); !good) {
    return std::unexpected(good.error());
  }
  const auto guest = guest_of(request.id);
  if (guest == guests_.end()) return fail(Code::not_found);
  auto pair = std::make_unique<Pair>(next_pair_++, options, properties(), Host{reader_, pairs_},
                                     (*guest)->hand_over());
  pair->welcome((*guest)->data(), data);
  guests_.erase(guest);
  return pair;
}

void ProviderEndpoint::reject(const ConnectRequest& request) {
  const auto guest = guest_of(request.id);
  if (guest == guests_.end()) return;
  (*guest)->turn_away();
  guests_.erase(guest);
}

// The silent give way, oldest first: to say what one wants takes no time.
bool ProviderEndpoint::make_room_for_guest() {
  if (guests_.size() < kGuestsMax) return true;
  const auto silent = std::find_if(guests_.begin(), guests_.end(),
                                   [](const auto& guest) { return !guest->asks(); });
  if (silent == guests_.end()) return false;
  guests_.erase(silent);
  return true;
}

void ProviderEndpoint::answer_door(fi_info& info) {
  const auto link = make_room_for_guest() ? make_link(*door_device_, info)
                                          : Result<Link*>(fail(Code::out_of_memory));
  if (!link) {
    fi_reject(door_.get(), info.handle, nullptr, 0);
    return;
  }
  if (!(*link)->accept()) return forget(**link);
  guests_.push_back(std::make_unique<Guest>(
      next_guest_++, roce::to_text(address_of(info.dest_addr, info.dest_addrlen)), **link));
}

Link* ProviderEndpoint::link_of(const fid* object) {
  const auto link = std::find_if(links_.begin(), links_.end(), [object](const auto& each) {
    return each != nullptr && each->is(object);
  });
  return link == links_.end() ? nullptr : link->get();
}

// Returns whether there were any.
bool ProviderEndpoint::take_events() {
  if (!std::exchange(look_, false) && ++turns_ % kTurnsPerLook != 0) return false;
  bool any = false;
  for (const auto& device : devices_) {
    while (const auto event = device->next_event()) {
      any = true;
      if (event->kind == Device::Event::Kind::asked) {
        const Info info(*library_, event->info);
        answer_door(*info.get());
      } else if (Link* const link = link_of(event->object)) {
        event->kind == Device::Event::Kind::up ? link->come_up() : link->go_down();
      }
    }
  }
  return any;
}

// `all`: until the provider says that there are no more, which costs a call of the system; else
// what comes at once.
bool ProviderEndpoint::take_completions(bool all) {
  bool any = false;
  for (const auto& device : devices_) {
    Device::Completed some[Device::kAtATime];
    for (bool drained = false; !drained;) {
      const std::size_t count = device->completed(some, drained);
      if (!all && count < Device::kAtATime) drained = true;
      any = any || count != 0;
      for (const Device::Completed& each : std::span(some, count)) {
        const std::uint64_t number = Link::number_of(each.tag);
        const std::size_t slot = number % (1u << kSlotBits);
        Link* const link = slot < links_.size() ? links_[slot].get() : nullptr;
        // What an earlier one of this slot left behind is nobody's.
        if (link != nullptr && link->number() == number) link->complete(each);
      }
    }
  }
  return any;
}

// Returns whether anything was told.
bool ProviderEndpoint::settle() {
  const std::uint64_t now_ns = base::monotonic_ns();
  bool any = false;
  for (Pair* const pair : pairs_) any = pair->progress(now_ns) || any;
  for (const auto& guest : guests_) {
    if (!guest->is_gone()) guest->flush();
  }
  std::erase_if(guests_, [](const auto& guest) { return guest->is_gone(); });
  for (auto& link : links_) {
    if (link == nullptr) continue;
    if (!link->is_up()) look_ = true;
    any = link->is_lost() || any;
    if (link->settle(now_ns)) link.reset();
  }
  return any;
}

// Events first: a line that is down is told of behind all that has come through it. Returns whether
// anything has come, or was told.
bool ProviderEndpoint::turn() {
  const bool events = take_events();
  const bool completions = take_completions(events);
  return settle() || events || completions;
}

std::uint64_t ProviderEndpoint::due_ns() const {
  std::uint64_t due = UINT64_MAX;
  const auto consider = [&due](std::uint64_t one) {
    if (one != 0) due = std::min(due, one);
  };
  for (const Pair* const pair : pairs_) consider(pair->due_ns());
  for (const auto& link : links_) {
    if (link != nullptr) consider(link->due_ns());
  }
  return due;
}

void ProviderEndpoint::wait(std::uint64_t timeout_ns) {
  look_ = true;
  if (turn()) return;
  const std::uint64_t now_ns = base::monotonic_ns();
  const std::uint64_t due = due_ns();
  if (due <= now_ns) return;
  timeout_ns = std::min(timeout_ns, due - now_ns);
  std::vector<pollfd> watched{{bell_.number(), POLLIN, 0}};
  for (const auto& device : devices_) {
    if (device->watch(watched)) continue;
    if (device->can_be_watched()) return;  // there is something already
    timeout_ns = std::min(timeout_ns, kLookNs);
  }
  doze(watched, timeout_ns);
  look_ = true;
}

void ProviderEndpoint::doze(std::span<pollfd> watched, std::uint64_t timeout_ns) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  constexpr std::uint64_t kSecondsMax = 1'000'000;
  const timespec timeout{static_cast<time_t>(std::min(timeout_ns / kSecond, kSecondsMax)),
                         static_cast<long>(timeout_ns % kSecond)};
  if (ppoll(watched.data(), watched.size(), &timeout, nullptr) <= 0) return;
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = read(bell_.number(), &count, sizeof count);
}

void ProviderEndpoint::wake() {
  const std::uint64_t one = 1;
  // It is refused only where it has rung as often as can be counted.
  [[maybe_unused]] const auto written = write(bell_.number(), &one, sizeof one);
}

}  // namespace

Result<std::unique_ptr<OfiEndpoint>> open(std::string_view provider,
                                          std::shared_ptr<RegionTable> regions,
                                          const char* library) {
  auto loaded = Library::load(library);
  if (!loaded) return std::unexpected(loaded.error());
  auto made = std::make_unique<ProviderEndpoint>(provider, std::move(regions), std::move(*loaded));
  if (const auto started = made->start(); !started) return std::unexpected(started.error());
  return made;
}

}  // namespace espalier::fabric::ofi
