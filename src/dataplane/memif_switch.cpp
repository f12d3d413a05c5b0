// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memif_switch.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/own_counter.hpp"
#include "base/system_error.hpp"
#include "fabric/memif/link.hpp"
#include "fabric/memif/port.hpp"
#include "fabric/shm/listening_socket.hpp"

namespace espalier::dataplane {
namespace {

using fabric::memif::MemifLink;

// Polls between looks at sockets: those of links that are up only report an end, so seldom.
constexpr std::uint32_t kTurnsUp = 16384;
constexpr std::uint32_t kTurnsAgreeing = 16;
constexpr std::uint64_t kDialAgainNs = 20'000'000;
// For a number that is in use at the node.
constexpr std::uint64_t kRefusedForNs = 1'000'000'000;
constexpr std::size_t kAgreeingMax = 16;  // clients, concurrently
constexpr std::size_t kOutcomes = static_cast<std::size_t>(Outcome::hinted) + 1;
constexpr std::size_t kBurst = fabric::memif::Arrivals::kFramesMax;

/// A client's link, and the one to the node behind it.
struct Path {
  std::unique_ptr<MemifLink> client;
  std::unique_ptr<MemifLink> node;
  std::uint64_t give_up_ns = 0;  // unless it is up before
  std::uint64_t dial_ns = 0;     // not before
  bool up = false;
  std::uint16_t way = 0;
};

/// Where clients of a node come to, and where the node is.
struct NodeWay {
  fabric::shm::ListeningSocket listening;
  std::string node;
};

bool is_up(const std::unique_ptr<MemifLink>& link) {
  return link && link->state() == MemifLink::State::up;
}

bool has_ended(const std::unique_ptr<MemifLink>& link) {
  return link && link->state() == MemifLink::State::ended;
}

class Switch final : public MemifSwitch {
 public:
  Switch(const Options& options, InstalledFunction& function, std::vector<NodeWay> ways,
         memory::Descriptor events, memory::Descriptor wake)
      : first_(options.first),
        last_(options.last),
        function_(function.make_reader()),
        ways_(std::move(ways)),
        events_(std::move(events)),
        wake_(std::move(wake)) {
    for (const NodeWay& way : ways_) watch(way.listening.number(), false);
    watch(wake_.number(), false);
  }

  std::size_t poll() override;
  void wait(std::uint64_t timeout_ns) override;
  void wake() override {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake_.number(), &one, sizeof one);
  }
  SwitchCounters counters() const override;
  std::size_t links() const override { return up_.load(std::memory_order_relaxed); }

 private:
  void watch(int descriptor, bool edges) const;
  void look_at_links();
  void accept_clients();
  void accept_clients(std::uint16_t way);
  void look_at(Path& path);
  void dial(Path& path);
  void end(Path& path);
  [[nodiscard]] bool is_free(std::uint16_t way, std::uint32_t number) const;
  enum class To : std::uint8_t { node, client };
  [[nodiscard]] std::size_t move(Path& path, To to);
  void count_done();
  [[nodiscard]] bool fall_asleep();
  void take_events();

  const bool first_;
  const bool last_;
  InstalledFunction::Reader function_;
  const std::vector<NodeWay> ways_;  // by the numbers of nodes
  memory::Descriptor events_;
  memory::Descriptor wake_;
  std::vector<std::unique_ptr<Path>> paths_;
  // By way and number of the link.
  std::map<std::pair<std::uint16_t, std::uint32_t>, std::uint64_t> refused_until_ns_;
  std::uint32_t turns_ = 0;
  std::uint32_t turns_to_look_ = kTurnsAgreeing;
  bool all_up_ = false;  // as of the last look

  fabric::memif::Arrivals arrivals_;
  std::vector<std::span<std::byte>> frames_;
  std::vector<Processed> done_;  // with each of them

  std::atomic<std::uint64_t> up_{0};
  std::atomic<std::uint64_t> to_node_{0};
  std::atomic<std::uint64_t> to_clients_{0};
  std::atomic<std::uint64_t> lost_{0};
  std::atomic<std::uint64_t> links_up_{0};
  std::atomic<std::uint64_t> links_down_{0};
  std::array<std::atomic<std::uint64_t>, kOutcomes> done_as_{};
  std::atomic<std::uint64_t> unknown_key_{0};
  std::array<std::atomic<std::uint64_t>, SwitchCounters::kSetsMax + 1> redirected_{};
};

void Switch::watch(int descriptor, bool edges) const {
  epoll_event event{};
  event.events = edges ? EPOLLIN | EPOLLET : EPOLLIN;
  ::epoll_ctl(events_.number(), EPOLL_CTL_ADD, descriptor, &event);
}

bool Switch::is_free(std::uint16_t way, std::uint32_t number) const {
  const auto refused = refused_until_ns_.find({way, number});
  if (refused != refused_until_ns_.end() && refused->second > base::monotonic_ns()) return false;
  return number < fabric::memif::kLinksMax && std::ranges::none_of(
                                                  paths_,
                                                  [way, number](const auto& path) {
                                                    return path->way == way &&
                                                           !has_ended(path->client) &&
                                                           path->client->number() == number;
                                                  });
}

void Switch::accept_clients() {
  for (std::uint16_t way = 0; way < ways_.size(); ++way) accept_clients(way);
}

void Switch::accept_clients(std::uint16_t way) {
  auto agreeing = static_cast<std::size_t>(std::ranges::count_if(
      paths_, [way](const auto& path) { return path->way == way && !path->up; }));
  for (; agreeing < kAgreeingMax; ++agreeing) {
    memory::Descriptor client(
        ::accept4(ways_[way].listening.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!client) return;
    auto path = std::make_unique<Path>();
    path->way = way;
    path->client = MemifLink::accept(std::move(client));
    path->give_up_ns = base::monotonic_ns() + fabric::memif::kAgreeLongestNs;
    watch(path->client->socket(), false);
    paths_.push_back(std::move(path));
  }
}

void Switch::dial(Path& path) {
  const std::uint64_t now = base::monotonic_ns();
  if (now < path.dial_ns) return;
  path.dial_ns = now + kDialAgainNs;
  auto link = MemifLink::dial(ways_[path.way].node, *path.client->number());
  if (!link) return;  // no node is there now, or it has others to accept
  path.node = std::move(*link);
  watch(path.node->socket(), false);
}

void Switch::look_at(Path& path) {
  path.client->progress(
      [this, way = path.way](std::uint32_t number) { return is_free(way, number); });
  if (is_up(path.client) && !path.node) dial(path);
  if (path.node) path.node->progress([](std::uint32_t) { return false; });
  if (has_ended(path.node)) {
    if (path.node->refused()) {
      refused_until_ns_[{path.way, *path.client->number()}] = base::monotonic_ns() + kRefusedForNs;
    }
    path.client->end();
  }
  if (!path.up && base::monotonic_ns() > path.give_up_ns) path.client->end();
  if (path.up || !is_up(path.client) || !is_up(path.node)) return;
  path.up = true;
  watch(path.client->event(), true);
  watch(path.node->event(), true);
  base::count_own(up_);
  base::count_own(links_up_);
}

// Closing events would not do: the peers have them too.
void Switch::end(Path& path) {
  if (!path.up) return;
  ::epoll_ctl(events_.number(), EPOLL_CTL_DEL, path.client->event(), nullptr);
  ::epoll_ctl(events_.number(), EPOLL_CTL_DEL, path.node->event(), nullptr);
  base::count_own(up_, -std::uint64_t{1});
  base::count_own(links_down_);
}

void Switch::look_at_links() {
  turns_ = 0;
  epoll_event event;
  if (all_up_ && ::epoll_wait(events_.number(), &event, 1, 0) == 0) return;
  // Ends first: a client that comes again finds its number free.
  for (const auto& path : paths_) look_at(*path);
  std::erase_if(paths_, [this](const auto& path) {
    if (!has_ended(path->client)) return false;
    end(*path);
    return true;
  });
  std::erase_if(refused_until_ns_, [now = base::monotonic_ns()](const auto& refused) {
    return refused.second <= now;
  });
  accept_clients();
  all_up_ = std::ranges::all_of(paths_, [](const auto& path) { return path->up; });
  turns_to_look_ = all_up_ ? kTurnsUp : kTurnsAgreeing;
}

void Switch::count_done() {
  std::array<std::uint64_t, SwitchCounters::kSetsMax + 1> redirected{};
  std::array<std::uint64_t, kOutcomes> done_as{};
  for (const Processed& done : done_) {
    ++done_as[static_cast<std::size_t>(done.outcome)];
    if (done.outcome == Outcome::key_unknown) {
      unknown_key_.store(done.key, std::memory_order_relaxed);
    }
    if (done.outcome != Outcome::redirected) continue;
    ++redirected[std::min<std::size_t>(done.sets, SwitchCounters::kSetsMax)];
  }
  for (std::size_t outcome = 0; outcome < kOutcomes; ++outcome) {
    if (done_as[outcome] != 0) base::count_own(done_as_[outcome], done_as[outcome]);
  }
  for (std::size_t sets = 0; sets < redirected.size(); ++sets) {
    if (redirected[sets] != 0) base::count_own(redirected_[sets], redirected[sets]);
  }
}

// Empty: nothing.
std::span<std::byte> what_goes_on(std::span<std::byte> frame, const Processed& done) {
  if (done.outcome == Outcome::shim_dropped) return {};
  return {frame.data(), frame.size() + static_cast<std::size_t>(std::ptrdiff_t{done.grown})};
}

// A frame is processed in memory of our own, and only then goes where a peer can write too.
std::size_t Switch::move(Path& path, To where) {
  const bool to_node = where == To::node;
  MemifLink& from = to_node ? *path.client : *path.node;
  MemifLink& to = to_node ? *path.node : *path.client;
  arrivals_.clear();
  frames_.clear();
  from.in().take(kBurst, arrivals_, frames_);
  const std::size_t come = frames_.size();
  if (come == 0) return 0;
  if (to_node) {
    done_.resize(frames_.size());
    const Hop hop{first_, last_, fabric::memif::Arrivals::kRoomBehind, path.way};
    function_.with([&](const PacketFunction& function) { function.process(frames_, done_, hop); });
    count_done();
    for (std::size_t i = 0; i < frames_.size(); ++i)
      frames_[i] = what_goes_on(frames_[i], done_[i]);
  }
  std::erase_if(frames_, [](std::span<std::byte> frame) { return frame.empty(); });
  std::uint64_t gone = 0;
  for (const auto frame : frames_) {
    std::byte* const at = to.out().begin(frame.size());
    if (at == nullptr) continue;
    std::memcpy(at, frame.data(), frame.size());
    to.out().end();
    ++gone;
  }
  if (to.out().publish() && to.out().peer_sleeps()) to.wake_peer();
  base::count_own(to_node ? to_node_ : to_clients_, gone);
  base::count_own(lost_, frames_.size() - gone);
  return come;
}

std::size_t Switch::poll() {
  if (++turns_ >= turns_to_look_) look_at_links();
  std::size_t moved = 0;
  for (const auto& path : paths_) {
    if (!path->up) continue;
    moved += move(*path, To::node);
    moved += move(*path, To::client);
    const auto broken = [](MemifLink& link) { return link.in().broken() || link.out().broken(); };
    if (broken(*path->client) || broken(*path->node)) {
      path->client->end();
      all_up_ = false;
      turns_ = turns_to_look_;
    }
  }
  return moved;
}

bool Switch::fall_asleep() {
  bool ready = false;
  for (const auto& path : paths_) {
    if (!path->up) continue;
    for (MemifLink* const link : {path->client.get(), path->node.get()}) {
      link->in().fall_asleep();
      ready = ready || link->in().ready();
    }
  }
  return ready;
}

// Consumes edge-triggered events; all sockets are checked in the next turn.
void Switch::take_events() {
  std::array<epoll_event, 64> events;
  ::epoll_wait(events_.number(), events.data(), static_cast<int>(events.size()), 0);
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(wake_.number(), &count, sizeof count);
  turns_ = turns_to_look_;
}

void Switch::wait(std::uint64_t timeout_ns) {
  const bool ready = fall_asleep();
  if (!all_up_) timeout_ns = std::min(timeout_ns, kDialAgainNs);
  if (!ready) {
    pollfd events{events_.number(), POLLIN, 0};
    const timespec timeout{static_cast<time_t>(timeout_ns / 1'000'000'000),
                           static_cast<long>(timeout_ns % 1'000'000'000)};
    ::ppoll(&events, 1, &timeout, nullptr);
    take_events();
  }
  for (const auto& path : paths_) {
    if (!path->up) continue;
    path->client->in().rise();
    path->node->in().rise();
  }
}

SwitchCounters Switch::counters() const {
  SwitchCounters counters;
  counters.to_node = to_node_.load(std::memory_order_relaxed);
  counters.to_clients = to_clients_.load(std::memory_order_relaxed);
  counters.lost = lost_.load(std::memory_order_relaxed);
  counters.links_up = links_up_.load(std::memory_order_relaxed);
  counters.links_down = links_down_.load(std::memory_order_relaxed);
  const auto done_as = [this](Outcome outcome) {
    return done_as_[static_cast<std::size_t>(outcome)].load(std::memory_order_relaxed);
  };
  counters.keys_unknown = done_as(Outcome::key_unknown);
  counters.unknown_key = unknown_key_.load(std::memory_order_relaxed);
  counters.reads_passed = done_as(Outcome::read_passed) + counters.keys_unknown;
  counters.carried = done_as(Outcome::carried);
  counters.shims_passed = done_as(Outcome::shim_passed);
  counters.shims_removed = done_as(Outcome::shim_removed);
  counters.shims_dropped = done_as(Outcome::shim_dropped);
  counters.gets_hinted = done_as(Outcome::hinted);
  for (std::size_t i = 0; i < redirected_.size(); ++i) {
    counters.redirected[i] = redirected_[i].load(std::memory_order_relaxed);
  }
  return counters;
}

}  // namespace

Result<std::unique_ptr<MemifSwitch>> MemifSwitch::open(const Options& options,
                                                       InstalledFunction& function) {
  std::vector<Options::Way> wanted = options.more;
  wanted.insert(wanted.begin(), {options.clients, options.node});
  if (wanted.size() > kNodesMax) return fail(Code::invalid_argument, kNodesMax);
  std::vector<NodeWay> ways;
  for (const Options::Way& way : wanted) {
    auto listening = fabric::shm::ListeningSocket::open(way.clients);
    if (!listening) return std::unexpected(listening.error());
    ways.push_back({std::move(*listening), way.node});
  }
  memory::Descriptor events(::epoll_create1(EPOLL_CLOEXEC));
  memory::Descriptor wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!events || !wake) return base::refused_by_system();
  return std::make_unique<Switch>(options, function, std::move(ways), std::move(events),
                                  std::move(wake));
}

}  // namespace espalier::dataplane
