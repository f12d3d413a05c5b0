// SPDX-License-Identifier: Apache-2.0
#include "tests/support/rolling_load.hpp"

#include <poll.h>
#include <signal.h>

#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "espalier/map.hpp"
#include "tests/support/hostile.hpp"
#include "tests/support/load_worker.hpp"

namespace espalier::test {
namespace {

constexpr int kAskAgainMs = 50;
const std::string kGoesOn = "goes on";
// A victim dies after about so many pieces of news.
constexpr std::uint64_t kNewsOfAVictim = 12;

int live_as_worker(Line& line, const std::string& address, std::uint32_t slot, std::uint64_t number,
                   std::uint64_t seed) {
  Random random(seed);
  LoadWorker worker(address, "slot" + std::to_string(slot) + '/', std::to_string(number), random());
  worker.work(random.between(100, 4000), [&line] { line.send(kGoesOn); });
  return 0;
}

std::string tidy(const std::string& address) {
  auto store = Store::connect(address);
  if (!store) return message(store.error());
  auto map = store->open_map("default");
  if (!map) return message(map.error());
  const auto names = store->map_names();
  if (!names) return message(names.error());
  for (const std::string& name : *names) {
    if (name != "default" && !store->drop_map(name)) return "cannot drop map " + name;
  }
  return erase_range(*map, "", "");
}

}  // namespace

void RollingLoad::begin(std::uint32_t slot) {
  const std::uint64_t seed = random_();
  const bool hostile = random_.one_in(4);
  const std::uint64_t way = random_.below(1 + options_.fabric.size());
  auto body = [&](Line& line) {
    if (hostile && way == 0) live_and_die(options_.socket, seed);
    if (hostile) live_and_die_on_fabric(options_.fabric[way - 1], seed);
    const std::string address = way == 0 ? "unix:" + options_.socket : options_.fabric[way - 1];
    try {
      return live_as_worker(line, address, slot, counts_.came, seed);
    } catch (const std::exception& error) {
      throw std::runtime_error("by " + address + ", " + error.what());
    }
  };
  clients_.emplace(slot, Client{Child(body), hostile, false});
  ++counts_.came;
  if (way != 0) ++counts_.by_fabric;
}

// Handles a client's report, or its end.
void RollingLoad::hear(std::uint32_t slot) {
  Client& client = clients_.at(slot);
  std::string said;
  if (!client.child.line().receive(said)) return bury(slot, "");
  if (said != kGoesOn) return bury(slot, said);
  if (client.killed || !random_.one_in(kNewsOfAVictim)) return;
  client.killed = true;  // it continues to work until the signal reaches it
  client.child.kill();
}

void RollingLoad::bury(std::uint32_t slot, const std::string& last_message) {
  Client& client = clients_.at(slot);
  const int ended = client.child.wait();
  if (!client.hostile && ended == 0) {
    ++counts_.went;
  } else if ((client.hostile || client.killed) && ended == -SIGKILL) {
    ++(client.hostile ? counts_.hostile : counts_.killed);
  } else {
    throw std::runtime_error("a client ended with " + std::to_string(ended) + ": " + last_message);
  }
  clients_.erase(slot);
}

void RollingLoad::run(const std::function<bool(const RollingLoadCounts&)>& enough) {
  while (!enough(counts_)) {
    for (std::uint32_t slot = 0; slot < options_.at_a_time; ++slot) {
      if (!clients_.contains(slot)) begin(slot);
    }
    std::vector<pollfd> watched;
    std::vector<std::uint32_t> slots;
    for (auto& [slot, client] : clients_) {
      watched.push_back({client.child.line().descriptor(), POLLIN, 0});
      slots.push_back(slot);
    }
    ::poll(watched.data(), watched.size(), kAskAgainMs);
    for (std::size_t i = 0; i < watched.size(); ++i) {
      if (watched[i].revents != 0) hear(slots[i]);
    }
  }
  // Kills all clients at the same time, wherever they are. Their last reports may still arrive.
  for (auto& [slot, client] : clients_) {
    client.killed = true;
    client.child.kill();
  }
  while (!clients_.empty()) hear(clients_.begin()->first);
}

void RollingLoad::tidy_up() {
  Child janitor([this](Line& line) {
    const std::string wrong = tidy("unix:" + options_.socket);
    line.send(wrong);
    return wrong.empty() ? 0 : 1;
  });
  std::string said;
  if (!janitor.line().receive(said)) said = "it died";
  if (janitor.wait() != 0) throw std::runtime_error("cannot tidy up: " + said);
}

}  // namespace espalier::test
