// SPDX-License-Identifier: Apache-2.0
#include "bench/chain_processes.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <stdexcept>
#include <utility>

#include "base/bytes.hpp"
#include "base/child_process.hpp"
#include "base/clock.hpp"
#include "base/random.hpp"
#include "bench/errno_failure.hpp"
#include "bench/map_session.hpp"
#include "bench/mix.hpp"
#include "bench/node_process.hpp"
#include "bench/own_node.hpp"
#include "chain/membership/membership.hpp"
#include "espalier/hash_map.hpp"

namespace espalier::bench {
namespace {

constexpr std::uint64_t kServesNs = 60'000'000'000;
constexpr std::uint64_t kChainMemoryBytes = std::uint64_t{256} << 20;
constexpr const char* kCount = "count";

/// Lives until it is killed.
[[noreturn]] void be_a_member(pid_t parent, const node::Config& config) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it ended before the line above
  ::close_range(STDERR_FILENO + 1, ~0U, 0);
  try {
    const auto node = start_own_node(config);  // once it is the head
    for (;;) ::pause();
  } catch (...) {
    ::_exit(1);
  }
}

/// Creates a chain. Returns where its state is kept.
std::string make_chain(const ChainSetting& setting, const base::TemporaryFolder& folder,
                       const std::vector<std::string>& names) {
  const std::string place =
      setting.etcd.empty() ? (folder / "chain").string()
                           : fmt::format("etcd://{}{}", setting.etcd, (folder / "chain").string());
  chain::View view{.chain = 1, .epoch = 1, .fence_ms = setting.fence_ms, .members = {}};
  for (const std::string& name : names) {
    const auto number = static_cast<std::uint32_t>(view.members.size() + 1);
    view.members.push_back({number, name, "shm:" + (folder / name).string()});
  }
  const auto membership = chain::open_membership(place);
  if (!membership) throw std::runtime_error(membership.error());
  const auto made = (*membership)->replace(view);
  if (!made) throw std::runtime_error(made.error());
  if (!*made) throw std::runtime_error("there is a chain at " + place);
  return place;
}

/// Retries, like a client whose node may be gone. Errors: throws std::runtime_error, if that takes
/// more than a minute, or it fails for another reason.
template <class Work>
auto until_served(const Work& work) {
  for (const base::Stopwatch watch;;) {
    auto done = work();
    if (done) return *std::move(done);
    const Code code = done.error().code;
    const bool may_come = code == Code::connection_lost || code == Code::system;
    if (!may_come || watch.elapsed_ns() > kServesNs) {
      throw std::runtime_error("the chain does not serve: " + message(done.error()));
    }
    ::poll(nullptr, 0, 1);
  }
}

struct PutsDone final : Handler {
  void done(const Completion& completion) override {
    if (!completion.ok) throw_put(completion.error);
    ++puts;
  }
  [[noreturn]] static void throw_put(const Error& error) {
    throw std::runtime_error("a put fails: " + message(error));
  }
  std::uint64_t puts = 0;
};

/// Windows of puts, with all bytes made in advance.
class PutList {
 public:
  PutList(const ChainWrites& writes, std::uint64_t count) {
    base::Random random(writes.seed);
    for (std::uint64_t i = 0; i < count; ++i) {
      std::string value(writes.value_bytes, '\0');
      random.fill(std::as_writable_bytes(std::span(value)));
      pairs_.emplace_back(base::bytes_of(base::mix64(random.below(writes.keys))), value);
    }
    for (const auto& [key, value] : pairs_) {
      requests_.push_back({.op = Op::put, .key = key, .value = value});
    }
  }
  [[nodiscard]] std::span<const Request> requests() const { return requests_; }

 private:
  std::vector<std::pair<std::string, std::string>> pairs_;
  std::vector<Request> requests_;
};

std::uint64_t sum_of_items(const Map& map) {
  const Contents contents = contents_of(map);
  return contents.hash + contents.items;
}

}  // namespace

ChainProcesses::ChainProcesses(const ChainSetting& setting) : folder_(setting.dir) {
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < setting.nodes; ++i) {
    names.emplace_back(1, static_cast<char>('a' + i));
  }
  const std::string place = setting.nodes == 1 ? "" : make_chain(setting, folder_, names);
  address_ = setting.nodes == 1 ? "" : "chain://";
  for (const std::string& name : names) {
    node::Config config = own_node_config();
    config.node.pin = false;
    config.memory.limit = kChainMemoryBytes;
    config.data.dir = (folder_ / (name + ".data")).string();
    if (!place.empty()) config.chain = {name, place};
    if (!processes_.empty()) address_ += ",";
    address_ += "unix:" + config.node.socket;
    start(config);
  }
}

ChainProcesses::~ChainProcesses() {
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    if (processes_[i]) kill(i);
  }
}

void ChainProcesses::start(const node::Config& config) {
  const pid_t parent = ::getpid();
  const pid_t process = ::fork();
  if (process < 0) fail_with_errno("cannot start a process for a node");
  if (process == 0) be_a_member(parent, config);
  processes_.emplace_back(process);
}

Store ChainProcesses::connect() const {
  return until_served([this] { return Store::connect(address_); });
}

void ChainProcesses::kill(std::size_t node) {
  const pid_t process = *std::exchange(processes_.at(node), std::nullopt);
  ::kill(process, SIGKILL);
  base::wait_for_child(process);
}

std::uint64_t ChainProcesses::cpu_ns() const {
  std::uint64_t sum = 0;
  for (const auto& process : processes_) {
    if (process) sum += cpu_ns_of(*process);
  }
  return sum;
}

PointSample measure_chain_writes(const ChainWrites& writes) {
  const std::uint64_t warm_up = std::min<std::uint64_t>(writes.ops, 4 * writes.in_flight);
  const PutList puts(writes, warm_up + writes.ops);
  const ChainProcesses nodes(writes.setting);
  Store store = nodes.connect();
  const Map map = until_served([&] { return store.create_map("writes"); });
  auto pipeline = value_or_throw(Pipeline::open(map, writes.in_flight), "no pipeline");
  PutsDone done;
  pipeline.run(puts.requests().first(warm_up), done);
  const std::uint64_t cpu_before_ns = nodes.cpu_ns();
  const base::Stopwatch watch;
  pipeline.run(puts.requests().subspan(warm_up), done);
  PointSample sample;
  sample.took(writes.ops, static_cast<double>(watch.elapsed_ns()) / 1e9);
  const std::uint64_t cpu_ns = nodes.cpu_ns() - cpu_before_ns;
  sample.numbers.emplace_back("cpu_ns_per_op",
                              static_cast<double>(cpu_ns) / static_cast<double>(writes.ops));
  if (done.puts != warm_up + writes.ops) throw std::runtime_error("puts are not acknowledged");
  sample.checksum = sum_of_items(map);
  return sample;
}

PointSample measure_failover(const ChainSetting& setting, std::uint64_t puts) {
  ChainProcesses nodes(setting);
  Store store = nodes.connect();
  HashMap map = until_served([&] { return store.create_hash_map("counts"); });
  PointSample sample;
  const base::Stopwatch watch;
  for (std::uint64_t count = 1; count <= puts; ++count) {
    if (count == puts / 2) nodes.kill(0);
    const base::Stopwatch one;
    static_cast<void>(until_served([&] { return map.put(kCount, base::bytes_of(count)); }));
    sample.latencies.record(one.elapsed_ns());
  }
  sample.took(puts, static_cast<double>(watch.elapsed_ns()) / 1e9);
  sample.numbers.emplace_back("longest_pause_ms",
                              static_cast<double>(sample.latencies.max()) / 1e6);
  const auto found = until_served([&] { return map.get(kCount); });
  if (!found || found->value != base::bytes_of(puts)) {
    throw std::runtime_error("what was acknowledged is lost");
  }
  sample.checksum = bytes_hash(found->value);
  return sample;
}

}  // namespace espalier::bench
