// SPDX-License-Identifier: Apache-2.0
#include "node/data_reader.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

#include "log/log.hpp"
#include "log/store_file.hpp"

namespace espalier::node {
namespace {

std::unexpected<DataMistake> mistake(std::string what, std::string hint) {
  return std::unexpected(DataMistake{std::move(what), std::move(hint)});
}

}  // namespace

std::string words_of(const Error& error) {
  if (error.code != Code::system) return message(error);
  return std::generic_category().message(static_cast<int>(error.detail));
}

bool is_damage(log::LogFault fault) {
  switch (fault) {
    case log::LogFault::header:
    case log::LogFault::hole:
    case log::LogFault::begins_late:
    case log::LogFault::out_of_order:
    case log::LogFault::checkpoint: return true;
    default: return false;
  }
}

std::expected<std::unique_ptr<DataReader>, DataMistake> DataReader::open(const std::string& path) {
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0) {
    const int problem = errno;
    if (problem == ENOENT || problem == ENOTDIR) {
      return mistake(fmt::format("the data folder '{}' does not exist", path),
                     "Name the folder that the node was given: serve --data DIR.");
    }
    return mistake(fmt::format("cannot look at the data folder '{}': {}", path,
                               std::generic_category().message(problem)),
                   "");
  }
  if (!S_ISDIR(found.st_mode)) {
    return mistake(fmt::format("'{}' is no folder", path),
                   "Name the folder that the node was given: serve --data DIR.");
  }
  std::unique_ptr<DataReader> reader(new DataReader(path));
  if (auto begun = reader->begin(); !begun) return std::unexpected(std::move(begun.error()));
  return reader;
}

// A folder without this file has no store, whatever else is in it. One without a lock file is a
// copy made without it, since each node creates it first.
std::expected<void, DataMistake> DataReader::begin() {
  const auto store = log::find_store_file(folder_);
  if (!store) return std::unexpected(mistake_of(store.error()));
  if (!*store) {
    return mistake(fmt::format("'{}' is no data folder of a node: it has no file 'store'", path_),
                   "Name the folder that the node was given: serve --data DIR.");
  }
  store_ = **store;
  auto lock = folder_.lock();
  if (lock) {
    lock_ = std::move(*lock);
    return {};
  }
  if (lock.error().code == Code::busy) {
    return mistake(fmt::format("another process uses the data folder '{}'", path_),
                   "Stop that node, or ask it: espalier check --at ADDRESS.");
  }
  if (lock.error() == Error{Code::system, 0, ENOENT}) {
    return mistake(fmt::format("the data folder '{}' has no file 'lock'", path_),
                   "If it is a copy that no node uses, make an empty file of that name in it.");
  }
  return mistake(fmt::format("cannot lock the data folder '{}': {}", path_, words_of(lock.error())),
                 "");
}

log::LogResult<log::Recovered> DataReader::read(const log::ApplyRecord& apply) {
  log::RecoveryTerms terms;
  terms.node = store_;
  return log::catch_no_memory(terms.from,
                              [&] { return log::recover_all(log_folder_, terms, apply); });
}

DataMistake DataReader::mistake_of(const log::LogError& error) const {
  const std::string why = log::message(error);
  if (error.fault == log::LogFault::checkpoint) {
    return {fmt::format("the data folder '{}' is damaged: {}", path_, why),
            fmt::format("The log has no longer what the checkpoint stands for: put back the file "
                        "log/{} from a copy of the folder. Do not accept its loss before that: "
                        "nothing is left without it.",
                        error.file.text())};
  }
  if (is_damage(error.fault)) {
    return {fmt::format("the data folder '{}' is damaged: {}", path_, why),
            fmt::format("Put it back from a copy. What comes before can be had, and all from there "
                        "on is lost, by: espalier serve --data DIR --accept-loss-from {}",
                        error.sequence)};
  }
  switch (error.fault) {
    case log::LogFault::newer:
      return {fmt::format("the data folder '{}' is of a later format: {}", path_, why),
              "Take a version of espalier that knows it."};
    case log::LogFault::other_node:
      return {fmt::format("the log in '{}' is that of another store: {}", path_, why),
              "Put back the file 'store' that belongs to it."};
    case log::LogFault::store:
      return {fmt::format("the data folder '{}' is damaged: {}", path_, why),
              "Put back the file 'store' from a copy of the folder; it never changes."};
    default: return {fmt::format("cannot read the data folder '{}': {}", path_, why), ""};
  }
}

}  // namespace espalier::node
