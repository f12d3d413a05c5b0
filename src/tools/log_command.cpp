// SPDX-License-Identifier: Apache-2.0
// espalier log dump: prints the log of a data folder, record by record. Nothing here
// knows a kind: each kind formats its own records (engine/redo_target.hpp).
//
// Invariant: every byte of a record that is printed is made printable here, or JSON.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "catalog/object_redo.hpp"
#include "catalog/redo_effect.hpp"
#include "cmdline/number_option.hpp"
#include "cmdline/text_codec.hpp"
#include "engine/redo_target.hpp"
#include "node/data_check.hpp"
#include "node/data_reader.hpp"
#include "tools/check_data.hpp"
#include "tools/commands.hpp"
#include "tools/json_record.hpp"
#include "tools/shown_samples.hpp"

namespace espalier::tools {
namespace {

struct LogDumpOptions {
  std::string data;
  std::uint64_t from = 1;
  std::optional<std::uint64_t> to;
  bool json = false;
};

/// "value bytes" for value_bytes.
std::string spaced(std::string_view name) {
  std::string words(name);
  std::ranges::replace(words, '_', ' ');
  return words;
}

class LogDump {
 public:
  LogDump(std::ostream& out, const LogDumpOptions& options) : out_(out), options_(options) {}

  /// Names are known of what was made before, too, so each record must be taken.
  void take(std::uint64_t sequence, std::string_view record) {
    if (const auto created = catalog::read_created(record)) {
      names_.insert_or_assign(created->id, std::string(created->name));
    }
    if (const auto renamed = catalog::read_renamed(record)) take_names(*renamed);
    if (sequence < options_.from) return;
    sequence_ = sequence;
    const auto head = catalog::read_redo_head(record);
    head_ = head ? std::optional(*head) : std::nullopt;
    const auto described = offload::describe_record(
        record, {}, [this](const catalog::RedoEffect& effect) { print(effect); });
    if (!described) print_undescribed(record.size(), described.error());
  }
  /// Whether some was no record.
  [[nodiscard]] bool has_faults() const { return has_faults_; }

 private:
  void take_names(const catalog::RenamedObject& renamed) {
    if (renamed.id != 0) names_.insert_or_assign(renamed.id, std::string(renamed.name));
    if (!renamed.other_name.empty()) {
      names_.insert_or_assign(renamed.other, std::string(renamed.other_name));
    }
  }
  [[nodiscard]] const std::string* name() const {
    const auto found = head_ ? names_.find(head_->object) : names_.end();
    return found == names_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] std::string kind() const {
    const auto known = static_cast<ObjectKind>(head_->kind);
    return shown_kind(known, espalier::name(known));
  }

  [[nodiscard]] std::string text_begin() const {
    std::string text = fmt::format("{}", sequence_);
    if (!head_) return text + ": ";
    text += ' ' + kind();
    if (const std::string* const known = name()) {
      text += fmt::format(" '{}'", cmdline::escaped(*known));
    }
    if (head_->object != 0) text += fmt::format(" ({})", head_->object);
    return text + ": ";
  }
  [[nodiscard]] nlohmann::ordered_json json_begin() const {
    nlohmann::ordered_json json;
    json["sequence"] = sequence_;
    if (!head_) return json;
    json["kind"] = kind();
    json["object"] = head_->object;
    if (const std::string* const known = name()) set_bytes(json, "name", *known);
    return json;
  }
  void print(const nlohmann::ordered_json& json) {
    out_ << json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
  }

  void print(const catalog::RedoEffect& effect) {
    if (options_.json) {
      nlohmann::ordered_json json = json_begin();
      json["effect"] = effect.what;
      if (effect.key) set_bytes(json, "key", *effect.key);
      for (const catalog::RedoNumber& number : effect.numbers) json[number.name] = number.value;
      return print(json);
    }
    out_ << text_begin() << effect.what;
    if (effect.key) out_ << fmt::format(" '{}'", cmdline::escaped(*effect.key));
    for (const catalog::RedoNumber& number : effect.numbers) {
      out_ << fmt::format(", {} {}", spaced(number.name), number.value);
    }
    out_ << '\n';
  }

  /// Of a kind that this version does not know, or no record at all.
  void print_undescribed(std::size_t bytes, const Error& error) {
    const bool unknown = error.code == Code::unsupported;
    has_faults_ = has_faults_ || !unknown;
    const std::string why = unknown ? "" : node::why_refused(error);
    if (options_.json) {
      nlohmann::ordered_json json = json_begin();
      if (head_) json["type"] = head_->type;
      json["bytes"] = bytes;
      if (!unknown) json["fault"] = why;
      return print(json);
    }
    out_ << text_begin();
    if (unknown) {
      out_ << fmt::format("type {}, {} bytes\n", head_->type, bytes);
    } else {
      out_ << fmt::format("fault: {} bytes that are no record: {}\n", bytes, why);
    }
  }

  std::ostream& out_;
  const LogDumpOptions& options_;
  std::map<std::uint32_t, std::string> names_;  // of objects that were made, by their ids
  std::uint64_t sequence_ = 0;
  std::optional<catalog::RedoHead> head_;  // nothing: it is none
  bool has_faults_ = false;
};

/// What was asked for, and is not in the log that a start would read. `read`: null where it was not
/// read to its end.
void print_left_out(Environment& environment, const LogDumpOptions& options,
                    std::optional<std::uint64_t> begins, const log::Recovered* read) {
  if (read != nullptr && read->checkpoint && !begins) begins = read->checkpoint->sequence;
  if (begins && options.from != 0 && options.from < *begins) {
    print_note(environment, "note",
               fmt::format("the log counts from sequence {} on; what its checkpoint has instead of "
                           "earlier records is shown by --from 0",
                           *begins));
  }
  if (read == nullptr) return;
  for (const log::LogError& damaged : read->damaged_checkpoints) {
    print_note(
        environment, "warning",
        fmt::format("a checkpoint is left out: {}", cmdline::escaped(log::message(damaged))));
  }
}

Outcome<int> dump_log(Environment& environment, const LogDumpOptions& options) {
  if (options.to && *options.to < options.from) {
    return misused(fmt::format("--to {} is before --from {}", *options.to, options.from),
                   "Sequences ascend from 1 on.");
  }
  const auto data = environment.open_data_folder(options.data);
  if (!data) return data_failed(data.error());
  LogDump dump(environment.out, options);
  bool is_over = false;
  std::optional<std::uint64_t> begins;  // the log, as far as it is read
  const auto read =
      (*data)->read([&](std::uint64_t sequence, std::span<const std::byte> record) -> Result<void> {
        if (sequence != 0 && !begins) begins = sequence;
        is_over = options.to && sequence > *options.to;
        if (is_over) return fail(Code::unsupported);  // the rest is not wanted
        dump.take(sequence, {reinterpret_cast<const char*>(record.data()), record.size()});
        return {};
      });
  if (!read && !is_over) return data_failed((*data)->mistake_of(read.error()));
  print_left_out(environment, options, begins, read ? &*read : nullptr);
  if (read && read->cut) {
    print_note(
        environment, "note",
        fmt::format("file {}, offset {}: from sequence {} on nothing was acknowledged",
                    cmdline::escaped(read->cut->file), read->cut->offset, read->cut->sequence));
  }
  return dump.has_faults() ? kFailed : kOk;
}

}  // namespace

void add_log_command(CLI::App& app, Environment& environment, Action& chosen) {
  const auto options = std::make_shared<LogDumpOptions>();
  CLI::App& command =
      *app.add_subcommand("log", "The log in the data folder of a node that does not run");
  command.require_subcommand(1);
  CLI::App& dump = *command.add_subcommand("dump", "Print what the records of a log say was done");
  dump.add_option("--data", options->data, "The data folder, as serve --data has it")
      ->required()
      ->type_name("DIR");
  cmdline::add_number_function<std::uint64_t>(
      dump, "--from", [options](std::uint64_t sequence) { options->from = sequence; },
      "Sequence of the first record (default: 1)");
  cmdline::add_number_function<std::uint64_t>(
      dump, "--to", [options](std::uint64_t sequence) { options->to = sequence; },
      "Sequence of the last record (default: the last there is)");
  add_json_option(dump, options->json);
  dump.footer(
      "A line for each thing that was done: sequence, kind, name and id of the object, what was\n"
      "done, key and numbers. A record of several writes has several lines. Values are not\n"
      "printed, only how many bytes they have. Nothing in the folder is changed; all of the log\n"
      "is read, up to the last record that is wanted. What the newest checkpoint has comes first,\n"
      "with sequence 0, where --from 0 asks for it.\n"
      "Exits with 1 where the log is damaged, or something in it is no record.\n"
      "Examples:\n"
      "  espalier log dump --data /var/lib/espalier\n"
      "  espalier log dump --data /var/lib/espalier --from 1000 --to 1010 --json\n");
  dump.callback([options, &environment, &chosen] {
    chosen =
        reporting(environment, [options, &environment] { return dump_log(environment, *options); });
  });
}

}  // namespace espalier::tools
