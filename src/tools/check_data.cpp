// SPDX-License-Identifier: Apache-2.0
#include "tools/check_data.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cmdline/text_codec.hpp"
#include "node/data_check.hpp"
#include "tools/json_record.hpp"
#include "tools/numbers.hpp"
#include "tools/progress.hpp"

namespace espalier::tools {
namespace {

std::string counted_things(std::uint64_t count, std::string_view one, std::string_view more) {
  return fmt::format("{} {}", format_count(count), count == 1 ? one : more);
}

std::string dumped(const nlohmann::ordered_json& object) {
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void print_checked_json(std::ostream& out, const node::CheckedObject& object) {
  nlohmann::ordered_json json;
  set_bytes(json, "kind", object.kind);
  set_bytes(json, "name", object.name);
  json["id"] = object.id;
  json["entries"] = object.numbers.entries;
  json["memory_bytes"] = object.numbers.memory_bytes;
  json["faults"] = object.faults;
  out << dumped(json) << '\n';
}

void print_checked_text(std::ostream& out, const node::CheckedObject& object) {
  const std::string name =
      fmt::format("{} '{}'", cmdline::escaped(object.kind), cmdline::escaped(object.name));
  for (const std::string& fault : object.faults) {
    out << fmt::format("{}: fault: {}\n", name, cmdline::escaped(fault));
  }
  if (!object.faults.empty()) return;
  out << fmt::format("{}: {}, {}; no faults found\n", name,
                     counted_things(object.numbers.entries, "entry", "entries"),
                     format_bytes(object.numbers.memory_bytes));
}

nlohmann::ordered_json place_json(std::string_view file, std::uint64_t offset,
                                  std::uint64_t sequence) {
  nlohmann::ordered_json json;
  set_bytes(json, "file", file);
  json["offset"] = offset;
  json["sequence"] = sequence;
  return json;
}

void print_log_json(std::ostream& out, const node::DataReader& data,
                    const node::DataReport& report) {
  nlohmann::ordered_json json;
  set_bytes(json, "data", data.path());
  json["store"] = fmt::format("{:016x}", data.store());
  json["records"] = report.records;
  json["record_bytes"] = report.record_bytes;
  json["next_sequence"] = report.next_sequence;
  json["segments"] = report.segments;
  if (report.checkpoint) {
    json["checkpoint"] = {{"number", report.checkpoint->number},
                          {"sequence", report.checkpoint->sequence},
                          {"records", report.checkpoint->records}};
  }
  json["damaged_checkpoints"] = report.damaged_checkpoints.size();
  if (report.tail) {
    json["tail"] = place_json(report.tail->file, report.tail->offset, report.tail->sequence);
  }
  if (report.mistake) {
    auto& damage = json["damage"] =
        place_json(report.fault->file.text(), report.fault->offset, report.fault->sequence);
    damage["what"] = report.mistake->what;
  }
  json["objects"] = report.objects.size();
  json["good"] = report.good();
  out << dumped(json) << '\n';
}

void print_log_text(std::ostream& out, const node::DataReport& report) {
  for (const log::LogError& damaged : report.damaged_checkpoints) {
    out << fmt::format("a start leaves a checkpoint out: {}\n",
                       cmdline::escaped(log::message(damaged)));
  }
  if (report.checkpoint) {
    out << fmt::format("checkpoint {}: {}; the log counts from sequence {} on\n",
                       report.checkpoint->number,
                       counted_things(report.checkpoint->records, "record", "records"),
                       format_count(report.checkpoint->sequence));
  }
  out << fmt::format("log: {}, {}", counted_things(report.records, "record", "records"),
                     format_bytes(report.record_bytes));
  if (!report.mistake) {
    out << fmt::format(" in {}", counted_things(report.segments, "segment", "segments"));
  }
  out << fmt::format("; the next is {}", format_count(report.next_sequence));
  out << (report.mistake ? "; damaged there\n" : "; no damage found\n");
  if (!report.tail) return;
  out << fmt::format(
      "tail: file {}, offset {}: from sequence {} on nothing was acknowledged; a start cuts it\n",
      cmdline::escaped(report.tail->file), report.tail->offset,
      format_count(report.tail->sequence));
}

}  // namespace

std::unexpected<Failure> data_failed(const node::DataMistake& mistake) {
  return failed(mistake.what, mistake.hint);
}

Outcome<int> check_data_folder(Environment& environment, const std::string& path,
                               std::uint64_t memory_bytes_max, bool json) {
  const auto data = environment.open_data_folder(path);
  if (!data) return data_failed(data.error());
  node::DataCheckTerms terms;
  terms.memory_bytes_max = memory_bytes_max != 0 ? memory_bytes_max : environment.memory_bytes_max;
  Progress progress(environment, "reading the log", std::nullopt);
  terms.applied = [&](std::uint64_t records, std::uint64_t bytes) {
    progress.update(bytes, records);
  };
  const auto report = node::check_data(**data, terms);
  progress.wipe();
  if (!report) return data_failed(report.error());
  for (const node::CheckedObject& object : report->objects) {
    json ? print_checked_json(environment.out, object)
         : print_checked_text(environment.out, object);
  }
  json ? print_log_json(environment.out, **data, *report)
       : print_log_text(environment.out, *report);
  if (report->mistake) return data_failed(*report->mistake);
  return report->good() ? kOk : kFailed;
}

}  // namespace espalier::tools
