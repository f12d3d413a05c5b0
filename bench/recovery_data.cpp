// SPDX-License-Identifier: Apache-2.0
#include "bench/recovery_data.hpp"

#include <fmt/core.h>

#include <array>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "bench/map_session.hpp"
#include "bench/mix.hpp"
#include "bench/own_node.hpp"
#include "bench/request_list.hpp"
#include "log/posix_folder.hpp"
#include "log/unit_buffer.hpp"

namespace espalier::bench {
namespace {

constexpr std::uint64_t kNever = std::uint64_t{1} << 40;
constexpr std::size_t kPutsTogether = 1024;
constexpr std::uint32_t kFillInFlight = 256;
constexpr std::size_t kReadBytes = std::size_t{1} << 20;
constexpr std::uint64_t kCheckpointSeconds = 600;

std::string map_name(std::uint32_t i) { return fmt::format("map{}", i); }

node::Config node_of(const std::string& dir) {
  node::Config config = own_node_config();
  config.data.dir = dir;
  config.data.log_bytes_max = kNever;
  config.data.checkpoint_log_bytes = kNever;  // none by itself
  return config;
}

/// Puts random pairs into a map; returns their content.
class Filler final : private Handler {
 public:
  Filler(const Map& map, std::uint32_t value_bytes, std::uint64_t seed)
      : pipeline_(value_or_throw(Pipeline::open(map, kFillInFlight), "cannot open a pipeline")),
        random_(seed),
        value_(value_bytes, 'v') {}

  void fill(std::uint64_t pairs, Contents& contents) {
    std::vector<std::string> keys(kPutsTogether);
    std::vector<Request> requests(kPutsTogether);
    while (pairs != 0) {
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(kPutsTogether, pairs));
      for (std::size_t i = 0; i < count; ++i) {
        keys[i] = fmt::format("{:016x}", random_());
        requests[i] = {};
        requests[i].op = Op::put;
        requests[i].key = keys[i];
        requests[i].value = value_;
        contents.hash += item_hash(keys[i], value_);
      }
      pipeline_.run(std::span(requests).first(count), *this);
      contents.items += count;
      pairs -= count;
    }
  }

 private:
  void done(const Completion& completion) override {
    if (!completion.ok) throw std::runtime_error("a put failed: " + message(completion.error));
  }

  Pipeline pipeline_;
  base::Random random_;
  const std::string value_;
};

void make_checkpoint(node::Node& node) {
  node.checkpoints()->request();
  const std::uint64_t deadline_ns = base::monotonic_ns() + kCheckpointSeconds * 1'000'000'000;
  while (node.checkpoints()->counts().finished == 0) {
    if (node.checkpoints()->counts().failed != 0 || base::monotonic_ns() > deadline_ns) {
      throw std::runtime_error("the checkpoint was not finished");
    }
    std::this_thread::yield();
  }
}

/// Links files instead of copying bytes: no start changes an existing file.
void link_files(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::filesystem::create_directories(to / "log");
  for (const std::filesystem::path folder : {".", "log"}) {
    for (const auto& file : std::filesystem::directory_iterator(from / folder)) {
      if (!file.is_regular_file()) continue;
      std::filesystem::create_hard_link(file.path(), to / folder / file.path().filename());
    }
  }
}

/// The time in which the disk delivers all files of the log.
double seconds_to_read(const std::string& path, std::uint64_t& bytes) {
  log::PosixFolder folder(path, log::FolderAccess::read);
  log::UnitBuffer buffer;
  buffer.reserve(kReadBytes);
  const auto names = folder.names();
  if (!names) throw std::runtime_error("cannot read " + path);
  const base::Stopwatch watch;
  for (const std::string& name : *names) {
    if (name == "." || name == "..") continue;  // some file systems let them be opened
    const auto file = folder.open(name);
    for (std::uint64_t offset = 0; file;) {
      const auto got = (*file)->read(offset, buffer.bytes().first(kReadBytes));
      if (!got) throw std::runtime_error("cannot read " + name);
      bytes += *got;
      offset += *got;
      if (*got < kReadBytes) break;
    }
  }
  return static_cast<double>(watch.elapsed_ns()) / 1e9;
}

}  // namespace

RecoveryData::RecoveryData(const std::filesystem::path& dir, const RecoverySetting& setting)
    : place_(dir) {
  fill(setting);
}

void RecoveryData::fill(const RecoverySetting& setting) {
  node::Config config = node_of((place_ / "data").string());
  const auto node = start_own_node(config);
  Store store = value_or_throw(Store::connect(local_address(*node)), "cannot connect");
  for (std::uint32_t i = 0; i < setting.maps; ++i) {
    const Map map = value_or_throw(store.create_map(map_name(i)), "cannot create a map");
    const std::uint64_t pairs = share_of(setting.keys, setting.maps, i);
    Filler(map, setting.value_bytes, setting.seed + i).fill(pairs, contents_);
  }
  if (setting.from == RecoveryFrom::checkpoint) make_checkpoint(*node);
}

PointSample RecoveryData::start(std::uint32_t threads) const {
  const base::TemporaryFolder started(place_.path());
  const std::string dir = (started / "data").string();
  link_files(place_ / "data", dir);
  std::uint64_t file_bytes = 0;
  const double read_s = seconds_to_read(dir + "/log", file_bytes);
  node::NodeOptions options;
  options.recovery_threads = threads;
  const auto node = start_own_node(node_of(dir), options);
  const double seconds = static_cast<double>(node->data()->applied_ns()) / 1e9;
  const auto records = static_cast<double>(node->data()->applied_records());
  Contents found;
  const Store store = value_or_throw(Store::connect(local_address(*node)), "cannot connect");
  for (const std::string& name : value_or_throw(store.map_names(), "cannot list maps")) {
    const Contents of_map = contents_of(value_or_throw(store.open_map(name), "cannot open a map"));
    found.items += of_map.items;
    found.hash += of_map.hash;
  }
  PointSample sample;
  sample.took(found.items, seconds);
  sample.checksum = found.hash;
  sample.numbers = {{"records_per_s", records / seconds},
                    {"file_bytes", static_cast<double>(file_bytes)},
                    {"bytes_per_s", static_cast<double>(file_bytes) / seconds},
                    {"disk_bytes_per_s", static_cast<double>(file_bytes) / read_s},
                    {"share_of_disk", read_s / seconds}};
  return sample;
}

}  // namespace espalier::bench
