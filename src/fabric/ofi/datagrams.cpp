// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/datagrams.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "base/assert.hpp"
#include "base/atomic_bytes.hpp"
#include "base/system_error.hpp"
#include "fabric/roce/udp_address.hpp"

namespace espalier::fabric::ofi {
namespace {

// To ask for events costs a call of the system, so while nobody connects it is done now and then.
constexpr std::uint32_t kTurnsPerLook = 16;
constexpr std::size_t kEventsAtATime = 64;
// Of one turn, for receives are posted again at once, so that what strangers send has no end.
constexpr std::size_t kCompletionsPerTurn = 16 * Device::kAtATime;
constexpr int kGuestsPerLook = 16;
constexpr std::uint64_t kDoor = 0;  // no number of a link

bool watch_socket(const memory::Descriptor& events, int socket, std::uint64_t who,
                  std::uint32_t what) {
  epoll_event event{};
  event.events = what;
  event.data.u64 = who;
  return epoll_ctl(events.number(), EPOLL_CTL_ADD, socket, &event) == 0;
}

}  // namespace

Result<std::unique_ptr<Lines>> Datagrams::open(std::shared_ptr<const Library> library,
                                               std::string_view provider, Hall& hall) {
  auto numbers = NumberSource::of_system();
  if (!numbers) return std::unexpected(numbers.error());
  std::unique_ptr<Datagrams> made(
      new Datagrams(std::move(library), provider, hall, std::move(*numbers)));
  made->events_ = memory::Descriptor(epoll_create1(EPOLL_CLOEXEC));
  if (!made->events_) return base::refused_by_system();
  return made;
}

// What links have sent is theirs until nothing is sent any more.
Datagrams::~Datagrams() {
  for (const auto& [at, end] : ends_) end->shut();
  links_.clear();
}

roce::PortAddress Datagrams::listens_at() const {
  ESPALIER_ASSERT(door_);
  return Control::address_of(door_);
}

Result<DatagramEnd*> Datagrams::end_for(const roce::IpAddress& at) {
  for (const auto& [ip, end] : ends_) {
    if (ip == at) return end.get();
  }
  const auto info = library_->find_datagrams(provider_, at);
  if (!info) return std::unexpected(info.error());
  auto opened = DatagramEnd::open(library_, *info->get());
  if (!opened) return std::unexpected(opened.error());
  ends_.emplace_back(at, std::move(*opened));
  return ends_.back().second.get();
}

std::size_t Datagrams::links_of(const DatagramEnd& end) const {
  return static_cast<std::size_t>(
      std::count_if(links_.all().begin(), links_.all().end(),
                    [&end](const auto& link) { return link != nullptr && &link->end() == &end; }));
}

Result<DatagramLink*> Datagrams::make_link(DatagramEnd& end, Control control,
                                           const roce::IpAddress& peer_ip) {
  const auto number = links_.next_number();
  if (!number) return fail(Code::out_of_memory, kLinksMax);
  if (const auto room = end.make_room(links_of(end) + 1); !room) {
    return std::unexpected(room.error());
  }
  const int socket = control.number();
  const DatagramLink::Secrets secrets{numbers_.draw(), numbers_.draw()};
  auto made = DatagramLink::make(end, std::move(control), peer_ip, secrets, *number);
  if (!made) return std::unexpected(made.error());
  // Edges are enough: whatever there is is taken at each.
  if (!watch_socket(events_, socket, *number, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)) {
    return base::refused_by_system();
  }
  DatagramLink& link = links_.put(std::move(*made));
  by_secret_[secrets.called] = &link;
  by_secret_[secrets.key] = &link;
  look_ = true;
  return &link;
}

Result<Link*> Datagrams::dial(const roce::PortAddress& where) {
  const auto own = Control::own_address_towards(where);
  if (!own) return std::unexpected(own.error());
  const auto end = end_for(*own);
  if (!end) return std::unexpected(end.error());
  auto control = Control::dial(where);
  if (!control) return std::unexpected(control.error());
  const auto link = make_link(**end, std::move(*control), where.ip);
  if (!link) return std::unexpected(link.error());
  return *link;
}

Result<void> Datagrams::listen(const roce::PortAddress& where) {
  if (door_) return fail(Code::already_exists);
  const auto end = end_for(where.ip);
  if (!end) return std::unexpected(end.error());
  auto door = Control::listen(where);
  if (!door) return std::unexpected(door.error());
  if (!watch_socket(events_, door->number(), kDoor, EPOLLIN)) return base::refused_by_system();
  door_ = std::move(*door);
  door_end_ = *end;
  return {};
}

void Datagrams::answer_door() {
  for (int i = 0; i < kGuestsPerLook; ++i) {
    // Where all receives are taken, who says nothing gives way; his are free in the next turn. Only
    // if somebody is there for whom: that was told of the first, and who comes then stays waiting.
    if (links_of(*door_end_) >= door_end_->links_max() && (i != 0 || hall_.send_one_away())) {
      look_ = true;
      return;
    }
    roce::SocketAddress from;
    memory::Descriptor socket(
        accept4(door_.number(), from.get(), &from.bytes, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      // Where there are no descriptors left, one is free in the next turn.
      if (errno != EAGAIN) hall_.send_one_away();
      return;
    }
    if (!hall_.has_room()) continue;
    const roce::PortAddress peer = roce::to_port_address(from.storage);
    const auto link = make_link(*door_end_, Control(std::move(socket)), peer.ip);
    if (link) hall_.let_in(**link, roce::to_text(peer));
  }
}

// Returns whether there were any.
bool Datagrams::take_events() {
  if (!std::exchange(look_, false) && ++turns_ % kTurnsPerLook != 0) return false;
  epoll_event events[kEventsAtATime];
  const int count = epoll_wait(events_.number(), events, kEventsAtATime, 0);
  for (int i = 0; i < count; ++i) {
    const std::uint64_t who = events[i].data.u64;
    if (who == kDoor) {
      answer_door();
    } else if (DatagramLink* const link = links_.find(who)) {
      link->see_control();
    }
  }
  if (count == kEventsAtATime) look_ = true;
  return count > 0;
}

void Datagrams::take_datagram(DatagramEnd& end, std::uint32_t receive, std::size_t bytes) {
  if (bytes < sizeof(wire::ofi::DatagramHead)) return end.give_back(receive);
  const auto head = base::load_plain<wire::ofi::DatagramHead>(end.arrived(receive, bytes).data());
  const auto named = by_secret_.find(head.to);
  // To nobody, or by another way than he was told.
  if (named == by_secret_.end() || &named->second->end() != &end) return end.give_back(receive);
  named->second->take(head, {receive, static_cast<std::uint32_t>(bytes)});
}

bool Datagrams::take_completions(DatagramEnd& end) {
  Device::Completed some[Device::kAtATime];
  std::size_t taken = 0;
  for (bool drained = false; !drained && taken < kCompletionsPerTurn;) {
    const std::size_t count = end.device().completed(some, drained);
    taken += count;
    for (const Device::Completed& each : std::span(some, count)) {
      if (Link::leaves(each.tag)) {
        DatagramLink* const link = links_.find(Link::number_of(each.tag));
        if (link != nullptr) link->complete(each);
      } else if (const auto receive = end.receive_of(each.tag)) {
        // One that failed was of somebody who sent more than fits.
        take_datagram(end, *receive, each.good ? each.bytes : 0);
      }
    }
  }
  return taken != 0;
}

bool Datagrams::take() {
  bool any = take_events();
  for (const auto& [at, end] : ends_) any = take_completions(*end) || any;
  return any;
}

void Datagrams::unname(const DatagramLink& link) {
  by_secret_.erase(link.secrets().called);
  by_secret_.erase(link.secrets().key);
}

bool Datagrams::settle(std::uint64_t now_ns) {
  bool any = false;
  for (auto& link : links_.all()) {
    if (link == nullptr) continue;
    if (!link->is_up() && !link->is_finished()) look_ = true;
    any = link->advance(now_ns) || any;
    any = link->is_lost() || any;
    const bool over = link->settle(now_ns);
    if (link->is_finished()) unname(*link);
    if (over) link.reset();
  }
  for (const auto& [at, end] : ends_) end->settle();
  return any;
}

std::uint64_t Datagrams::due_ns() const {
  std::uint64_t due = UINT64_MAX;
  for (const auto& link : links_.all()) {
    if (link != nullptr && link->due_ns() != 0) due = std::min(due, link->due_ns());
  }
  return due;
}

bool Datagrams::watch(std::vector<pollfd>& into, std::uint64_t& timeout_ns) {
  into.push_back({events_.number(), POLLIN, 0});
  return std::all_of(ends_.begin(), ends_.end(), [&](const auto& each) {
    return each.second->device().watch(into, timeout_ns);
  });
}

}  // namespace espalier::fabric::ofi
