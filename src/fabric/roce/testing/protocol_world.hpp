// SPDX-License-Identifier: Apache-2.0
// The world of a seed's workload: network, machines and pairs, from connecting to taking leave.
// engine_workload.hpp says what is asked there.
// Thread: one.
#pragma once

#include <functional>

#include "fabric/roce/testing/protocol_workload.hpp"

namespace espalier::fabric::roce::workload {

class World {
 public:
  World(std::uint64_t seed, const Plan& plan);

  /// Runs all of it. Returns what is wrong, in words; empty: nothing.
  std::string run(Reached& reached);

 private:
  static constexpr std::size_t kMachines = 3;
  struct SimulatedLink {
    std::size_t from = 0;
    std::size_t to = 0;
    std::unique_ptr<End> near;
    std::unique_ptr<End> far;
    std::byte attempt{0};
  };

  PortAddress address(std::size_t machine) const;
  NetworkFaults draw_faults(double loss_max);
  void connect(SimulatedLink& link);
  void accept(Machine& machine);
  void turn();
  std::string run_until(const std::function<bool()>& done, Reached& reached, bool asking);
  std::string take_leave(Reached& reached);
  std::string check() const;
  void count(Reached& reached) const;

  base::Random random_;
  Plan plan_;
  bool six_;
  PacketNetwork network_;
  std::vector<std::unique_ptr<Machine>> machines_;
  std::vector<SimulatedLink> links_;
};

/// A secret by which the first pair's PSNs begin so many before their end, or fewer.
inline std::uint64_t secret_before_wrap(std::uint64_t seed, std::uint32_t packets) {
  for (std::uint64_t secret = seed;; ++secret) {
    base::Random random(secret);
    random();  // for its number
    if (random() >> 40 >= (1u << 24) - packets) return secret;
  }
}

inline World::World(std::uint64_t seed, const Plan& plan)
    : random_(base::mix64(seed)), plan_(plan), six_(random_.chance(0.3)), network_(random_()) {
  for (std::size_t i = 0; i < kMachines; ++i) {
    const bool wraps = i == 0 && seed % 10 == 0;
    const std::uint64_t secret = wraps ? secret_before_wrap(random_(), 32) : random_();
    const std::uint32_t window = random_.chance(0.5) ? 64 * 1024 : 256 * 1024;
    machines_.push_back(
        std::make_unique<Machine>(network_, address(i), window, secret, 2 * plan.pairs));
    static_cast<void>(machines_.back()->endpoint.listen("7"));
  }
  for (std::size_t from = 0; from < kMachines; ++from) {
    for (std::size_t to = from + 1; to < kMachines; ++to) {
      for (std::uint32_t i = 0; i < plan.pairs; ++i) {
        SimulatedLink& link = links_.emplace_back();
        link.from = from;
        link.to = to;
        const std::uint32_t mtu = random_.chance(0.5) ? 1024 : 4096;
        link.near = std::make_unique<End>(*machines_[from], *machines_[to], random_(), mtu);
        link.far = std::make_unique<End>(*machines_[to], *machines_[from], random_(), mtu);
        link.near->other = link.far.get();
        link.far->other = link.near.get();
      }
    }
  }
  network_.faults = draw_faults(plan.loss_max);
}

inline PortAddress World::address(std::size_t machine) const {
  const auto last = static_cast<std::uint8_t>(machine + 1);
  if (!six_) return {IpAddress::v4(10, 0, 0, last), 4791};
  return {IpAddress::v6({0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last}), 4791};
}

inline NetworkFaults World::draw_faults(double loss_max) {
  NetworkFaults faults;
  faults.loss = std::array{0.0, 0.02, 0.5, 1.0}[random_.below(4)] * loss_max;
  faults.duplicate = std::array{0.0, 0.02, 0.1}[random_.below(3)];
  faults.damage = std::array{0.0, 0.01}[random_.below(2)];
  faults.delay_max_ns = std::array{1000u, 2000u, 10'000u, 100'000u}[random_.below(4)];
  faults.room_packets = std::array{0u, 0u, 4u, 64u}[random_.below(4)];
  return faults;
}

inline void World::connect(SimulatedLink& link) {
  Machine& from = *machines_[link.from];
  link.attempt = std::byte(std::to_integer<unsigned>(link.attempt) + 1);
  const std::array data{std::byte(&link - links_.data()), link.attempt};
  link.far->pair.reset();
  link.near->pair = *from.endpoint.connect(to_text(machines_[link.to]->address) + "/7",
                                           link.near->options(random_), data);
}

inline void World::accept(Machine& machine) {
  while (const auto request = machine.endpoint.next_request()) {
    SimulatedLink& link = links_[std::to_integer<std::size_t>(request->data[0])];
    if (request->data[1] != link.attempt) {  // late: there is a later one
      machine.endpoint.reject(*request);
      continue;
    }
    auto pair = machine.endpoint.accept(*request, link.far->options(random_), {});
    // A request that was repeated in the network after its connection was over.
    if (pair && !link.far->pair) link.far->pair = std::move(*pair);
  }
}

inline void World::turn() {
  for (const auto& machine : machines_) {
    machine->endpoint.progress();
    accept(*machine);
  }
  network_.advance(50'000);
}

inline std::string World::run_until(const std::function<bool()>& done, Reached& reached,
                                    bool asking) {
  while (!done()) {
    turn();
    if (network_.now_ns() > kTooLongNs) return "stuck";
    if (!asking) continue;
    for (SimulatedLink& link : links_) {
      for (End* end : {link.near.get(), link.far.get()}) {
        end->turn(plan_.requests, reached);
        if (!end->wrong.empty()) return end->wrong;
      }
    }
  }
  return {};
}

inline std::string World::run(Reached& reached) {
  for (SimulatedLink& link : links_) connect(link);
  const auto connected = [&] {
    bool all = true;
    for (SimulatedLink& link : links_) {
      if (link.near->pair->state() == QueuePair::State::error) {
        ++reached.connected_again;
        connect(link);
      }
      all = all && link.near->pair->state() == QueuePair::State::connected;
    }
    return all;
  };
  std::string wrong = run_until(connected, reached, false);
  for (const SimulatedLink& link : links_) {
    if (wrong.empty() && !link.far->pair) wrong = "connected to nobody";
  }
  if (wrong.empty()) {
    const auto done = [&] {
      return std::all_of(links_.begin(), links_.end(), [&](const SimulatedLink& link) {
        return link.near->done(plan_.requests) && link.far->done(plan_.requests);
      });
    };
    wrong = run_until(done, reached, true);
  }
  if (wrong.empty()) wrong = check();
  if (wrong.empty()) wrong = take_leave(reached);
  count(reached);
  for (SimulatedLink& link : links_) {
    link.near->pair.reset();
    link.far->pair.reset();
  }
  return wrong;
}

inline std::string World::check() const {
  for (const SimulatedLink& link : links_) {
    if (!link.near->slice_is_right() || !link.far->slice_is_right()) return "memory is not right";
  }
  for (const auto& machine : machines_) {
    std::vector<std::uint64_t> tokens = machine->tokens;
    std::sort(tokens.begin(), tokens.end());
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i] != i) return "a token was drawn twice, or never";
    }
    if (base::load_plain<std::uint64_t>(machine->memory.data()) != tokens.size()) {
      return "more tokens were drawn than told";
    }
  }
  return {};
}

// Either end of each pair closes it; nothing of it must be remembered in the end.
inline std::string World::take_leave(Reached& reached) {
  for (SimulatedLink& link : links_) (random_.chance(0.5) ? link.near : link.far)->pair->close();
  const std::uint64_t until = network_.now_ns() + 1'000'000'000;
  const auto waited = [&] { return network_.now_ns() > until; };
  std::string wrong = run_until(waited, reached, false);
  for (const SimulatedLink& link : links_) {
    for (const End* end : {link.near.get(), link.far.get()}) {
      const bool ended = end->pair->state() == QueuePair::State::error;
      if (ended && end->pair->ended_by() != Status::success)
        wrong = "a terminate message became a failure";
    }
  }
  return wrong;
}

inline void World::count(Reached& reached) const {
  for (const auto& machine : machines_) {
    const EndpointCounters& from = machine->endpoint.counters();
    EndpointCounters& to = reached.engine;
    to.packets += from.packets;
    to.go_back_n_events += from.go_back_n_events;
    to.timeouts += from.timeouts;
    to.sequence_naks += from.sequence_naks;
    to.receiver_not_ready_naks += from.receiver_not_ready_naks;
    to.reads_resumed += from.reads_resumed;
    to.port_full += from.port_full;
    to.gaps += from.gaps;
    to.not_ready += from.not_ready;
    to.duplicates += from.duplicates;
    to.reads_again += from.reads_again;
    to.atomics_again += from.atomics_again;
    to.requests_again += from.requests_again;
    to.replies_again += from.replies_again;
    to.repeated_terminates += from.repeated_terminates;
  }
  reached.network.sent += network_.counters().sent;
  reached.network.lost += network_.counters().lost;
  reached.network.duplicated += network_.counters().duplicated;
  reached.network.damaged += network_.counters().damaged;
  reached.network.overtaken += network_.counters().overtaken;
  for (const SimulatedLink& link : links_) {
    if (!link.near->pair) continue;
    const auto& pair = static_cast<const Pair&>(*link.near->pair);
    // Each request has a packet at least.
    if (psn_plus(pair.first_psn(), plan_.requests) < pair.first_psn()) ++reached.wraps;
  }
}

}  // namespace espalier::fabric::roce::workload
