// SPDX-License-Identifier: Apache-2.0
#include "tests/support/client_processes.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <new>
#include <stdexcept>
#include <thread>
#include <utility>

#include "tests/support/history_bytes.hpp"
#include "tests/support/recorder.hpp"

namespace espalier::test {
namespace {

constexpr std::size_t kSharedBytes = 4096;

std::string number_bytes(std::uint64_t number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

std::uint64_t take_number(std::string_view& bytes) {
  std::uint64_t number = 0;
  if (bytes.size() < sizeof number) throw std::runtime_error("a client process said nonsense");
  std::memcpy(&number, bytes.data(), sizeof number);
  bytes.remove_prefix(sizeof number);
  return number;
}

// What comes first in an answer.
constexpr std::uint64_t kDone = 1;
constexpr std::uint64_t kFailed = 2;
/// More than ever arrive.
constexpr std::uint64_t kNobodyWaits = std::uint64_t{1} << 62;

// Replaces the content of an operation by the first one that this process saw of that key.
template <class Seen>
bool age(std::map<std::string, Seen>& first, const std::string& key, Seen& seen) {
  const auto [at, is_first] = first.try_emplace(key, seen);
  if (is_first || at->second == seen) return false;
  seen = at->second;
  return true;
}

}  // namespace

std::uint64_t plant(Fault fault, std::vector<Operation>& log) {
  std::map<std::string, ReadItem> first_read;
  std::map<std::string, std::string> first_seen;
  std::uint64_t planted = 0;
  // Sorts, so that the first answer precedes its repetitions.
  std::sort(log.begin(), log.end(),
            [](const Operation& a, const Operation& b) { return a.invoked < b.invoked; });
  for (Operation& operation : log) {
    if (operation.refused || operation.pinned) continue;
    const Kind kind = operation.kind;
    if (fault == Fault::stale_reads && kind == Kind::get && operation.items.size() == 1) {
      if (!age(first_read, operation.key, operation.items.front())) continue;
      operation.read_version.reset();  // a cache has none; the times must show the fault
      ++planted;
    } else if (fault == Fault::lost_updates && kind == Kind::modify && operation.seen) {
      planted += age(first_seen, operation.key, *operation.seen) ? 1 : 0;
    } else if (fault == Fault::short_scans && kind == Kind::scan && operation.items.size() > 2) {
      operation.items.erase(operation.items.begin() + 1);
      ++planted;
    }
  }
  return planted;
}

ClientProcesses::ClientProcesses(const ClientProcessesOptions& options) : options_(options) {
  void* const shared =
      ::mmap(nullptr, kSharedBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) throw std::runtime_error("no memory to share");
  arrived_ = new (shared) std::atomic<std::uint64_t>(0);
  for (std::uint32_t i = 0; i < options_.processes; ++i) {
    children_.emplace_back([this, i](Line& line) { return live(line, i); });
  }
}

ClientProcesses::~ClientProcesses() {
  children_.clear();
  ::munmap(arrived_, kSharedBytes);
}

std::uint32_t ClientProcesses::threads() const { return options_.processes * threads_of_each(); }

std::vector<Operation> ClientProcesses::run_round(std::uint64_t seed) {
  for (Child& child : children_) {
    if (!child.line().send(number_bytes(seed))) throw std::runtime_error("a client is gone");
  }
  std::vector<Operation> all;
  for (Child& child : children_) {
    std::string answer;
    if (!child.line().receive(answer)) throw std::runtime_error("a client process died");
    std::string_view left = answer;
    if (take_number(left) != kDone) throw std::runtime_error(std::string(left));
    faults_ += take_number(left);
    std::vector<Operation> operations = operations_of(left);
    std::move(operations.begin(), operations.end(), std::back_inserter(all));
  }
  return all;
}

// In a process of its own.
int ClientProcesses::live(Line& line, std::uint32_t number) {
  std::string asked;
  for (std::uint64_t round = 0; line.receive(asked); ++round) {
    std::string answer;
    try {
      std::string_view left = asked;
      std::vector<Operation> log = do_round(number, take_number(left), round);
      const std::uint64_t planted = number == 0 ? plant(options_.fault, log) : 0;
      answer = number_bytes(kDone) + number_bytes(planted) + to_bytes(log);
    } catch (const std::exception& error) {
      answer = number_bytes(kFailed) + error.what();
      arrived_->store(kNobodyWaits);  // the others continue, and the round ends
    }
    if (!line.send(answer)) break;
  }
  return 0;
}

std::vector<Operation> ClientProcesses::do_round(std::uint32_t number, std::uint64_t seed,
                                                 std::uint64_t round) {
  const auto& ways = options_.ways;
  const ClientWay way = ways.empty() ? ClientWay{options_.address} : ways[number % ways.size()];
  auto store = Store::connect(way.address, {.access = way.access});
  if (!store) throw std::runtime_error("no node: " + message(store.error()));
  const std::uint64_t all_here = (round + 1) * threads();
  const ClientRound own{*store, number, round, seed, [this, all_here] {
                          arrived_->fetch_add(1);
                          while (arrived_->load() < all_here) std::this_thread::yield();
                        }};
  return options_.work ? options_.work(own) : use_ordered_map(own);
}

std::vector<Operation> ClientProcesses::use_ordered_map(const ClientRound& round) {
  auto map = round.store.open_map(options_.map);
  if (!map) throw std::runtime_error("no map: " + message(map.error()));
  // The keys are the same for all; what is done with them is not.
  const auto keys = make_keys(options_.each.pattern, options_.each.keys, map->max_key_bytes(),
                              options_.each.seed);
  Random random(round.seed + round.process);
  Clock clock(Clock::Source::machine);
  std::vector<Recorder> recorders;
  for (std::uint32_t i = 0; i < threads_of_each(); ++i) {
    recorders.emplace_back(*map, clock, round.process * threads_of_each() + i);
  }
  run_threads(options_.each, keys, recorders, random,
              std::to_string(round.round) + "p" + std::to_string(round.process),
              round.arrive_and_wait);
  for (const Recorder& recorder : recorders) {
    if (recorder.unexpected()) throw std::runtime_error(*recorder.unexpected());
  }
  return std::move(merge_logs(recorders).operations);
}

}  // namespace espalier::test
