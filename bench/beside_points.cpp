// SPDX-License-Identifier: Apache-2.0
#include "bench/beside_points.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "bench/errno_failure.hpp"
#include "bench/map_session.hpp"
#include "bench/own_node.hpp"

namespace espalier::bench {
namespace {

constexpr std::uint32_t kPutsInFlight = 16;
constexpr std::uint64_t kGetsTogether = 64;  // a checkpoint must last longer than so many
constexpr std::uint64_t kUnreachedBytes = std::uint64_t{1} << 40;
constexpr std::uint64_t kFirstPutNs = 60'000'000'000;
constexpr int kCheckpointsMax = 1000;

node::Config durable_node(const std::filesystem::path& place) {
  node::Config config = own_node_config();
  config.data.dir = (place / "data").string();
  config.data.checkpoint_log_bytes = kUnreachedBytes;  // none by itself
  return config;
}

/// Stops writes to a file system, until this ends.
class StoppedDisk {
 public:
  explicit StoppedDisk(const std::filesystem::path& dir)
      : folder_(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (folder_ < 0) fail_with_errno("cannot open the folder");
    if (::ioctl(folder_, FIFREEZE, 0) == 0) return;
    ::close(folder_);
    fail_with_errno("cannot stop the file system");
  }
  StoppedDisk(const StoppedDisk&) = delete;
  StoppedDisk& operator=(const StoppedDisk&) = delete;
  ~StoppedDisk() {
    static_cast<void>(::ioctl(folder_, FITHAW, 0));
    ::close(folder_);
  }

 private:
  int folder_;
};

/// A thread that puts existing keys, until this ends.
class Putter final : private Handler {
 public:
  Putter(const Map& map, const ReadLoad& load)
      : map_(map), value_(load.value_bytes, 'v'), keys_(load.keys), thread_([this] { run(); }) {}
  ~Putter() {
    stopped_ = true;
    thread_.join();
  }
  [[nodiscard]] std::uint64_t done_count() const { return done_; }
  /// Errors: throws std::runtime_error, if nothing is put for some seconds.
  void await_first() const {
    const std::uint64_t deadline_ns = base::monotonic_ns() + kFirstPutNs;
    while (done_ == 0) {
      if (base::monotonic_ns() > deadline_ns) throw std::runtime_error("nothing is put");
      std::this_thread::yield();
    }
  }

 private:
  void run() {
    auto pipeline = Pipeline::open(map_, kPutsInFlight);
    if (!pipeline) return;  // and nothing is put
    std::vector<std::string> keys(kPutsInFlight);
    std::vector<Request> puts(kPutsInFlight);
    for (std::uint64_t from = 0; !stopped_; from += kPutsInFlight) {
      for (std::size_t i = 0; i < keys.size(); ++i) {
        keys[i] = read_key((from + i) % keys_);
        puts[i] = {.op = Op::put, .key = keys[i], .value = value_};
      }
      pipeline->run(puts, *this);
    }
  }
  void done(const Completion& completion) override {
    if (completion.ok) ++done_;
  }

  const Map map_;
  const std::string value_;
  const std::uint64_t keys_;
  std::atomic<bool> stopped_ = false;
  std::atomic<std::uint64_t> done_ = 0;
  std::thread thread_;
};

}  // namespace

std::string_view name(Beside beside) {
  switch (beside) {
    case Beside::nothing: return "nothing";
    case Beside::puts: return "puts";
    case Beside::checkpoint: return "checkpoint";
    case Beside::stopped: return "stopped";
  }
  return "?";
}

const char* problem_of_stopping(const std::filesystem::path& dir) {
  struct stat here{};
  struct stat above{};
  if (::stat(dir.c_str(), &here) != 0 || ::stat((dir / "..").c_str(), &above) != 0) {
    return "--stop-disk needs --dir";
  }
  if (here.st_dev == above.st_dev) return "--stop-disk: at --dir no file system is mounted";
  return nullptr;
}

DurableReads::DurableReads(const std::filesystem::path& dir, std::uint64_t keys,
                           std::uint64_t value_bytes, std::uint64_t seed)
    : dir_(dir),
      place_(dir),
      node_(start_own_node(durable_node(place_.path()))),
      store_(value_or_throw(Store::connect(local_address(*node_)), "cannot connect")),
      map_(value_or_throw(store_.create_map("pairs"), "cannot create a map")) {
  load_.keys = keys;
  load_.value_bytes = value_bytes;
  load_.seed = seed;
  load_.ops = kGetsTogether;
  fill(map_, load_);
}

void DurableReads::get_some(base::Histogram& latencies) {
  latencies.merge(latencies_of_gets(map_, load_, round_++));
}

void DurableReads::get_beside_checkpoints(std::uint64_t ops, base::Histogram& latencies) {
  const node::CheckpointCounts& counts = node_->checkpoints()->counts();
  for (int i = 0; latencies.count() < ops; ++i) {
    if (i == kCheckpointsMax) throw std::runtime_error("checkpoints are too short");
    const std::uint64_t before = counts.finished + counts.failed;
    node_->checkpoints()->request();
    while (counts.finished + counts.failed == before) {
      base::Histogram some;
      get_some(some);
      if (counts.finished + counts.failed == before) latencies.merge(some);
    }
    if (counts.failed != 0) throw std::runtime_error("a checkpoint was not finished");
  }
}

PointSample DurableReads::measure(Beside beside, std::uint64_t ops) {
  const bool has_puts = beside == Beside::puts || beside == Beside::stopped;
  PointSample sample;
  std::uint64_t puts_done = 0;
  {
    std::unique_ptr<Putter> putter;
    if (has_puts) putter = std::make_unique<Putter>(map_, load_);
    if (putter) putter->await_first();
    std::unique_ptr<StoppedDisk> stopped;
    if (beside == Beside::stopped) stopped = std::make_unique<StoppedDisk>(dir_);
    const std::uint64_t before = putter ? putter->done_count() : 0;
    if (beside == Beside::checkpoint) get_beside_checkpoints(ops, sample.latencies);
    while (sample.latencies.count() < ops) get_some(sample.latencies);
    if (putter) puts_done = putter->done_count() - before;
    stopped.reset();  // before those puts are waited for
  }
  const auto count = sample.latencies.count();
  sample.took(count, sample.latencies.mean() * static_cast<double>(count) / 1e9);
  sample.numbers.emplace_back("puts_per_get",
                              static_cast<double>(puts_done) / static_cast<double>(count));
  sample.checksum = load_.keys;  // each answer was checked
  return sample;
}

}  // namespace espalier::bench
