// SPDX-License-Identifier: Apache-2.0
#include "log/log_error.hpp"

namespace espalier::log {
namespace {

std::string_view text_of(LogFault fault) {
  switch (fault) {
    case LogFault::invalid: break;
    case LogFault::system: return "the operating system refused";
    case LogFault::short_write: return "less was written than was to be";
    case LogFault::locked: return "another process uses the folder";
    case LogFault::newer: return "the format is of a later version";
    case LogFault::other_node: return "the data is another node's";
    case LogFault::header: return "the segment has no valid header";
    case LogFault::hole: return "records that were durable are missing";
    case LogFault::begins_late: return "the log begins behind the first record that is wanted";
    case LogFault::out_of_order: return "a valid block goes on with another sequence";
    case LogFault::refused: return "a record cannot be applied";
    case LogFault::closed: return "the log was closed before";
    case LogFault::no_memory: return "memory ran out";
    case LogFault::store: return "the file that says which store this is is damaged";
    case LogFault::checkpoint: return "the checkpoint is damaged";
    case LogFault::copy: return "an object cannot be copied into a checkpoint";
  }
  return "no fault";
}

}  // namespace

std::string message(const LogError& error) {
  std::string text = "log: ";
  text += text_of(error.fault);
  text += ": file " + std::string(error.file.text()) + ", offset " + std::to_string(error.offset) +
          ", sequence " + std::to_string(error.sequence);
  return text + ": " + espalier::message(error.error);
}

}  // namespace espalier::log
