// SPDX-License-Identifier: Apache-2.0
#include "node/data_folder.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <new>
#include <set>
#include <string_view>
#include <utility>

#include "base/clock.hpp"
#include "base/durable_mark.hpp"
#include "base/system_error.hpp"
#include "catalog/await_records.hpp"
#include "catalog/catalog.hpp"
#include "engine/redo_target.hpp"
#include "engine/services.hpp"
#include "kinds/region/region_files.hpp"
#include "kinds/region/region_object.hpp"
#include "log/checkpoint_format.hpp"
#include "log/format.hpp"
#include "log/mapped_folder.hpp"
#include "log/store_file.hpp"
#include "node/data_check.hpp"
#include "node/data_reader.hpp"
#include "store/store_core.hpp"

namespace espalier::node {
namespace {

std::unexpected<std::string> cannot_use(const std::string& path, std::string_view why) {
  return std::unexpected(fmt::format("cannot use the data folder '{}': {}", path, why));
}

/// Why a record that a start cannot do without has no place.
std::string why_unrecorded(const Error& error) {
  std::string words = message(error);
  if (error.code == Code::busy) words += ": its log is full: raise data.log_bytes_max";
  return words;
}

/// Creates a folder for this user alone, with a durable name, or finds one.
Result<void> make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0) {
    const std::filesystem::path whole(path);
    const std::filesystem::path own = whole.has_filename() ? whole : whole.parent_path();
    return log::PosixFolder(own.has_parent_path() ? own.parent_path().string() : ".").sync();
  }
  struct stat found {};
  if (errno != EEXIST || ::stat(path.c_str(), &found) != 0) return base::refused_by_system();
  if (!S_ISDIR(found.st_mode)) return fail(Code::system, ENOTDIR);
  return {};
}

/// Reports a failure of the log, but not its regular close.
void report_failure(log::LogWriter& writer, std::function<void(const std::string&)> failed) {
  constexpr std::uint64_t kNever = base::DurableMark::kAll;
  writer.acknowledgements().when_durable(
      kNever, [failed = std::move(failed)](const log::LogError* error) {
        if (error == nullptr || error->fault == log::LogFault::closed) return;
        try {
          failed(log::message(*error));
        } catch (const std::bad_alloc&) {  // waiting writes get the error all the same
        }
      });
}

/// Records between reports of progress.
constexpr std::uint64_t kTellEvery = 4096;

/// Describes why a log cannot be opened.
std::string words_for(const log::LogError& error, const Error& of_record) {
  std::string words = log::message(error);
  if (of_record != Error{}) words += ": " + why_refused(of_record);
  const bool is_of_data = is_damage(error.fault) || of_record.code == Code::corrupt;
  if (is_of_data) words += "; 'espalier check --data DIR' says what is left, and what to do";
  return words;
}

/// If --accept-loss-from met no damage, the start fails, since a script that keeps the option would
/// silently accept the next loss.
std::string no_loss_from(std::uint64_t sequence) {
  return fmt::format(
      "there is no damage at sequence {} or later, so no loss to accept: start it without "
      "--accept-loss-from",
      sequence);
}

}  // namespace

std::expected<std::unique_ptr<DataFolder>, std::string> DataFolder::open(
    const Terms& terms, offload::Services& services) {
  std::unique_ptr<DataFolder> folder(new DataFolder(terms.data.dir));
  if (auto begun = folder->begin(terms, services); !begun) {
    return std::unexpected(std::move(begun.error()));
  }
  return folder;
}

std::expected<void, std::string> DataFolder::begin(const Terms& terms,
                                                   offload::Services& services) {
  const std::string& path = terms.data.dir;
  if (const offload::Kind* const kind = offload::kind_without_records(terms.own_kinds)) {
    return cannot_use(
        path, fmt::format("objects of the kind '{}' make no records, or have no copy", kind->name));
  }
  if (auto made = make_folders(); !made) return cannot_use(path, made.error());
  auto lock = folder_.lock();
  if (!lock) {
    return cannot_use(
        path, lock.error().code == Code::busy ? "another process uses it" : message(lock.error()));
  }
  lock_ = std::move(*lock);
  if (auto opened = open_log_folder(terms.data.persistent_memory); !opened) {
    return cannot_use(path, opened.error());
  }
  if (auto opened = open_regions(terms, services); !opened) {
    return cannot_use(path, opened.error());
  }
  const auto store = log::open_store_file(folder_, std::max<std::uint64_t>(1, services.draw()));
  if (!store) return cannot_use(path, log::message(store.error()));
  store_ = *store;
  const std::uint64_t began_ns = base::monotonic_ns();
  if (auto recovered = recover(terms, services); !recovered) {
    return cannot_use(path, recovered.error());
  }
  if (auto checked = check_regions(services); !checked) return cannot_use(path, checked.error());
  const auto& accepts_from = terms.data.accept_loss_from;
  if (accepts_from && !(recovered().cut && recovered().cut->accepted)) {
    return cannot_use(path, no_loss_from(*accepts_from));
  }
  if (terms.failed) report_failure(log_->writer(), terms.failed);
  constexpr std::uint64_t kMs = 1'000'000;
  age_ = std::make_unique<catalog::UnflushedAge>(log_->writer(), terms.data.async_ms * kMs);
  const std::uint64_t run = std::max<std::uint64_t>(1, services.draw());
  log_->writer().set_promise({terms.data.durability, age_.get(), run});
  applied_ns_ = base::monotonic_ns() - began_ns;
  if (terms.show) return {};
  // On failure, the log must be detached before the objects are destroyed.
  struct Recording {
    offload::Services& services;
    bool stays = false;
    ~Recording() {
      if (!stays) services.catalog().record_to(nullptr);
    }
  };
  Recording recording{services};
  if (auto done = record(services, terms.own_kinds); !done) return done;
  if (auto done = go_on_after_loss(services, terms.own_kinds); !done) return done;
  if (const auto durable = catalog::await_records(services.catalog()); !durable) {
    return cannot_use(path, log_->writer().failure());
  }
  recording.stays = true;
  return {};
}

// Runs before any client is served. If the start ends before these records are durable, the segment
// that it has begun remains, and makes the next start do the same.
std::expected<void, std::string> DataFolder::go_on_after_loss(
    offload::Services& services, std::span<const offload::Kind> own_kinds) {
  const bool accepted = recovered().cut && recovered().cut->accepted;
  if (!accepted && !recovered().after_loss) return {};
  const auto wrong = [&](const Error& error) { return cannot_use(path_, why_unrecorded(error)); };
  for (const catalog::EntryPointer& entry : services.catalog().list()) {
    if (const auto done = entry->object->go_on_after_loss(); !done) return wrong(done.error());
  }
  for (const auto kinds : {offload::all_kinds(), own_kinds}) {
    for (const offload::Kind& kind : kinds) {
      if (kind.redo == nullptr || kind.redo->others_after_loss == nullptr) continue;
      const auto done = kind.redo->others_after_loss(services);
      if (!done) return wrong(done.error());
    }
  }
  return {};
}

std::expected<void, std::string> DataFolder::make_folders() {
  for (const std::string& each : {path_, path_ + "/log"}) {
    if (const auto made = make_folder(each); !made) return std::unexpected(message(made.error()));
  }
  if (const auto synced = folder_.sync(); !synced) return std::unexpected(message(synced.error()));
  return {};
}

std::expected<void, std::string> DataFolder::open_log_folder(bool persistent_memory) {
  const std::string path = path_ + "/log";
  if (!persistent_memory) {
    log_folder_ = std::make_unique<log::PosixFolder>(path);
    return {};
  }
  auto mapped = log::MappedFolder::at(path);
  if (mapped) {
    is_model_ = (*mapped)->is_model();
    log_folder_ = std::move(*mapped);
    return {};
  }
  if (mapped.error().code != Code::unsupported) return std::unexpected(message(mapped.error()));
  return std::unexpected(
      "it lies neither on persistent memory (a file system with DAX) nor on a tmpfs: start it "
      "without data.persistent_memory");
}

std::expected<void, std::string> DataFolder::open_regions(const Terms& terms,
                                                          offload::Services& services) {
  if (!terms.data.persistent_regions) return {};
  if (!terms.data.persistent_memory) {
    return std::unexpected(
        "data.persistent_regions is for a folder on persistent memory: set data.persistent_memory, "
        "too");
  }
  auto& files = services.store.parts.of<region::RegionFiles>();
  const auto opened = files.open(path_ + "/regions", is_model_);
  if (!opened) return std::unexpected(message(opened.error()));
  if (const auto synced = folder_.sync(); !synced) return std::unexpected(message(synced.error()));
  return {};
}

std::expected<void, std::string> DataFolder::check_regions(offload::Services& services) {
  auto& files = services.store.parts.of<region::RegionFiles>();
  std::set<std::uint32_t> persistent;
  for (const catalog::EntryPointer& entry : services.catalog().list()) {
    const auto* const region = dynamic_cast<const region::RegionObject*>(entry->object.get());
    if (region == nullptr || !region->is_persistent()) continue;
    if (region->lacks_file() && !files.is_open()) {
      return std::unexpected(fmt::format(
          "its region '{}' is persistent: start it with data.persistent_regions", entry->name));
    }
    if (region->lacks_file()) {
      return std::unexpected(fmt::format("the file of its region '{}', {}, is missing: restore it",
                                         entry->name, files.path_of(entry->id)));
    }
    persistent.insert(entry->id);
  }
  if (!files.is_open()) return {};
  const bool has_loss = recovered().cut && recovered().cut->accepted;
  const auto kept = files.keep_only(
      persistent, has_loss ? region::RegionFiles::Leftover::set_aside
                           : region::RegionFiles::Leftover::removed);
  return kept ? std::expected<void, std::string>() : std::unexpected(message(kept.error()));
}

std::expected<void, std::string> DataFolder::recover(const Terms& terms,
                                                     offload::Services& services) {
  log::LogOptions options;
  options.recovery.node = store_;
  options.recovery.accept_loss_from = terms.data.accept_loss_from;
  options.writer.segment_bytes = terms.segment_bytes;
  options.writer.segments_max = terms.data.log_bytes_max / terms.segment_bytes;
  const std::uint32_t threads =
      terms.threads != 0 ? terms.threads : offload::ParallelRedo::usual_threads();
  const auto started = offload::ParallelRedo::start({services, terms.own_kinds, threads});
  if (!started) return std::unexpected(message(started.error()));
  offload::ParallelRedo& redo = **started;
  if (terms.recovering) applied_.bytes_max = file_bytes();
  const std::uint64_t began_ns = base::monotonic_ns();
  const auto apply = [&](std::uint64_t sequence,
                         std::span<const std::byte> record) -> Result<void> {
    if (terms.show) {
      if (auto shown = terms.show(sequence, record); !shown) return shown;
    }
    ++applied_.records;
    applied_.bytes += record.size();
    if (applied_.records % kTellEvery == 0 && terms.recovering) {
      applied_.ns = base::monotonic_ns() - began_ns;
      terms.recovering(applied_);
    }
    return redo.apply(record);
  };
  // Members of a chain take their versions from its head, whose runs are others.
  if (!terms.show) {
    options.recovery.begins = [&](std::uint64_t incarnation) {
      redo.begin_versions_above(offload::versions_before_run(incarnation));
    };
    options.incarnation_min = [&] { return offload::run_of_recovered(services); };
  }
  options.applied = [&] { return redo.finish(); };
  auto opened = log::Log::open(*log_folder_, options, apply);
  if (opened) {
    log_ = std::move(*opened);
    return {};
  }
  // Threads apply behind the reader, so the reader's position says nothing. A fault that it met,
  // such as damage, is behind records that are still queued.
  static_cast<void>(redo.finish());
  if (!redo.refused()) return std::unexpected(words_for(opened.error(), {}));
  const auto error = place_of(*redo.refused(), options.recovery, opened.error());
  return std::unexpected(words_for(error, redo.refused()->error));
}

/// Locates a refused record: reads all up to it once more.
log::LogError DataFolder::place_of(const offload::ParallelRedo::Refused& refused,
                                   const log::RecoveryTerms& terms, const log::LogError& error) {
  std::uint64_t next = 0;
  const auto find = [&](std::uint64_t, std::span<const std::byte>) -> Result<void> {
    if (next++ != refused.index) return {};
    return std::unexpected(refused.error);
  };
  const auto read =
      log::catch_no_memory(terms.from, [&] { return log::recover_all(*log_folder_, terms, find); });
  return read ? error : read.error();
}

/// The bytes that recovery will read, as far as known in advance.
std::uint64_t DataFolder::file_bytes() {
  const auto names = log_folder_->names();
  if (!names) return 0;
  std::uint64_t bytes = 0;
  std::uint64_t checkpoint_bytes = 0;
  std::uint64_t newest = 0;
  for (const std::string& name : *names) {
    const auto checkpoint = log::number_in(name, log::kCheckpointBegin, log::kWhole);
    if (!checkpoint && !log::segment_of(name, log::kInUse)) continue;
    const auto file = log_folder_->open(name);
    const auto size = file ? (*file)->size() : Result<std::uint64_t>(0);
    if (!size) continue;
    if (!checkpoint) bytes += *size;
    if (checkpoint && *checkpoint >= newest) {
      newest = *checkpoint;
      checkpoint_bytes = *size;
    }
  }
  return bytes + checkpoint_bytes;
}

// A full store must take erases, of which recovery may have used up the reserves.
//
// At the bound, too: a start that waited for a checkpoint would wait for itself.
std::expected<void, std::string> DataFolder::record(offload::Services& services,
                                                    std::span<const offload::Kind> own_kinds) {
  if (!services.store.refill_reserves()) {
    return cannot_use(path_, "there is no memory for erases: raise memory.limit");
  }
  services.catalog().record_to(&log_->writer());
  log_->writer().lift_bound();
  const auto recorded = offload::record_recovered(services, own_kinds);
  log_->writer().keep_bound();
  if (!recorded) return cannot_use(path_, why_unrecorded(recorded.error()));
  return {};
}

DataFolder::~DataFolder() = default;

}  // namespace espalier::node
