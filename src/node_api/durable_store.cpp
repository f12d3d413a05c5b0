// SPDX-License-Identifier: Apache-2.0
#include "node_api/durable_store.hpp"

#include <algorithm>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "base/until_fork.hpp"
#include "client/embedded_store.hpp"
#include "engine/parallel_redo.hpp"
#include "engine/services.hpp"
#include "node/checkpoint_thread.hpp"
#include "node/data_folder.hpp"
#include "store/clock_groups.hpp"
#include "store/store_core.hpp"

namespace espalier {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kLogBytesMin = 256 * kMiB;
constexpr std::uint64_t kCheckpointBytesMin = 64 * kMiB;
constexpr std::uint64_t kDataBytesMax = std::uint64_t{1} << 40;
constexpr std::uint32_t kAsyncMsMin = 20;
constexpr std::uint32_t kAsyncMsMax = 600'000;
/// Of threads that the program does not know: those of recovery and checkpoints.
constexpr std::uint32_t kOwnParticipants = 64;
/// No message comes.
constexpr std::uint64_t kNoMessageBytes = kMiB;

std::unexpected<TableError> refused(const Error& error, std::string words) {
  return std::unexpected(TableError(error, std::move(words)));
}

/// What is wrong with the options; empty: nothing.
std::string mistake_in(const DataOptions& data) {
  const auto is_in = [](std::uint64_t value, std::uint64_t least) {
    return value >= least && value <= kDataBytesMax;
  };
  if (data.dir.empty()) return "a durable store needs a folder: DataOptions::dir";
  if (!is_in(data.log_bytes_max, kLogBytesMin)) {
    return "DataOptions::log_bytes_max must be 256 MiB to 1 TiB";
  }
  if (!is_in(data.checkpoint_log_bytes, kCheckpointBytesMin)) {
    return "DataOptions::checkpoint_log_bytes must be 64 MiB to 1 TiB";
  }
  if (data.durability != Durability::sync && data.durability != Durability::async) {
    return "DataOptions::durability must be sync or async";
  }
  if (data.async_ms < kAsyncMsMin || data.async_ms > kAsyncMsMax) {
    return "DataOptions::async_ms must be 20 to 600000";
  }
  if (data.recovery_threads > offload::ParallelRedo::kThreadsMax) {
    return "DataOptions::recovery_threads must be 16 at most";
  }
  return {};
}

/// A store and its folder, destroyed with the last reference.
struct KeptStore {
  KeptStore(memory::Region region, std::uint32_t participants)
      : core(std::make_unique<tree::StoreCore>(std::move(region), participants)) {}

  TableResult<void> open(const DataOptions& options, std::uint64_t segment_bytes);

  node::Config::Data settings;
  // What goes last is what others use.
  std::unique_ptr<node::DataFolder> folder;
  std::unique_ptr<tree::StoreCore> core;
  std::unique_ptr<offload::Services> services;
  std::unique_ptr<node::CheckpointThread> checkpoints;
};

TableResult<void> KeptStore::open(const DataOptions& options, std::uint64_t segment_bytes) {
  settings.dir = options.dir;
  settings.log_bytes_max = options.log_bytes_max;
  settings.checkpoint_log_bytes = options.checkpoint_log_bytes;
  settings.accept_loss_from = options.accept_loss_from;
  settings.durability = options.durability;
  settings.async_ms = options.async_ms;
  offload::HelperOptions helpers;
  helpers.threads = 1;
  services = std::make_unique<offload::Services>(*core, kNoMessageBytes,
                                                 std::span<const offload::Kind>(), helpers);
  node::DataFolder::Terms terms{.data = settings,
                                .own_kinds = {},
                                .segment_bytes = segment_bytes,
                                .failed = options.failed,
                                .threads = options.recovery_threads};
  if (options.recovering) {
    terms.recovering = [&](const node::RecoveryProgress& now) {
      options.recovering({now.records, now.bytes, now.bytes_max});
    };
  }
  auto opened = node::DataFolder::open(terms, *services);
  if (!opened) return refused({Code::corrupt, 0, 0}, std::move(opened.error()));
  folder = std::move(*opened);
  checkpoints = std::make_unique<node::CheckpointThread>(node::checkpoint_terms(
      *folder, *services, {}, settings, segment_bytes, options.checkpoint_failed));
  return {};
}

TableResult<Store> open_kept(const DataOptions& data, const StoreOptions& options,
                             std::uint64_t segment_bytes) {
  auto region = client::EmbeddedStore::reserve(options);
  if (!region) return refused(region.error(), {});
  const std::uint32_t participants = std::min(options.participants_max + kOwnParticipants,
                                              client::EmbeddedStore::kParticipantsMax);
  const auto kept = base::make_shared_until_fork<KeptStore>(std::move(*region), participants);
  if (options.shared_clock) kept->core->groups->share();
  if (auto opened = kept->open(data, segment_bytes); !opened)
    return std::unexpected(std::move(opened.error()));
  const std::shared_ptr<tree::StoreCore> core(kept, kept->core.get());
  return client::StoreImpl::handle(std::make_unique<client::EmbeddedStore>(
      core, options.regexes, client::EmbeddedStore::Dropped::freed));
}

}  // namespace

TableResult<Store> node_api::open_durable_store(const DataOptions& data,
                                                const StoreOptions& options,
                                                std::uint64_t segment_bytes) {
  try {
    return open_kept(data, options, segment_bytes);
  } catch (const std::bad_alloc&) {
    return refused({Code::out_of_memory, 0, 0}, {});
  } catch (const std::system_error& error) {  // no thread is to be had
    const auto number = static_cast<std::uint32_t>(error.code().value());
    return refused({Code::system, 0, number}, error.what());
  }
}

TableResult<Store> open_durable_store(const DataOptions& data, const StoreOptions& options) {
  if (std::string mistake = mistake_in(data); !mistake.empty()) {
    return refused({Code::invalid_argument, 0, 0}, std::move(mistake));
  }
  return node_api::open_durable_store(data, options, log::WriterOptions{}.segment_bytes);
}

}  // namespace espalier
