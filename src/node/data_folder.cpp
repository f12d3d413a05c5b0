// SPDX-License-Identifier: Apache-2.0
#include "node/data_folder.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <new>
#include <string_view>
#include <utility>

#include "base/clock.hpp"
#include "base/durable_mark.hpp"
#include "base/system_error.hpp"
#include "catalog/catalog.hpp"
#include "engine/redo_target.hpp"
#include "engine/services.hpp"
#include "log/store_file.hpp"
#include "node/data_check.hpp"
#include "node/data_reader.hpp"

namespace espalier::node {
namespace {

std::unexpected<std::string> cannot_use(const std::string& path, std::string_view why) {
  return std::unexpected(fmt::format("cannot use the data folder '{}': {}", path, why));
}

/// Makes a folder for this user alone, whose name is then on the disk, or finds one.
Result<void> make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0) {
    const std::filesystem::path whole(path);
    const std::filesystem::path own = whole.has_filename() ? whole : whole.parent_path();
    return log::PosixFolder(own.has_parent_path() ? own.parent_path().string() : ".").sync();
  }
  struct stat found{};
  if (errno != EEXIST || ::stat(path.c_str(), &found) != 0) return base::refused_by_system();
  if (!S_ISDIR(found.st_mode)) return fail(Code::system, ENOTDIR);
  return {};
}

/// Has it told, but for the end of a log that is closed.
void report_failure(log::LogWriter& writer, std::function<void(const std::string&)> failed) {
  constexpr std::uint64_t kNever = base::DurableMark::kAll;
  writer.acknowledgements().when_durable(
      kNever, [failed = std::move(failed)](const log::LogError* error) {
        if (error == nullptr || error->fault == log::LogFault::closed) return;
        try {
          failed(log::message(*error));
        } catch (const std::bad_alloc&) {  // those whose writes wait are told
        }
      });
}

/// What a log cannot be opened for, with what more there is to say of it.
std::string words_for(const log::LogError& error, const Error& of_record) {
  std::string words = log::message(error);
  if (of_record != Error{}) words += ": " + why_refused(of_record);
  const bool is_of_data = is_damage(error.fault) || of_record.code == Code::corrupt;
  if (is_of_data) words += "; 'espalier check --data DIR' says what is left, and what to do";
  return words;
}

/// What a start with --accept-loss-from has not met is met by no later start without it, either:
/// where it stays in a script, it would accept the next loss without a word.
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
  for (const std::string& each : {path, path + "/log"}) {
    if (const auto made = make_folder(each); !made) return cannot_use(path, message(made.error()));
  }
  if (const auto synced = folder_.sync(); !synced) return cannot_use(path, message(synced.error()));
  auto lock = folder_.lock();
  if (!lock) {
    return cannot_use(
        path, lock.error().code == Code::busy ? "another process uses it" : message(lock.error()));
  }
  lock_ = std::move(*lock);
  const auto store = log::open_store_file(folder_, std::max<std::uint64_t>(1, services.draw()));
  if (!store) return cannot_use(path, log::message(store.error()));

  store_ = *store;
  log::LogOptions options;
  options.recovery.node = *store;
  options.recovery.accept_loss_from = terms.data.accept_loss_from;
  options.writer.segment_bytes = terms.segment_bytes;
  options.writer.segments_max = terms.data.log_bytes_max / terms.segment_bytes;
  const std::uint64_t began_ns = base::monotonic_ns();
  offload::RedoTarget target(services, terms.own_kinds);
  Error wrong{};
  const auto apply = [&](std::uint64_t sequence,
                         std::span<const std::byte> record) -> Result<void> {
    ++applied_;
    if (terms.show) {
      if (auto shown = terms.show(sequence, record); !shown) return shown;
    }
    auto applied = target.apply({reinterpret_cast<const char*>(record.data()), record.size()});
    if (!applied) wrong = applied.error();
    return applied;
  };
  auto opened = log::Log::open(log_folder_, options, apply);
  if (!opened) return cannot_use(path, words_for(opened.error(), wrong));
  log_ = std::move(*opened);
  const auto& accepts_from = terms.data.accept_loss_from;
  if (accepts_from && !(recovered().cut && recovered().cut->accepted)) {
    return cannot_use(path, no_loss_from(*accepts_from));
  }
  if (terms.failed) report_failure(log_->writer(), terms.failed);
  applied_ns_ = base::monotonic_ns() - began_ns;
  if (!terms.show) record(services);
  return {};
}

void DataFolder::record(offload::Services& services) {
  services.catalog().record_to(&log_->writer());
}

DataFolder::~DataFolder() = default;

}  // namespace espalier::node
